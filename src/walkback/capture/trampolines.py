"""Python's trampolines: code that `python -X perf` copies for each of its functions, so that a stack has them.

A trampoline calls the evaluator, and the perf map of the process gives it the name of the function. Nothing describes
it, and no recording has its code. But all of them are copies of a few instructions, which stand between two symbols in
Python's own file; so their rules are made from that code, and proved. What a perf map says must fit it: only what has
the name of a Python function and the size of this code counts, and only in memory with code that is in no file. Where
two such lines overlap, neither counts.
"""

from __future__ import annotations

import contextlib
import re
from array import array
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import U64, changes, runs
from walkback.base.errors import WalkbackError
from walkback.capture.dumps import NO_CODE
from walkback.elf.named import addresses_of
from walkback.naming.modules import Module, Modules
from walkback.symbols.perfmap import PerfMapFile
from walkback.symbols.spans import SettledSpans
from walkback.table.table import UnwindTable, joined
from walkback.walking.copies import Copies, rules_of_code, rules_of_copies
from walkback.walking.samples import Space

_BEGIN, _END = "_Py_trampoline_func_start", "_Py_trampoline_func_end"
_LONGEST = 64
"""Bytes of the code that is copied; 8 to 28 are known."""
_FARTHEST = 1024
"""Bytes from one copy to the next; 11 to 32 are known."""
_MARK = b" py::"
_LINE = re.compile(rb"^(?:0[xX])?([0-9a-fA-F]{1,16}) (?:0[xX])?([0-9a-fA-F]{1,2}) py::", re.MULTILINE)
_MOST_LINES = 1 << 19
"""Of one process; each is a function of Python."""
_MOST_ROWS = 1 << 12
"""Rows of copies without a gap; Python makes one for every 64 KiB of them."""
_MOST_PROCESSES = 1 << 14


class _Template(NamedTuple):
    """What is copied."""

    code: bytes
    rules: UnwindTable


