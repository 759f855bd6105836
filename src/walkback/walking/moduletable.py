"""All that a walk needs of one file, as a handful of arrays.

For each address `.sframe` goes before `.eh_frame`, that before `.debug_frame` of the file or of its separate debug
file, and that before the table of functions of a Go program. Where these describe less than half of the code of a small
file the rest is made from the code itself. `only` takes one kind alone: `sframe`, which for a file without it is
derived from its call frame information, `cfi`, `go`, or `code`, which is then read whatever its size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import U8, U32, U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile, debug_file
from walkback.elf import layout as elf_layout
from walkback.elf.golang import is_go
from walkback.elf.sframe import has_sframe
from walkback.stacks.stacks import How
from walkback.table.rule import PartKind, of_kind
from walkback.table.spans import Spans
from walkback.table.table import UnwindTable
from walkback.walking.abi import ABIS, Flag, Op, Step
from walkback.walking.points import NO_STEP, Blocks, Points, empty_blocks, merged, points_of
from walkback.walking.steps import (
    Steps,
    joined_steps,
    steps_of,
    steps_of_frames,
    steps_of_rules,
    unusable,
    with_signals,
)
from walkback.walking.trampolines import find_trampolines

if TYPE_CHECKING:
    from walkback.gopclntab.files import GoSource

Only = Literal["sframe", "cfi", "go", "code", "fp"]
Tables = Literal[Only, "registers"]
"""With `registers` all that follow more registers than SFrame, and what no other table describes."""

WHOLE = {None, "registers"}
"""What takes all that there is, but perhaps for SFrame."""
_LEAST_CODE = 272
"""Bytes; the C runtime alone has fewer."""
_MOST_CODE = 1 << 21
"""Bytes; rules are made for at most half of them, while a walk waits."""
_LARGEST_FILE = 1 << 26
"""Bytes of a file whose code is looked at."""
_LAST = (1 << 64) - 1
"""The last address."""
_LINKAGE = (".plt", ".plt.sec", ".plt.got", ".iplt")
_BARE = (".init", ".fini")
"""The C runtime's functions, whose frames no assembler was given."""


@dataclass(frozen=True, slots=True)
class ModuleTable:
    """One file."""

    points: Points
    steps: Steps
    directory: U32
    shift: int
    trampoline_start: U64
    """Rising: where code stands that signal handlers return to."""
    trampoline_kind: U8
    declared: bool
    """Its `.sframe` says that all functions keep the frame pointer."""
    troubles: tuple[str, ...] = ()
    """What of it could not be read."""

    def columns(self) -> dict[str, np.ndarray]:
        """All arrays, by the names that the compiled walk has for them."""
        blocks, steps = self.points.blocks, self.steps
        return {
            "points_start": self.points.start,
            "points_step": self.points.step,
            "directory": self.directory,
            "trampoline_start": self.trampoline_start,
            "trampoline_kind": self.trampoline_kind,
            **{f"block_{column.name}": getattr(blocks, column.name) for column in fields(Blocks)},
            **{_STEP_COLUMNS[column.name]: getattr(steps, column.name) for column in fields(Steps)},
        }

    @classmethod
    def of_columns(cls, columns: dict[str, np.ndarray], shift: int, declared: bool, troubles: Sequence[str]) -> Self:
        """The table that has these arrays; raises ValueError if those that belong together differ in length."""
        blocks = Blocks(*(columns[f"block_{column.name}"] for column in fields(Blocks)))
        steps = Steps(*(columns[_STEP_COLUMNS[column.name]] for column in fields(Steps)))
        points = Points(columns["points_start"], columns["points_step"], blocks)
        trampolines = columns["trampoline_start"], columns["trampoline_kind"]
        groups = (
            (points.start, points.step),
            trampolines,
            (steps.cfa, steps.register, steps.operand, steps.first, steps.end, steps.flags, steps.how),
            (steps.save_column, steps.save_op, steps.save_register, steps.save_operand),
            (steps.expression_first, steps.expression_end),
            (blocks.start, blocks.size, blocks.first, blocks.end),
            (blocks.offset, blocks.step),
        )
        if not 0 <= shift < 64 or any(len({len(column) for column in group}) > 1 for group in groups):
            raise ValueError("columns of one table differ in length")
        return cls(points, steps, columns["directory"], shift, *trampolines, declared, tuple(troubles))


_STEP_COLUMNS = {
    column.name: column.name if column.name.startswith(("save_", "expression_")) else f"step_{column.name}"
    for column in fields(Steps)
}
"""The name of each column of steps among all columns."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one source says."""

    points: Points
    steps: Steps


