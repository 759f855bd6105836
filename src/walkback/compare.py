"""Do two tables say the same? The rule of one against the rule of the other at every address where either changes.

report = compare(one, other)
for part in report.differences:
    print(hex(part.start), part.one, part.other)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from walkback.arrays import I32, I64, U64
from walkback.errors import InexpressibleError
from walkback.intern import intern_records
from walkback.table import OUTERMOST, RULE, Kind, Rule, UnwindTable
from walkback.table.rule import RuleArray
from walkback.table.settle import Course, course, settled


class Verdict(IntEnum):
    """What holds between two tables in a stretch of code."""

    NEITHER = 0
    """Neither has a rule."""
    EQUAL = 1
    DIFFERENT = 2
    ONLY_ONE = 3
    """Only the first has a rule."""
    ONLY_OTHER = 4


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


@dataclass(slots=True)
class Comparison:
    """What two tables say of all addresses that either has."""

    one: UnwindTable
    """The first table, settled."""
    other: UnwindTable
    section: I32
    start: U64
    size: U64
    verdict: I64
    rule_one: I64
    """The rule's number in its table, -1 for none."""
    rule_other: I64
    range_one: I64
    """The number of the range in the settled table, -1 for none."""
    range_other: I64

    @property
    def equal(self) -> bool:
        """Whether no address has two different rules."""
        return not bool((self.verdict == Verdict.DIFFERENT).any())

    def code_bytes(self, verdict: Verdict) -> int:
        """How much code has a verdict."""
        return int(self.size[self.verdict == verdict].sum())

    def ranges(self, verdict: Verdict) -> int:
        """How many ranges of the first table (of the other, where only that has a rule) have such code."""
        origin = self._origin(self.other, self.range_other) if verdict == Verdict.ONLY_OTHER else None
        if origin is None:
            origin = self._origin(self.one, self.range_one)
        return len(np.unique(origin[self.verdict == verdict]))

    def stretches(self, verdict: Verdict) -> Iterator[Stretch]:
        """The stretches with a verdict; neighbours in which the same two rules hold are one."""
        chosen = np.flatnonzero(self.verdict == verdict)
        new = np.ones(len(chosen), np.bool_)
        columns = (self.rule_one, self.rule_other, self.range_one, self.range_other, self.section)
        same = np.logical_and.reduce([column[chosen[1:]] == column[chosen[:-1]] for column in columns])
        new[1:] = ~same | (self.start[chosen[1:]] != self.start[chosen[:-1]] + self.size[chosen[:-1]])
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

    @staticmethod
    def _origin(table: UnwindTable, ranges: I64) -> I64:
        if not len(table):
            return ranges
        return np.where(ranges >= 0, table.range_origin[ranges], -1)


def _origin_of(table: UnwindTable, number: int) -> int | None:
    return int(table.range_origin[number]) if number >= 0 else None


def _words(table: UnwindTable, number: int, rule: int) -> str:
    """A rule with the marks of its range that belong to it."""
    if rule < 0:
        return "no rule"
    found = Rule.from_record(table.rules[rule])
    text = found.text(table.machine)
    marks = ["signal frame"] if table.range_signal[number] else []
    marks += ["key B"] if found.ra_signed and table.range_pauth_key[number] else []
    return ", ".join([text, *marks])


def compare(one: UnwindTable, other: UnwindTable) -> Comparison:
    """Compare two tables of the same code."""
    if one.machine is not other.machine:
        message = f"a table for {one.machine.name} cannot be compared with one for {other.machine.name}"
        raise InexpressibleError(message)
    tables = (settled(one), settled(other))
    courses = (course(tables[0]), course(tables[1]))
    meanings = _meanings(tables, courses)
    section = np.concatenate([each.section for each in courses])
    address = np.concatenate([each.address for each in courses])
    which = np.repeat([0, 1], [len(each.address) for each in courses])
    order = np.lexsort((address, section))
    section, address, which = section[order], address[order], which[order]
    # What each table says at each of the addresses: its last entry at or before it.
    entry = [np.cumsum(which == number) - 1 for number in (0, 1)]
    stays = np.ones(len(order), np.bool_)
    stays[:-1] = (section[1:] != section[:-1]) | (address[1:] != address[:-1])
    section, address = section[stays], address[stays]
    entry = [column[stays] for column in entry]
    size = np.zeros(len(address), np.uint64)
    size[:-1] = np.where(section[1:] == section[:-1], address[1:] - address[:-1], np.uint64(0))
    rules = [_at(each.rule, number) for each, number in zip(courses, entry, strict=True)]
    ranges = [_at(each.range, number) for each, number in zip(courses, entry, strict=True)]
    meaning = [_at(each, number) for each, number in zip(meanings, entry, strict=True)]
    verdict = np.select(
        [(meaning[0] < 0) & (meaning[1] < 0), meaning[1] < 0, meaning[0] < 0, meaning[0] == meaning[1]],
        [Verdict.NEITHER, Verdict.ONLY_ONE, Verdict.ONLY_OTHER, Verdict.EQUAL],
        Verdict.DIFFERENT,
    )
    some = (size > 0) & ((ranges[0] >= 0) | (ranges[1] >= 0))
    return Comparison(
        one=tables[0],
        other=tables[1],
        section=section[some],
        start=address[some],
        size=size[some],
        verdict=verdict.astype(np.int64)[some],
        rule_one=rules[0][some],
        rule_other=rules[1][some],
        range_one=ranges[0][some],
        range_other=ranges[1][some],
    )


def _at(column: I64, number: I64) -> I64:
    """The entry of each number; -1 before the first."""
    if not len(column):
        return np.full(len(number), -1, np.int64)
    return np.where(number >= 0, column[number], -1)


def _meanings(tables: tuple[UnwindTable, UnwindTable], courses: tuple[Course, Course]) -> list[I64]:
    """A number for what each entry means, equal for equal meanings in both tables; -1 for no rule."""
    rules = [_plain(table.rules) for table in tables]
    _, numbers = intern_records(np.concatenate(rules))
    both = np.split(numbers.astype(np.int64), [len(rules[0])])
    meanings = []
    for table, path, number, plain in zip(tables, courses, both, rules, strict=True):
        if not len(plain):
            meanings.append(np.full(len(path.rule), -1, np.int64))
            continue
        signed = plain["ra_signed"][path.rule] > 0
        marks = np.zeros(len(path.rule), np.int64)
        if len(table):
            marks = 2 * table.range_signal[path.range] + (table.range_pauth_key[path.range] & signed)
        unsaid = np.logical_or.reduce([plain[part]["kind"] == Kind.INEXPRESSIBLE for part in ("cfa", "ra", "fp")])
        nothing = (path.rule < 0) | unsaid[path.rule]
        meanings.append(np.where(nothing, -1, 4 * number[path.rule] + marks))
    return meanings


def _plain(rules: RuleArray) -> RuleArray:
    """Rules in one form: where there is no caller, nothing else counts."""
    plain = rules.copy()
    plain[plain["ra"]["kind"] == Kind.UNDEFINED] = np.array([OUTERMOST.record()], RULE)
    return plain
