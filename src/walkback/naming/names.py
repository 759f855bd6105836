"""Names, and where asked for lines, of the frames that walks found.

Questions are columns of distinct frames and are answered module by module, so that every table and every outside
program is asked once for many addresses. What cannot be named has no name; why a whole file has none says `troubles`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arraycache import ArrayCache, default_folder
from walkback.base.arrays import I64, U64, Bools, Numbers, first_of_each
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.elf.golang import is_go
from walkback.naming.borders import Borders
from walkback.naming.modules import Module, Modules
from walkback.symbols.demangle import Demangle, shown
from walkback.symbols.kallsyms import KERNEL, Kallsyms
from walkback.symbols.perfmap import PerfMap, read_perf_map
from walkback.symbols.plt import PltNames

if TYPE_CHECKING:
    from walkback.elf import ElfFile
    from walkback.gopclntab.files import GoSource
    from walkback.naming.keptlines import KeptLines
    from walkback.symbols.sourceline import SourceLine


@dataclass(frozen=True, slots=True)
class FrameNames:
    """What is known of each frame, in the order of the question."""

    symbol: list[str | None]
    offset: U64
    """How far the address is behind the beginning of its symbol; 0 without one."""
    module: list[str]
    """The file, or what stands for it in brackets; empty where there is none."""
    lines: list[tuple[SourceLine, ...]] | None
    """Where lines were asked for: the line of each frame, behind those of the calls that are inlined there."""

    @property
    def file(self) -> list[str | None]:
        """The source file of each frame."""
        return [found[-1].file if found else None for found in self.lines or [()] * len(self.symbol)]

    @property
    def line(self) -> list[int]:
        """The line in it; 0 where there is none."""
        return [found[-1].line if found else 0 for found in self.lines or [()] * len(self.symbol)]

    @property
    def inlined(self) -> list[tuple[SourceLine, ...]]:
        """The calls that are inlined in each frame, innermost first."""
        return [found[:-1] for found in self.lines or [()] * len(self.symbol)]


class _Answers:
    """Columns that fill up."""

    def __init__(self, count: int) -> None:
        self.symbol: list[str | None] = [None] * count
        self.start = np.zeros(count, np.uint64)
        self.module = [""] * count
        self.lines: list[tuple[SourceLine, ...]] = [()] * count

    def put(self, rows: I64, names: Sequence[str | None], start: U64) -> None:
        self.start[rows] = start
        for row, name in zip(rows.tolist(), names, strict=True):
            self.symbol[row] = name


class Names:
    """The names of one capture; what was read is kept."""

    def __init__(
        self,
        modules: Modules,
        *,
        demangle: Demangle = True,
        parameters: bool = False,
        kernel: bytes | None = None,
        lines: bool = False,
        inline: bool = True,
        kallsyms: Kallsyms | None = None,
        cache: bool = False,
    ) -> None:
        """`kernel` is the build ID of the kernel that was recorded, which has names if it is the one that runs here.

        `parameters` shows the types of C++ parameters too; `lines` reads debugging information, and with `cache` what
        large files say is kept on disk. Without `inline` calls that are inlined are left out.
        """
        self._modules = modules
        self._demangle = demangle
        self._parameters = parameters
        self.kernel = kernel
        """Can be set once it is known."""
        self._with_lines, self._with_inlined = lines, inline
        modules.search.whole = lines
        self._cache = cache
        self._lines: dict[int, KeptLines] = {}
        self._kallsyms = kallsyms or Kallsyms()
        self._plts: dict[int, PltNames] = {}
        self._go: dict[int, GoSource | None] = {}
        self._borders: dict[int, Borders] = {}
        self._perf_maps: dict[int, PerfMap] = {}
        self._shown: dict[str, str] = {}
        self.troubles: dict[str, str] = {}
        """For files whose names or lines could not be read, the reason."""

    def find(
        self,
        module: Numbers,
        address: U64,
        *,
        pid: Numbers | None = None,
        kernel: Bools | None = None,
        weight: Numbers | None = None,
    ) -> FrameNames:
        """Of each frame the names.

        `address` is as the file of the module counts, and absolute where the module is -1: such an address is looked
        up among the kernel's if `kernel` is set, or else in the perf map of the process `pid`. Files whose frames have
        the most `weight` come first.
        """
        count = len(address)
        answers = _Answers(count)
        addresses = np.asarray(address, np.uint64)
        in_kernel = np.zeros(count, np.bool_) if kernel is None else np.asarray(kernel, np.bool_)
        self._name_kernel(np.flatnonzero(in_kernel), addresses, answers)
        groups = _groups(np.asarray(module, np.int64), ~in_kernel)
        if weight is not None:
            groups.sort(key=lambda group: -int(weight[group[1]].sum()))
        for number, rows in groups:
            if number >= 0:
                self._name_module(number, rows, addresses, answers)
            elif pid is not None:
                unnamed = np.zeros(count, np.bool_)
                unnamed[rows] = True
                for process, ours in _groups(np.asarray(pid, np.int64), unnamed):
                    self._name_jit(process, ours, addresses, answers)
        named = np.array([name is not None for name in answers.symbol], np.bool_)
        offset = np.where(named, addresses - answers.start, np.uint64(0))
        shown = self._show(answers.symbol)
        return FrameNames(shown, offset, answers.module, answers.lines if self._with_lines else None)

    def demangled(self) -> Names:
        """The same with names as people write them."""
        other = copy.copy(self)
        other._demangle, other._shown = True, {}
        return other

    def without_lines(self) -> Names:
        """The same without lines and inlined calls."""
        other = copy.copy(self)
        other._with_lines = False
        return other

    @property
    def makers(self) -> I64 | None:
        """Of each module the process whose perf map names its code, 0 for none, also at the end; None if all are 0."""
        return self._modules.makers

    @property
    def may_fetch(self) -> bool:
        """Whether the order in which files are looked for matters."""
        return self._modules.search.servers is not None

    def forget_perf_maps(self) -> None:
        """Read the maps of processes again when they are next asked for: a process that runs adds to its own."""
        self._perf_maps.clear()

    def _name_kernel(self, rows: I64, addresses: U64, answers: _Answers) -> None:
        if not len(rows):
            return
        modules = [KERNEL] * len(rows)
        if self.kernel is not None and self.kernel == self._kallsyms.build_id:
            names, start, modules = self._kallsyms.locate(addresses[rows])
            answers.put(rows, names, start)
        for row, name in zip(rows.tolist(), modules, strict=True):
            answers.module[row] = name

    def _name_module(self, number: int, rows: I64, addresses: U64, answers: _Answers) -> None:
        module = self._modules[number]
        for row in rows.tolist():
            answers.module[row] = module.name
        elf = module.elf
        if elf is None:
            self.troubles.setdefault(module.name, self._modules.trouble(module))
            return
        wanted = addresses[rows]
        try:
            self._name_symbols(number, module, rows, wanted, answers)
        except WalkbackError as error:
            self.troubles.setdefault(module.name, error.message)
        if self._with_lines:
            found = module.lines.find(wanted) if module.lines is not None else self._lines_of(number, elf, wanted)
            for row, lines in zip(rows.tolist(), found, strict=True):
                answers.lines[row] = lines

    def _lines_of(self, number: int, elf: ElfFile, wanted: U64) -> list[tuple[SourceLine, ...]]:
        """By debugging information, or by Go's own table."""
        if number not in self._lines:
            from walkback.naming.keptlines import KeptLines  # it takes long to import

            cache = ArrayCache(default_folder()) if self._cache else None
            self._lines[number] = KeptLines(elf, self._modules.search, cache)
        found: list[tuple[SourceLine, ...]] = [()] * len(wanted)
        try:
            found = self._lines[number].find(wanted)
        except WalkbackError as error:
            self.troubles.setdefault(elf.name, error.message)
        lost = [place for place, lines in enumerate(found) if not lines]
        with contextlib.suppress(WalkbackError):  # its trouble with names was noted
            if lost and (go := self._go_source(number, elf)) is not None:
                for place, lines in zip(lost, go.lines.find(wanted[lost], inlined=True), strict=True):
                    found[place] = lines
        if (trouble := self._lines[number].trouble) is not None:
            self.troubles.setdefault(elf.name, trouble)
        if not self._with_inlined:
            return [lines[-1:] for lines in found]
        names = [line.function for lines in found for line in lines]
        shown = iter(self._show(names))
        return [tuple(line._replace(function=next(shown)) for line in lines) for lines in found]

    def _name_symbols(self, number: int, module: Module, rows: I64, wanted: U64, answers: _Answers) -> None:
        """By symbol tables, or by Go's own; else in the procedure linkage table, or by where the function begins."""
        symbols, elf = module.symbols, module.elf
        if symbols is None or elf is None:
            return
        holders = symbols.holders(wanted)
        answers.put(rows, symbols.names_of(holders), symbols.starts(holders))
        lost = np.flatnonzero(holders < 0)
        if len(lost) and (go := self._go_source(number, elf)) is not None:
            names, start = go.functions.locate(wanted[lost])
            answers.put(rows[lost], names, start)
            lost = lost[[name is None for name in names]]
        if len(lost):
            plt = self._plts.get(number)
            if plt is None:
                plt = self._plts[number] = PltNames(elf)
            names, start = plt.locate(wanted[lost])
            answers.put(rows[lost], names, start)
            lost = lost[[name is None for name in names]]
        if len(lost):
            answers.put(rows[lost], *self._borders_of(number, module, elf).locate(wanted[lost]))

    def _borders_of(self, number: int, module: Module, elf: ElfFile) -> Borders:
        """Where functions begin that no table names."""
        if number not in self._borders:
            self._borders[number] = Borders(elf, module.name)
        return self._borders[number]

    def _go_source(self, number: int, elf: ElfFile) -> GoSource | None:
        """The table of functions of a Go program."""
        if number not in self._go:
            self._go[number] = None
            if is_go(elf):
                from walkback.gopclntab.files import go_source  # few files are Go's

                self._go[number] = go_source(elf)
        return self._go[number]

    def _name_jit(self, pid: int, rows: I64, addresses: U64, answers: _Answers) -> None:
        if pid <= 0:
            return
        found = self._perf_maps.get(pid)
        if found is None:
            found = self._perf_maps[pid] = read_perf_map(pid)
        names, start = found.locate(addresses[rows])
        if None in names and found.read_on():
            names, start = found.locate(addresses[rows])
        answers.put(rows, names, start)
        for row, name in zip(rows.tolist(), names, strict=True):
            if name is not None:
                answers.module[row] = f"/tmp/perf-{pid}.map"  # noqa: S108 - what perf calls it

    def _show(self, names: list[str | None]) -> list[str | None]:
        """Demangled, each once."""
        if not self._demangle:
            return names
        new = list(dict.fromkeys(name for name in names if name is not None and name not in self._shown))
        self._shown.update(zip(new, shown(new, self._demangle, parameters=self._parameters), strict=True))
        return [None if name is None else self._shown[name] for name in names]


def _groups(column: I64, wanted: Bools) -> list[tuple[int, I64]]:
    """Of the wanted rows those of each value."""
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return []
    rows = rows[np.argsort(column[rows], kind="stable")]
    values, first = first_of_each(column[rows])
    return list(zip(values.tolist(), np.split(rows, first[1:]), strict=True))