def module_table(elf: ElfFile, machine: Machine, only: Tables | None = None) -> ModuleTable:
    """Read a file's tables; what cannot be read is reported and left out."""
    troubles: list[str] = []
    source = _go_source(elf, machine, troubles) if only not in {"fp", "code"} else None
    with_go = only in WHOLE or only == "go"
    go, parts = (None, []) if source is None else (source.table, _of_go(source, whole=with_go))
    declared = False
    if only in {None, "sframe"}:
        sframe, declared = _sframe(elf, machine, troubles, derive=only == "sframe")
        parts += sframe
    if only in {None, "cfi", "registers"}:
        parts += _call_frames(elf, machine, troubles)
    if go is not None and with_go:
        parts.append(_of_table(go, How.GO))
    if only in WHOLE or only == "code":
        parts += _code(elf, machine, parts, troubles, always=only == "code")
    if only not in {"sframe", "cfi", "fp"}:
        parts += _linkage(elf, machine)
        parts += _entry(elf, machine, parts)
    return _table(parts, find_trampolines(elf, machine, troubles), declared, troubles)


def table_of_rules(rules: UnwindTable, only: Tables | None) -> ModuleTable:
    """The table of code that is in no file, with rules that were made from it: no other table could describe it."""
    return _table([_of_table(rules, How.CODE)] if only != "fp" else [], [], False, [])


def no_table(*troubles: str) -> ModuleTable:
    """The table of a file that is not read, and why."""
    return _table([], [], False, troubles)


def _table(
    parts: Sequence[_Part], trampolines: Sequence[tuple[int, int]], declared: bool, troubles: Sequence[str]
) -> ModuleTable:
    points = merged([part.points for part in parts], [len(part.steps) for part in parts])
    directory, shift = points.directory()
    return ModuleTable(
        points=points,
        steps=joined_steps([part.steps for part in parts] or [steps_of([])]),
        directory=directory,
        shift=shift,
        trampoline_start=np.array([place for place, _ in trampolines], np.uint64),
        trampoline_kind=np.array([kind for _, kind in trampolines], np.uint8),
        declared=declared,
        troubles=tuple(troubles),
    )


def _go_source(elf: ElfFile, machine: Machine, troubles: list[str]) -> GoSource | None:
    """The table of functions of a Go program, if it can be read."""
    try:
        if not is_go(elf):
            return None
        from walkback.gopclntab.files import go_source  # few files are Go's

        source = go_source(elf)
        return source if source is not None and source.machine is machine and source.table is not None else None
    except WalkbackError as error:
        troubles.append(str(error))
        return None


def _of_go(source: GoSource, *, whole: bool) -> list[_Part]:
    """What call frame information says nothing of: functions that nobody calls.

    With `whole` also those that change the stack, and those that a signal makes others call.
    """
    from walkback.walking.gosteps import crossing_steps

    go = source.table
    rule = go.row_rule[go.range_first_row]
    special = of_kind(go.rules["ra"], PartKind.UNDEFINED)[rule]
    if whole:
        special |= of_kind(go.rules["cfa"], PartKind.INEXPRESSIBLE)[rule] | go.range_signal
    chosen = go.chosen(np.flatnonzero(special))
    found = [_Part(*crossing_steps(source.crossings))] if whole and source.crossings else []
    return [*found, _of_table(chosen, How.GO, skips=False)] if len(chosen) else found


def _points_of_places(places: list[tuple[int, int]]) -> Points:
    """The points of some code, rising and disjoint, that has the first step."""
    start = np.array([edge for place in places for edge in place], np.uint64)
    step = np.tile(np.array([0, NO_STEP], np.uint32), len(places))
    kept = np.ones(len(start), np.bool_)
    kept[1:-1:2] = start[1:-1:2] != start[2::2]
    return Points(start[kept], step[kept], empty_blocks())


def _sframe(elf: ElfFile, machine: Machine, troubles: list[str], *, derive: bool) -> tuple[list[_Part], bool]:
    """What its own sections say, and whether they say that all functions keep the frame pointer.

    With `derive`, of a file that has none, what its call frame information comes to.
    """
    if not (derive or _may_have_sframe(elf)):
        return [], False
    # Most files have none, and these take longer to import than most tables to read.
    from walkback.walking.sframetables import derived_table, own_table

    table, declared = own_table(elf, machine, troubles)
    if table is not None:
        return [_of_table(table, How.SFRAME)], declared
    table = derived_table(elf, machine, troubles) if derive else None
    return ([_of_table(table, How.DERIVED)] if table is not None else []), False


def _may_have_sframe(elf: ElfFile) -> bool:
    """Whether anything in a file looks like SFrame; what cannot be read does."""
    with contextlib.suppress(WalkbackError):
        return has_sframe(elf)
    return True


def _of_table(table: UnwindTable, how: How, *, skips: bool = True) -> _Part:
    """A table's points; signal frames without rows have the registers where the kernel saves them.

    What has rules that nobody can follow is left to other tables, unless nothing `skips` it.
    """
    steps = steps_of_rules(table.rules, table.machine, how)
    rules = len(steps)
    unmarked = bool(table.range_signal.any())
    context = steps_of([(ABIS[table.machine].trampolines[0].context, How.SIGNAL)])
    steps = joined_steps((with_signals(steps) if unmarked else steps, context))
    points = points_of(
        table,
        unusable=unusable(table.rules) if skips else None,
        signal_steps=rules if unmarked else 0,
        head=len(steps) - 1,
    )
    return _Part(points, steps)


