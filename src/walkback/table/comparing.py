"""Do two tables say the same? The rule of one against the rule of the other at every address where either changes.

comparison = compare(one, other)
for stretch in comparison.stretches(Verdict.DIFFERENT):
    print(hex(stretch.start), stretch.one, stretch.other)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.arrays import I32, I64, U8, U64, changes, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError
from walkback.base.intern import intern_records
from walkback.base.oneline import OneLine
from walkback.table import _walk
from walkback.table.rule import OUTERMOST, RULE, PartKind, Rule, RuleArray, of_kind
from walkback.table.settle import Disjoint, disjoint
from walkback.table.table import UnwindTable
from walkback.table.verdict import Verdict

_STEP = 1 << 16
"""Rows that are looked at together: few enough to stay near the processor."""
_MOST_BLOCK_ROWS = 1 << 20
"""Changes that repeating blocks may make; real ones are procedure linkage tables."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Addresses in which the same two rules hold."""

    section: int
    """In relocatable files the text section's index; else -1."""
    start: int
    size: int
    verdict: Verdict
    one: str
    """The rule of the first table, in words; why there is none, if it has the address."""
    other: str
    range_one: int | None
    """The range of the first table, by its `range_origin`."""
    range_other: int | None


@dataclass(slots=True, repr=False)
class Comparison(OneLine):
    """What two tables say of all addresses that either has; columns of all stretches whose rules are not equal."""

    one: UnwindTable
    other: UnwindTable
    bytes_of: U64
    """Bytes of code for each verdict."""
    verdicts_one: U8
    """For each range of the first table the verdicts that it has, as bits."""
    verdicts_other: U8
    section: I32
    start: U64
    size: U64
    verdict: I64
    rule_one: I64
    """The rule's number in its table, -1 for none."""
    rule_other: I64
    range_one: I64
    """The number of the range in its table, -1 for none."""
    range_other: I64

    @property
    def equal(self) -> bool:
        """Whether no address has two different rules."""
        return not self.bytes_of[Verdict.DIFFERENT]

    def code_bytes(self, verdict: Verdict) -> int:
        """How much code has a verdict."""
        return int(self.bytes_of[verdict])

    def ranges(self, verdict: Verdict) -> int:
        """How many functions have such code: of the first table, or if it has none of the other."""
        sides = ((self.one, self.verdicts_one), (self.other, self.verdicts_other))
        counts = [len(distinct(table.range_origin[bits & (1 << verdict) != 0])) for table, bits in sides]
        return counts[1] if verdict == Verdict.ONLY_OTHER else counts[0] or counts[1]

    def stretches(self, verdict: Verdict) -> Iterator[Stretch]:
        """The stretches with a verdict, but EQUAL; neighbours in which the same two rules hold are one."""
        chosen = np.flatnonzero(self.verdict == verdict)
        columns = (self.rule_one, self.rule_other, self.range_one, self.range_other, self.section)
        new = changes(*(column[chosen] for column in columns))
        new[1:] |= self.start[chosen[1:]] != self.start[chosen[:-1]] + self.size[chosen[:-1]]
        first = chosen[new]
        size = np.add.reduceat(self.size[chosen], np.flatnonzero(new)) if len(chosen) else self.size[:0]
        for index, length in zip(first.tolist(), size.tolist(), strict=True):
            yield self._stretch(index, length)

    def _stretch(self, index: int, size: int) -> Stretch:
        return Stretch(
            section=int(self.section[index]),
            start=int(self.start[index]),
            size=size,
            verdict=Verdict(int(self.verdict[index])),
            one=_words(self.one, int(self.range_one[index]), int(self.rule_one[index])),
            other=_words(self.other, int(self.range_other[index]), int(self.rule_other[index])),
            range_one=_origin_of(self.one, int(self.range_one[index])),
            range_other=_origin_of(self.other, int(self.range_other[index])),
        )


def _origin_of(table: UnwindTable, number: int) -> int | None:
    return int(table.range_origin[number]) if number >= 0 else None


def _words(table: UnwindTable, number: int, rule: int) -> str:
    """A rule with the marks of its range that belong to it."""
    if rule < 0:
        return "no rule"
    found = Rule.from_record(table.rules[rule])
    if found.unsaid is not None:
        return f"no rule: {found.unsaid}"
    text = found.text(table.machine)
    marks = ["signal frame"] if table.range_signal[number] else []
    marks += ["key B"] if found.ra_signed and table.range_pauth_key[number] else []
    return ", ".join([text, *marks])


