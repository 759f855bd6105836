"""Files that hold CPython.

What reads a running interpreter is imported only for a process that has one, as most have none.
"""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING

from walkback.base.arch import ByteOrder
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.elf.named import PYTHON, addresses_of
from walkback.runtimes.memory import TargetMemory

if TYPE_CHECKING:
    from walkback.runtimes.python.reading import PythonRuntime

HANDLERS = "_TAIL_CALL_"
"""What the names begin with of the functions that an evaluator of tail calls is made of."""
_SECTION, _VERSION, _CODE_TYPE = ".PyRuntime", "Py_Version", "PyCode_Type"
_EVALUATOR = "_PyEval_EvalFrameDefault"


@dataclass(frozen=True, slots=True)
class PythonFile:
    """A file that holds CPython, with what it has; addresses are its own."""

    runtime: int
    version: int | None
    code_type: int | None
    evaluator: int | None

    def open(self, bias: int, memory: TargetMemory, byteorder: ByteOrder, limit: int) -> PythonRuntime:
        """The interpreter in a process."""
        from walkback.runtimes.python.offsets import build_at
        from walkback.runtimes.python.reading import PythonRuntime

        runtime, version, code_type, evaluator = (
            None if one is None else (one + bias) % 2**64
            for one in (self.runtime, self.version, self.code_type, self.evaluator)
        )
        assert runtime is not None
        number = None
        if version is not None:
            word = memory.read(version, 8)
            number = struct.unpack("<Q" if byteorder == "little" else ">Q", word)[0] if len(word) == 8 else None
        build = build_at(runtime, number, memory, byteorder)
        return PythonRuntime(runtime, build, byteorder, code_type=code_type, evaluator=evaluator, limit=limit)


def tasks_in(elf: ElfFile) -> int | None:
    """Where a file that holds the module `_asyncio` has its table; None for others."""
    from walkback.runtimes.python import tasklayout

    return _placed(elf, tasklayout.SECTION, tasklayout.SYMBOL)


def python_in(elf: ElfFile) -> PythonFile | None:
    """What a file has that holds CPython; None for others."""
    runtime = _placed(elf, _SECTION, PYTHON)
    if runtime is None:
        return None
    return PythonFile(runtime, *(next(addresses_of(elf, name), None) for name in (_VERSION, _CODE_TYPE, _EVALUATOR)))


def _placed(elf: ElfFile, section: str, symbol: str) -> int | None:
    """The address of a section, or else of a symbol."""
    with contextlib.suppress(WalkbackError):
        for index in elf.sections_named(section):
            return int(elf.sections["addr"][index])
    return next(addresses_of(elf, symbol), None)
