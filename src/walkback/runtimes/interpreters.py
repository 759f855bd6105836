"""The interpreters of one process: found in its files, and asked for the chains of its threads.

interpreters = Interpreters(elf_of)
interpreters.use(module, bias, memory, "little")
chains = interpreters.chains([interpreters.look(thread, memory)], stacks)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I32, U64, distinct
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.runtimes.chains import Chain, Looked, Runtime, RuntimeFile, RuntimeFrames, Standing, Walked
from walkback.runtimes.lua.finding import lua_in
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.finding import HANDLERS, python_in, tasks_in
from walkback.stacks.stacks import Stacks

if TYPE_CHECKING:
    from walkback.runtimes.tasks import AsyncioTask

_KINDS: tuple[Callable[[ElfFile], RuntimeFile | None], ...] = (python_in, lua_in)


class Interpreters:
    """Those of one process."""

    def __init__(
        self,
        elf_of: Callable[[int], ElfFile | None],
        *,
        limit: int = 1024,
        frames: RuntimeFrames | None = None,
        troubles: list[str] | None = None,
        tasks: bool = False,
    ) -> None:
        """`elf_of` gives the file of a module; at most `limit` frames of a thread are followed.

        Several processes can have the same `frames` and `troubles`. With `tasks` those of Python's asyncio are read as
        well.
        """
        self._elf_of = elf_of
        self._byteorder: ByteOrder = "little"
        self._limit = limit
        self._files: dict[int, list[RuntimeFile]] = {}
        self._runtimes: dict[tuple[int, int], list[Runtime]] = {}
        self._used: list[Runtime] = []
        self._tasks = tasks
        self._tables: dict[int, int | None] = {}
        """Where the files of modules have the table of asyncio's tasks."""
        self.frames = RuntimeFrames() if frames is None else frames
        """All that were met."""
        self.troubles: list[str] = [] if troubles is None else troubles
        """What could not be had, a line each."""

    def use(self, module: I32, bias: U64, memory: TargetMemory, byteorder: ByteOrder) -> None:
        """Find those of the modules that a process has mapped, with their biases, and the threads of each."""
        self._byteorder = byteorder
        tables: dict[int, int] = {}
        opened: list[tuple[int, Runtime]] = []
        for number in distinct(module[module >= 0]).tolist():
            table = self._table_of(number) if self._tasks else None
            if not self._files_of(number) and table is None:
                continue
            for its in distinct(bias[module == number]).tolist():
                opened += [(number, one) for one in self._opened(number, its, memory)]
                if table is not None:
                    tables[number] = (table + its) % 2**64
        self._used = [one for _, one in opened]
        if self._tasks:
            self._read_tasks(opened, tables, memory)
        for runtime in self._used:
            runtime.prepare(memory)

    def look(
        self,
        thread: int,
        memory: TargetMemory,
        standing: Callable[[], Standing] | None = None,
        running: TargetMemory | None = None,
    ) -> list[Looked]:
        """What a thread runs, by the number that it has for itself; without `standing` it may be running.

        With `running`, the memory of the process as it is now, the other need only have what is different all the time.
        """
        found = (runtime.look(thread, memory, standing, running) for runtime in self._used)
        return [one for one in found if one is not None]

    def __bool__(self) -> bool:
        """Whether there is one in the modules of the last `use`."""
        return bool(self._used)

    @property
    def is_foreseeable(self) -> bool:
        """Whether a look at a running thread reads the same memory as one that follows at once."""
        return all(runtime.is_foreseeable for runtime in self._used)

    def chains(self, looked: Sequence[list[Looked]], stacks: Stacks | None) -> list[list[Chain]]:
        """The same of several threads with names, for which none need stand still; `stacks` were walked of them."""
        return [[one.chain(self.frames, _walked(stacks, number)) for one in its] for number, its in enumerate(looked)]

    def tasks(self, threads: Sequence[int], looked: Sequence[list[Looked]], troubles: list[str]) -> list[AsyncioTask]:
        """The tasks of asyncio of all threads, whose numbers these are; what is wrong with them is added."""
        if not self._tasks:
            return []
        from walkback.runtimes.python.reading import Followed, PythonRuntime

        found: list[AsyncioTask] = []
        for runtime in self._used:
            if isinstance(runtime, PythonRuntime):
                its = [
                    (thread, one)
                    for thread, several in zip(threads, looked, strict=True)
                    for one in several
                    if isinstance(one, Followed) and one.runtime is runtime
                ]
                found += runtime.join_tasks(its)
                troubles += [
                    f"thread {thread}: {trouble}"
                    for thread, one in its
                    if one.tasks is not None
                    for trouble in one.tasks.troubles
                ]
        return found

    def is_entering(self, pc: int) -> bool:
        """Whether a thread with this program counter may be entering an evaluator, and its chain is not in order."""
        return any(runtime.is_entering(pc) for runtime in self._used)

    @staticmethod
    def is_handler(symbol: str | None) -> bool:
        """Whether a function is a piece of an evaluator, which has another frame behind it."""
        return symbol is not None and symbol.startswith(HANDLERS)

    def _opened(self, module: int, bias: int, memory: TargetMemory) -> list[Runtime]:
        key = module, bias
        if key not in self._runtimes:
            self._runtimes[key] = []
            for file in self._files_of(module):
                with self._complaining(module):
                    self._runtimes[key].append(file.open(bias, memory, self._byteorder, self._limit))
        return self._runtimes[key]

    def _read_tasks(self, opened: list[tuple[int, Runtime]], tables: dict[int, int], memory: TargetMemory) -> None:
        """Have each Python read asyncio's tasks, by the table of its own file, or of another that the process has."""
        from walkback.runtimes.python import tasklayout
        from walkback.runtimes.python.reading import PythonRuntime

        pythons = [(module, one) for module, one in opened if isinstance(one, PythonRuntime)]
        for module, python in pythons:
            if python.version < tasklayout.FIRST:
                shown = ".".join(map(str, python.version))
                self._complain(f"asyncio's tasks can be shown from Python 3.14 on, and this is {shown}")
            elif tables:
                with self._complaining(module):
                    python.read_tasks(tables.get(module, next(iter(tables.values()))), memory)
        if not pythons and not self.troubles:
            self._complain("asyncio's tasks are those of Python, which this process does not run")

    @contextmanager
    def _complaining(self, module: int) -> Iterator[None]:
        """What goes wrong with a module becomes a line."""
        try:
            yield
        except WalkbackError as error:
            elf = self._elf_of(module)
            self._complain(str(error.within(file=elf.name if elf is not None else None)))

    def _complain(self, trouble: str) -> None:
        if trouble not in self.troubles:
            self.troubles.append(trouble)

    def _table_of(self, module: int) -> int | None:
        if module not in self._tables:
            elf = self._elf_of(module)
            self._tables[module] = tasks_in(elf) if elf is not None else None
        return self._tables[module]

    def _files_of(self, module: int) -> list[RuntimeFile]:
        if module not in self._files:
            elf = self._elf_of(module)
            found = [kind(elf) for kind in _KINDS] if elf is not None else []
            self._files[module] = [one for one in found if one is not None]
        return self._files[module]


def _walked(stacks: Stacks | None, number: int) -> Walked:
    """The native frames of one stack."""
    if stacks is None:
        return Walked([], [])
    frames = slice(int(stacks.first[number]), int(stacks.first[number + 1]))
    return Walked(stacks.lookup[frames].tolist(), stacks.sp[frames].tolist())
