"""`UnwindTable`: what every unwind format says, as columns.

A *range* is what a format calls a function: code with rows. A *row* says which rule holds from its offset on. Rules
are few and rows many, so a row holds the number of its rule. Nothing here knows any format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from operator import index
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from walkback.arch import Machine
from walkback.arrays import I32, I64, U8, U32, U64, Bools
from walkback.table import _search
from walkback.table.pieces import Pieces
from walkback.table.rule import RULE, Kind, Rule, RuleArray


@dataclass(frozen=True, slots=True)
class Found:
    """What a table says of one address."""

    range: int
    """Number of the range in the table."""
    row: int | None
    """Number of the row; None when the range has no row that covers the address."""
    start: int
    """Where the range starts."""
    size: int
    offset: int
    """The address from the start of the range, or from the start of the repeating block."""
    signal: bool
    """Whether the range is a signal frame."""
    pauth_key: int
    """AArch64: 0 for key A, 1 for key B."""
    rule: Rule | None


@dataclass(slots=True)
class UnwindTable:
    """Ranges of code, their rows, and the rules that the rows name."""

    machine: Machine
    range_section: I32
    """In relocatable files the text section's index; -1 where addresses are absolute."""
    range_start: U64
    range_size: U64
    range_first_row: I64
    range_rows: I64
    range_signal: Bools
    range_pauth_key: U8
    range_block: U32
    """Size of the repeating block (PLT); 0 for ordinary code."""
    range_origin: I64
    """Number of the function in the source."""
    row_offset: U32
    """From the start of the range, or of its repeating block."""
    row_rule: U32
    rules: RuleArray
    """Distinct entries of dtype `RULE`."""
    _pieces: dict[int, Pieces] = field(default_factory=dict, repr=False)
    _by_section: tuple[I32, I64] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.range_start)

    def rule(self, row: int) -> Rule:
        """The rule of a row, for a person."""
        return Rule.from_record(self.rules[self.row_rule[row]])

    def rule_texts(self) -> Sequence[str]:
        """The text of every distinct rule, by number."""
        return [Rule.from_record(record).text(self.machine) for record in self.rules]

    def frameless(self) -> Bools:
        """Which ranges make a frame and never base the CFA on the frame pointer; repeating blocks do not count."""
        cfa = self.rules["cfa"]
        by_register = cfa["kind"] == Kind.REGISTER
        framed = by_register & (cfa["register"] == self.machine.sp) & (cfa["offset"] > self.machine.entry_sp_to_cfa)
        kept = by_register & (cfa["register"] == self.machine.fp)
        lost: Bools = (self.rows_where(framed) > 0) & (self.rows_where(kept) == 0) & (self.range_block == 0)
        return lost

    def rows_where(self, chosen: Bools) -> I64:
        """How many rows of each range have a chosen rule; `chosen` has an element for each of `rules`."""
        if not chosen.any():
            return np.zeros(len(self), np.int64)
        sums = np.concatenate(([0], np.cumsum(chosen[self.row_rule])))
        counts: I64 = sums[self.range_first_row + self.range_rows] - sums[self.range_first_row]
        return counts

    def chosen(self, ranges: I64) -> Self:
        """The table of some ranges only; their rows stay where they are."""
        names = [one.name for one in fields(self) if one.name.startswith("range_")]
        columns = {name: getattr(self, name)[ranges] for name in names}
        return replace(self, **columns, _pieces={}, _by_section=None)

    def find_many(self, pcs: npt.ArrayLike, *, section: int = -1) -> tuple[I64, I64]:
        """Range and row for each program counter, -1 where there is none.

        Where ranges overlap, the one that starts last holds, and of several with one start the last in the table that
        is not empty.
        """
        # A list goes through objects, because NumPy makes floats of small and large integers together.
        wanted = np.asarray(pcs, None if isinstance(pcs, np.ndarray) else object)
        if wanted.dtype.kind not in "iuO":
            message = f"program counters are integers, not {wanted.dtype}"
            raise TypeError(message)
        flat = wanted.reshape(-1)
        outside = np.zeros(len(flat), np.bool_)
        if wanted.dtype.kind != "u":
            numbers = flat if wanted.dtype.kind == "i" else np.array([index(pc) for pc in flat.tolist()], object)
            outside = ((numbers < 0) | (numbers >= 2**64)).astype(np.bool_)
            flat = np.where(outside, 0, numbers)
        ranges, rows = self._find(np.ascontiguousarray(flat, np.uint64), section)
        ranges[outside] = rows[outside] = -1
        return ranges.reshape(wanted.shape), rows.reshape(wanted.shape)

    def _find(self, wanted: U64, section: int) -> tuple[I64, I64]:
        pieces = self._pieces.get(section)
        if pieces is None:
            chosen = self._ranges_of(section)
            pieces = Pieces.of(self.range_start[chosen], self.range_size[chosen], chosen)
            self._pieces[section] = pieces
        return _search.find(
            wanted,
            pieces.starts,
            pieces.lasts,
            pieces.ranges,
            pieces.directory,
            pieces.shift,
            self.range_start,
            self.range_first_row,
            self.range_rows,
            self.range_block,
            self.row_offset,
        )

    def _ranges_of(self, section: int) -> I64:
        """The ranges in one text section; there can be as many sections as ranges."""
        if self._by_section is None:
            order = np.argsort(self.range_section, kind="stable")
            self._by_section = (self.range_section[order], order)
        sections, order = self._by_section
        first, last = np.searchsorted(sections, [section, section + 1])
        return order[first:last]

    def find(self, pc: int, *, section: int = -1) -> Found | None:
        """The range and rule that hold at one program counter; None outside of all ranges."""
        if not 0 <= index(pc) < 2**64:
            return None
        ranges, rows = self._find(np.array([pc], np.uint64), section)
        number, row = int(ranges[0]), int(rows[0])
        if number < 0:
            return None
        start, block = int(self.range_start[number]), int(self.range_block[number])
        return Found(
            range=number,
            row=row if row >= 0 else None,
            start=start,
            size=int(self.range_size[number]),
            offset=(pc - start) % block if block else pc - start,
            signal=bool(self.range_signal[number]),
            pauth_key=int(self.range_pauth_key[number]),
            rule=self.rule(row) if row >= 0 else None,
        )


def rule_array(rules: Sequence[Rule]) -> RuleArray:
    """Rules as an array of dtype `RULE`."""
    return np.array([rule.record() for rule in rules], RULE)


def joined(tables: Sequence[UnwindTable]) -> UnwindTable:
    """Several tables of one file as one; `range_origin` still counts in each."""
    if len(tables) == 1:
        return tables[0]
    rows = np.cumsum([0, *(len(one.row_offset) for one in tables)])
    rules = np.cumsum([0, *(len(one.rules) for one in tables)])
    names = [one.name for one in fields(UnwindTable) if one.name.startswith("range_")]
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in tables]) for name in names}
    columns["range_first_row"] = np.concatenate(
        [one.range_first_row + first for one, first in zip(tables, rows[:-1], strict=True)]
    )
    return replace(
        tables[0],
        row_offset=np.concatenate([one.row_offset for one in tables]),
        row_rule=np.concatenate(
            [one.row_rule + np.uint32(first) for one, first in zip(tables, rules[:-1].tolist(), strict=True)]
        ),
        rules=np.concatenate([one.rules for one in tables]),
        **columns,
        _pieces={},
        _by_section=None,
    )