def _call_frames(elf: ElfFile, machine: Machine, troubles: list[str]) -> list[_Part]:
    """What its call frame information says; that of a separate debug file last."""
    parts = []
    for source in _frame_sources(elf, troubles):
        try:
            if source.machine is machine:
                parts.append(_of_frames(source, elf))
        except WalkbackError as error:
            troubles.append(str(error))
    return parts


def _frame_sources(elf: ElfFile, troubles: list[str]) -> Iterator[FrameSource]:
    try:
        yield from frame_sources(elf)
    except WalkbackError as error:
        troubles.append(str(error))
    with contextlib.suppress(WalkbackError):
        debug = debug_file(elf)
        if debug is not None:
            yield from (source for source in frame_sources(debug) if not source.frames.eh)


def _of_frames(source: FrameSource, elf: ElfFile) -> _Part:
    frames = source.frames
    steps, row_step = steps_of_frames(frames)
    fdes, cies = frames.fdes, frames.cies
    count = len(fdes)
    signal = cies.signal[fdes.cie] != 0 if len(cies) else np.zeros(count, np.bool_)
    spans = Spans(
        range_section=np.full(count, -1, np.int32),
        range_start=fdes.start,
        range_size=np.where(fdes.fault == 0, fdes.size, np.uint64(0)),
        range_first_row=fdes.first_row,
        range_rows=fdes.rows,
        range_signal=signal,
        range_pauth_key=np.zeros(count, np.uint8),
        range_block=np.zeros(count, np.uint32),
        range_origin=np.arange(count),
        row_offset=frames.row_offset,
        row_rule=row_step,
    )
    live = elf.is_code(spans.range_start) & (spans.range_size > 0)
    if not live.all():
        spans = spans.chosen(np.flatnonzero(live))
    marked = bool(spans.range_signal.any())
    points = points_of(spans, signal_steps=len(steps) if marked else 0)
    return _Part(points, with_signals(steps) if marked else steps)


def _code(
    elf: ElfFile, machine: Machine, parts: Sequence[_Part], troubles: list[str], *, always: bool = False
) -> list[_Part]:
    """What its code shows, if the tables describe little of it, or `always`."""
    if not (always or may_need_code(elf)):
        return []
    points = merged([part.points for part in parts], [len(part.steps) for part in parts])
    known = np.flatnonzero(points.step[:-1] != NO_STEP)
    start, size = points.start[known], np.diff(points.start)[known]
    code = code_size(elf)
    left = code - int(size.sum())
    if not always and (2 * left <= code or left < _LEAST_CODE):
        return []
    from walkback.walking.codetables import MOST_CODE, code_table  # few files need it

    table = code_table(elf, machine, start, size, troubles, most=code if always else MOST_CODE)
    return [_of_table(table, How.CODE)] if table is not None else []


def may_need_code(elf: ElfFile) -> bool:
    """Whether rules may be made from the code of a file, if its tables describe little of it."""
    return _LEAST_CODE <= code_size(elf) <= _MOST_CODE and len(elf.data) <= _LARGEST_FILE


def code_size(elf: ElfFile) -> int:
    """Bytes in executable segments: headers and constants too, where the linker does not separate them."""
    with contextlib.suppress(WalkbackError):
        loads = (elf.segments["type"] == elf_layout.PT_LOAD) & (elf.segments["flags"] & elf_layout.PF_X != 0)
        return sum(elf.segments["filesz"][loads].tolist())
    return 0


def _linkage(elf: ElfFile, machine: Machine) -> list[_Part]:
    """Procedure linkage tables that nothing describes are as at the first instruction of a function.

    So is the first instruction of some functions: where a thread waits for the first page of a file it is there.
    """
    places: list[tuple[int, int]] = []
    with contextlib.suppress(WalkbackError):
        for name in (*_LINKAGE, *_BARE):
            for index in elf.sections_named(name):
                section = elf.sections[index]
                if section["size"] and section["flags"] & elf_layout.SHF_EXECINSTR:
                    size = 1 if name in _BARE else int(section["size"])
                    places.append((int(section["addr"]), int(section["addr"]) + size))
        places = [place for place in places if place[1] <= _LAST]
    places.sort()
    if not places or any(end > start for (_, end), (start, _) in pairwise(places)):
        return []
    return [_Part(_points_of_places(places), steps_of([(ABIS[machine].entry, How.ENTRY)]))]


def _entry(elf: ElfFile, machine: Machine, parts: Sequence[_Part]) -> list[_Part]:
    """Nobody has called the code at which the kernel begins a process."""
    if not elf.entry or any(_describes(part.points, elf.entry) for part in parts):
        return []
    from walkback.walking.entrycode import entry_code  # few files need it

    with contextlib.suppress(WalkbackError):
        found = entry_code(elf, machine)
        if found is not None:
            outermost = Step((Op.BAD, 0, 0), (), Flag.OUTERMOST)
            return [_Part(_points_of_places([found]), steps_of([(outermost, How.ENTRY)]))]
    return []


def _describes(points: Points, address: int) -> bool:
    place = int(np.searchsorted(points.start, np.uint64(address), side="right")) - 1
    return place >= 0 and int(points.step[place]) != int(NO_STEP)
