"""The interpreters of one process: found in its files, and asked for the chains of its threads.

interpreters = Interpreters(elf_of)
interpreters.use(module, bias, memory, "little")
chains = interpreters.chains(interpreters.look(thread, memory))
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I32, U64, distinct
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.elf import ElfFile
from walkback.elf.named import addresses_of
from walkback.runtimes.chains import Chain, RuntimeFrames
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.offsets import build_at
from walkback.runtimes.python.reading import Followed, PythonRuntime

_SECTION, _RUNTIME, _VERSION, _CODE_TYPE = ".PyRuntime", "_PyRuntime", "Py_Version", "PyCode_Type"
_EVALUATOR = "_PyEval_EvalFrameDefault"
_HANDLERS = "_TAIL_CALL_"
"""What the names begin with of the functions that an evaluator of tail calls is made of."""


class _Symbols:
    """What a file has that holds an interpreter."""

    def __init__(self, elf: ElfFile) -> None:
        self.name = elf.name
        self.runtime: int | None = None
        with contextlib.suppress(WalkbackError):
            for index in elf.sections_named(_SECTION):
                self.runtime = int(elf.sections["addr"][index])
        if self.runtime is None:
            self.runtime = next(addresses_of(elf, _RUNTIME), None)
        if self.runtime is not None:
            self.version = next(addresses_of(elf, _VERSION), None)
            self.code_type = next(addresses_of(elf, _CODE_TYPE), None)
            self.evaluator = next(addresses_of(elf, _EVALUATOR), None)


class Interpreters:
    """Those of one process."""

    def __init__(
        self,
        elf_of: Callable[[int], ElfFile | None],
        *,
        limit: int = 1024,
        frames: RuntimeFrames | None = None,
        troubles: list[str] | None = None,
    ) -> None:
        """`elf_of` gives the file of a module; at most `limit` frames of a thread are followed.

        Several processes can have the same `frames` and `troubles`.
        """
        self._elf_of = elf_of
        self._byteorder: ByteOrder = "little"
        self._limit = limit
        self._symbols: dict[int, _Symbols | None] = {}
        self._runtimes: dict[tuple[int, int], PythonRuntime | None] = {}
        self._used: list[PythonRuntime] = []
        self.frames = RuntimeFrames() if frames is None else frames
        """All that were met."""
        self.troubles: list[str] = [] if troubles is None else troubles
        """What could not be had, a line each."""

    def use(self, module: I32, bias: U64, memory: TargetMemory, byteorder: ByteOrder) -> None:
        """Find those of the modules that a process has mapped, with their biases, and the threads of each."""
        self._byteorder = byteorder
        self._used = []
        for number in distinct(module[module >= 0]).tolist():
            symbols = self._symbols_of(number)
            if symbols is None or symbols.runtime is None:
                continue
            for its in distinct(bias[module == number]).tolist():
                runtime = self._runtime(number, symbols, its, memory)
                if runtime is not None:
                    runtime.prepare(memory)
                    self._used.append(runtime)

    def look(self, thread: int, memory: TargetMemory) -> list[tuple[PythonRuntime, Followed]]:
        """What a thread that stands still runs, by the number that it has for itself."""
        found = ((runtime, runtime.look(thread, memory)) for runtime in self._used)
        return [(runtime, followed) for runtime, followed in found if followed is not None]

    def chains(self, looked: Iterable[tuple[PythonRuntime, Followed]]) -> list[Chain]:
        """The same with names, for which no thread need stand still."""
        return [runtime.chain(followed, self.frames) for runtime, followed in looked]

    def is_entering(self, pc: int) -> bool:
        """Whether a thread with this program counter may be entering an evaluator, and its chain is not in order."""
        return any(runtime.is_entering(pc) for runtime in self._used)

    @staticmethod
    def is_handler(symbol: str | None) -> bool:
        """Whether a function is a piece of an evaluator, which has another frame behind it."""
        return symbol is not None and symbol.startswith(_HANDLERS)

    def _runtime(self, module: int, symbols: _Symbols, bias: int, memory: TargetMemory) -> PythonRuntime | None:
        key = module, bias
        if key not in self._runtimes:
            self._runtimes[key] = None
            try:
                self._runtimes[key] = self._open(symbols, bias, memory)
            except UnreadableError as error:
                trouble = f"{symbols.name}: {error.message}"
                if trouble not in self.troubles:
                    self.troubles.append(trouble)
        return self._runtimes[key]

    def _open(self, symbols: _Symbols, bias: int, memory: TargetMemory) -> PythonRuntime:
        runtime = ((symbols.runtime or 0) + bias) % 2**64
        number = None
        if symbols.version is not None:
            word = memory.read((symbols.version + bias) % 2**64, 8)
            number = struct.unpack("<Q" if self._byteorder == "little" else ">Q", word)[0] if len(word) == 8 else None
        build = build_at(runtime, number, memory, self._byteorder)
        code_type, evaluator = (
            None if one is None else (one + bias) % 2**64 for one in (symbols.code_type, symbols.evaluator)
        )
        return PythonRuntime(
            runtime, build, self._byteorder, code_type=code_type, evaluator=evaluator, limit=self._limit
        )

    def _symbols_of(self, module: int) -> _Symbols | None:
        if module not in self._symbols:
            elf = self._elf_of(module)
            self._symbols[module] = _Symbols(elf) if elf is not None else None
        return self._symbols[module]