def compare(one: UnwindTable, other: UnwindTable) -> Comparison:
    """Compare two tables of the same code.

    >>> [section] = walkback.ElfFile("a.out").sframe
    >>> walkback.table.compare(section.table, section.table).equal
    True
    """
    if one.machine is not other.machine:
        raise InexpressibleError(f"a table for {one.machine.name} cannot be compared with one for {other.machine.name}")
    tables = (one, other)
    meanings = _meanings(tables)
    pieces_one = disjoint(one)
    if _are_whole(one, pieces_one) and _alike(one, other, meanings):
        return _equal(one, other)
    pieces = (pieces_one, disjoint(other))
    for each, table in zip(pieces, tables, strict=True):
        _check_blocks(each, table)
    numbers, bytes_of, verdicts_one, verdicts_other = _walk.compare(pieces, tables, meanings)
    section, start, size, verdict, rule_one, rule_other, range_one, range_other = numbers.T.copy()
    return Comparison(
        one=one,
        other=other,
        bytes_of=bytes_of,
        verdicts_one=verdicts_one,
        verdicts_other=verdicts_other,
        section=section.astype(np.int32),
        start=start.view(np.uint64),
        size=size.view(np.uint64),
        verdict=verdict,
        rule_one=rule_one,
        rule_other=rule_other,
        range_one=range_one,
        range_other=range_other,
    )


def _are_whole(table: UnwindTable, pieces: Disjoint) -> bool:
    """Whether each range is one piece: none overlaps another, or is empty."""
    _, start, last, source = pieces
    return len(source) == len(table) and np.array_equal(last - start + np.uint64(1), table.range_size[source])


def _alike(one: UnwindTable, other: UnwindTable, meanings: list[tuple[I64, U8, U8, U8]]) -> bool:
    """Whether two tables say the same in the same words, which is quicker to see than to walk through.

    Only of tables whose ranges are disjoint and have a rule from their start on.
    """
    names = ("section", "start", "size", "first_row", "rows", "block", "signal", "pauth_key")
    columns = [(getattr(one, f"range_{name}"), getattr(other, f"range_{name}")) for name in names]
    columns.append((one.row_offset, other.row_offset))
    if not all(np.array_equal(*pair) for pair in columns):
        return False
    if not one.range_rows.all() or one.row_offset[one.range_first_row].any():
        return False
    mine, theirs = (meaning[0].astype(np.int32) for meaning in meanings)
    for first in range(0, len(one.row_rule), _STEP):
        step = slice(first, first + _STEP)
        meant = mine[one.row_rule[step]]
        if int(meant.min()) < 0 or not np.array_equal(meant, theirs[other.row_rule[step]]):
            return False
    return True


def _equal(one: UnwindTable, other: UnwindTable) -> Comparison:
    """What is found of tables that say the same everywhere."""
    bytes_of = np.zeros(len(Verdict), np.uint64)
    bytes_of[Verdict.EQUAL] = one.range_size.sum()
    verdicts = np.full(len(one), 1 << Verdict.EQUAL, np.uint8)
    places, numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    none = (np.zeros(0, np.int32), places, places, *(numbers,) * 5)
    return Comparison(one, other, bytes_of, verdicts, verdicts.copy(), *none)


def _check_blocks(pieces: Disjoint, table: UnwindTable) -> None:
    """A few bytes can claim blocks without end."""
    _, start, last, source = pieces
    block = table.range_block[source].astype(np.uint64)
    chosen = np.flatnonzero(block)
    changes = (last[chosen] - start[chosen]) // block[chosen]
    many = np.minimum(changes, np.uint64(_MOST_BLOCK_ROWS)) * (table.range_rows[source[chosen]] + 1).astype(np.uint64)
    if int(many.sum()) > _MOST_BLOCK_ROWS:
        message = f"repeating blocks of more than {_MOST_BLOCK_ROWS} rows are not compared"
        raise InexpressibleError(message, rule="block-rows")


def _meanings(tables: tuple[UnwindTable, UnwindTable]) -> list[tuple[I64, U8, U8, U8]]:
    """For each table a number for what each rule means, equal for equal meanings in both; -1 for no rule. And marks."""
    rules = [_plain(table.rules) for table in tables]
    # As plain bytes, because NumPy takes longer to join records.
    _, numbers = intern_records(np.concatenate([plain.view(f"V{plain.itemsize}") for plain in rules]))
    both = np.split(numbers.astype(np.int64), [len(rules[0])])
    meanings = []
    for table, number, plain in zip(tables, both, rules, strict=True):
        unsaid = np.logical_or.reduce([of_kind(plain[part], PartKind.INEXPRESSIBLE) for part in ("cfa", "ra", "fp")])
        marks = (plain["ra_signed"].copy(), table.range_signal.astype(np.uint8), table.range_pauth_key)
        meanings.append((np.where(unsaid, -1, number), *marks))
    return meanings


def _plain(rules: RuleArray) -> RuleArray:
    """Rules in one form: where there is no caller, nothing else counts."""
    plain = rules.copy()
    plain[of_kind(plain["ra"], PartKind.UNDEFINED)] = np.array([OUTERMOST.record()], RULE)
    return plain
