"""`UnwindTable`: what every unwind format says, as columns.

Rules are few and rows many, so a row holds the number of its rule. Nothing here knows any format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import index

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, Bools, runs
from walkback.base.columns import Columnar, NamedColumns
from walkback.base.dataclass import dataclass
from walkback.table.rule import RULE, PartKind, Rule, RuleArray, of_kind
from walkback.table.spans import Spans, joined_spans


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


@dataclass(slots=True, repr=False)
class UnwindTable(Spans, Columnar):
    """Ranges of code, their rows, and the rules that the rows name.

    >>> [section] = walkback.ElfFile("a.out").sframe
    >>> section.table.find(0x1024).rule.text(section.table.machine)
    'CFA = rbp+16, RA = *(CFA-8), FP = *(CFA-16)'
    >>> section.table.columns()["address"].tolist()
    [4096, 4128, 4129, 4132, 4159, 4192, 4193, 4196]
    """

    machine: Machine
    rules: RuleArray
    """Distinct entries of dtype `RULE`."""

    def __repr__(self) -> str:
        counts = f"functions={len(self)}, rows={len(self.row_offset)}, rules={len(self.rules)}"
        return f"UnwindTable(machine={self.machine.name!r}, {counts})"

    def rule(self, row: int) -> Rule:
        """The rule of a row, for a person."""
        return Rule.from_record(self.rules[self.row_rule[row]])

    def rule_texts(self) -> Sequence[str]:
        """The text of every distinct rule, by number."""
        return [Rule.from_record(record).text(self.machine) for record in self.rules]

    def columns(self) -> NamedColumns:
        """A row each: where it begins, where its function does, in objects the section of these, and the rule."""
        ranges, row = np.repeat(np.arange(len(self)), self.range_rows), runs(self.range_first_row, self.range_rows)
        found = NamedColumns(address=self.range_start[ranges] + self.row_offset[row], function=self.range_start[ranges])
        if (self.range_section >= 0).any():
            found["section"] = self.range_section[ranges]
        found["rule"] = np.array([*self.rule_texts(), None], object)[self.row_rule[row]]
        return found

    def frameless(self) -> Bools:
        """Which ranges make a frame and never base the CFA on the frame pointer; repeating blocks do not count."""
        cfa = self.rules["cfa"]
        by_register = of_kind(cfa, PartKind.REGISTER)
        framed = by_register & (cfa["register"] == self.machine.sp) & (cfa["offset"] > self.machine.entry_sp_to_cfa)
        kept = by_register & (cfa["register"] == self.machine.fp)
        lost: Bools = (self.rows_where(framed) > 0) & (self.rows_where(kept) == 0) & (self.range_block == 0)
        return lost

    def rows_where(self, chosen: Bools) -> I64:
        """How many rows of each range have a chosen rule; `chosen` has an element for each of `rules`."""
        if not chosen.any():
            return np.zeros(len(self), np.int64)
        first = self.range_first_row
        rows = np.flatnonzero(chosen[self.row_rule])
        counts: I64 = np.searchsorted(rows, first + self.range_rows) - np.searchsorted(rows, first)
        return counts

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
    whole = joined_spans(tables, [len(table.rules) for table in tables])
    return replace(whole, rules=np.concatenate([table.rules for table in tables])) if len(tables) > 1 else whole