class Trampolines:
    """Those of all processes of a capture, as far as their perf maps go."""

    def __init__(self, modules: Modules, machine: Machine) -> None:
        self._modules = modules
        self._machine = machine
        self._templates: dict[int, _Template | None] = {}
        """By module."""
        self._made: dict[int, _MadeCode] = {}
        """By process."""
        self._looked: set[int] = set()
        """The processes whose maps were looked at since the last renewal."""

    def renew(self) -> None:
        """Look again at the map of each process that is asked for: one that runs adds to its own."""
        self._looked.clear()

    def of(self, pid: int, modules: Callable[[], Iterable[int]]) -> Space:
        """Where those of a process are that has code of these modules; the same object as long as that is the same."""
        if pid <= 0:
            return NO_CODE
        made = self._made.get(pid)
        if made is None:
            if len(self._made) >= _MOST_PROCESSES:
                self._made.clear()
            made = self._made[pid] = _MadeCode(pid)
        if pid not in self._looked:
            self._looked.add(pid)
            made.lines.read_on()
        if len(made.lines):
            found = [one for one in map(self._template, sorted(modules())) if one is not None]
            templates = {one.code: one for one in found}
            if made.made_of != (len(made.lines), set(templates)):
                made.made_of = len(made.lines), set(templates)
                made.code = self._code(pid, made.lines, list(templates.values()))
        return made.code

    def _template(self, number: int) -> _Template | None:
        if number < 0:
            return None
        if number not in self._templates:
            self._templates[number] = None
            with contextlib.suppress(WalkbackError):
                self._templates[number] = self._read_template(number)
        return self._templates[number]

    def _read_template(self, number: int) -> _Template | None:
        """That of a file; None if it has none, or if its rules are not known."""
        elf = self._modules[number].elf
        if elf is None or elf.machine != self._machine.elf_machine:
            return None
        begin, end = ({*addresses_of(elf, name)} for name in (_BEGIN, _END))
        if len(begin) != 1 or len(end) != 1:
            return None
        start, size = min(begin), min(end) - min(begin)
        if not 0 < size <= _LONGEST:
            return None
        code = bytes(elf.mapped_data(start, size))
        rules = rules_of_code(code, self._machine, elf.byteorder)
        return _Template(code, rules) if rules is not None else None

    def _code(self, pid: int, lines: _Lines, templates: list[_Template]) -> Space:
        sizes = [len(one.code) for one in templates]
        start, size = lines.fitting(sizes)
        tables, parts = [], []
        for one in templates:
            # Of two that are equally long nobody knows which it is.
            if sizes.count(len(one.code)) == 1 and len(ours := start[size == len(one.code)]):
                copies = _in_rows(ours, len(one.code))
                tables.append(rules_of_copies(one.rules, copies))
                length = (copies.count - 1).astype(np.uint64) * np.uint64(copies.distance)
                parts.append((copies.start, copies.start + length + np.uint64(len(one.code))))
        if not tables:
            return NO_CODE
        module = Module(f"/tmp/perf-{pid}.map", is_made=True, rules=joined(tables), named_by=pid)  # noqa: S108 - a name
        number = self._modules.add(module, ("trampolines", len(self._modules)))
        spans = SettledSpans(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        count = len(spans.start)
        numbers, none = np.full(count, number, np.int32), np.zeros(count, np.uint64)
        return Space(spans.start, spans.end - np.uint64(1), numbers, none)


def within(code: Space, start: U64, last: U64) -> Space:
    """What of some code is in memory between these addresses, which rise."""
    low, high = np.searchsorted(code.last, start), np.searchsorted(code.start, last, "right")
    counts = (high - low).clip(min=0)
    row, place = runs(low, counts), np.repeat(np.arange(len(start)), counts)
    first, end = np.maximum(code.start[row], start[place]), np.minimum(code.last[row], last[place])
    return Space(first, end, code.module[row], code.bias[row])


class _Lines:
    """The lines of a perf map about functions of Python."""

    def __init__(self, pid: int) -> None:
        self._start, self._size = array("Q"), array("Q")
        self._file = PerfMapFile(pid)

    def __len__(self) -> int:
        return len(self._start)

    def read_on(self) -> None:
        """Take in what the process has added since the last time."""
        added = self._file.read_on()
        if _MARK not in added:  # that of another compiler may be long
            return
        for line in _LINE.finditer(added):
            if len(self) >= _MOST_LINES:
                break
            self._start.append(int(line[1], 16))
            self._size.append(int(line[2], 16))

    def fitting(self, sizes: list[int]) -> tuple[U64, U64]:
        """Where code of one of these sizes begins, rising, and its size; without what overlaps."""
        start, size = np.array(self._start, np.uint64), np.array(self._size, np.uint64)
        fits = np.isin(size, np.array(sizes, np.uint64)) & (start < np.uint64(2**64 - 2 * _FARTHEST))
        start, size = start[fits], size[fits]
        order = np.lexsort((size, start))
        start, size = start[order], size[order]
        kept = changes(start, size)
        start, size = start[kept], size[kept]
        overlaps = start[1:] < np.maximum.accumulate(start + size)[:-1]
        alone = np.ones(len(start), np.bool_)
        alone[1:] &= ~overlaps
        alone[:-1] &= ~overlaps
        return start[alone], size[alone]


class _MadeCode:
    """What is known of one process."""

    def __init__(self, pid: int) -> None:
        self.lines = _Lines(pid)
        self.made_of: tuple[int, set[bytes]] = (0, set())
        """How many lines, and the templates, `code` was made of."""
        self.code = NO_CODE


def _in_rows(start: U64, size: int) -> Copies:
    """Copies of this size, together where they have the distance that most of them have."""
    away = np.diff(start)
    near, times = np.unique(away[away <= _FARTHEST], return_counts=True)
    distance = int(near[np.argmax(times)]) if len(near) else size
    first = np.flatnonzero(np.append(True, away != distance))
    count = np.diff(np.append(first, len(start)))
    return Copies(start[first][:_MOST_ROWS], count[:_MOST_ROWS], distance)
