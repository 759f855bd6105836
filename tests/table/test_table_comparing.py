"""Two tables compared say at every address what a look-up in both says."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from effort import examples
from walkback.base.arch import AARCH64, AMD64
from walkback.base.errors import InexpressibleError
from walkback.table.comparing import Comparison, compare
from walkback.table.rule import OUTERMOST, Part, PartKind, Reason, Rule, inexpressible
from walkback.table.table import UnwindTable, rule_array
from walkback.table.verdict import Verdict

pytestmark = pytest.mark.kernel

CFA = Part(PartKind.REGISTER, 31, 16)
RULES = [
    Rule(CFA),
    Rule(CFA, ra_signed=True),
    Rule(Part(PartKind.REGISTER, 29, 16)),
    OUTERMOST,
    Rule(CFA, Part(PartKind.UNDEFINED)),
    inexpressible(Reason.EXPRESSION),
    Rule(CFA, fp=Part(PartKind.INEXPRESSIBLE, 0, int(Reason.TOO_LARGE))),
    Rule(CFA),  # the same again under another number
]
RANGES = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.integers(0, 30),
        st.lists(st.integers(0, 30), max_size=4).map(sorted),
        st.sampled_from([0, 0, 0, 4, 7]),
    ),
    max_size=6,
)


def make(ranges: list[tuple[int, int, list[int], int]], *, sections: list[int] | None = None) -> UnwindTable:
    """A table of ranges (start, size, row offsets, block)."""
    rows = np.array([len(one[2]) for one in ranges], np.int64)
    return UnwindTable(
        machine=AARCH64,
        range_section=np.array([-1] * len(ranges) if sections is None else sections, np.int32),
        range_start=np.array([one[0] for one in ranges], np.uint64),
        range_size=np.array([one[1] for one in ranges], np.uint64),
        range_first_row=np.cumsum(rows) - rows,
        range_rows=rows,
        range_signal=np.zeros(len(ranges), np.bool_),
        range_pauth_key=np.zeros(len(ranges), np.uint8),
        range_block=np.array([one[3] for one in ranges], np.uint32),
        range_origin=np.arange(len(ranges)),
        row_offset=np.array([offset for one in ranges for offset in one[2]], np.uint32),
        row_rule=np.zeros(int(rows.sum()), np.uint32),
        rules=rule_array(RULES),
    )


def table(
    ranges: list[tuple[int, int, list[int], int]],
    *,
    rules: list[int] | None = None,
    sections: list[int] | None = None,
    signal: set[int] | tuple[Any, ...] = (),
    key: set[int] | tuple[Any, ...] = (),
) -> UnwindTable:
    """Rows take the rules in turn, or those given; ranges have the marks given."""
    made = make(ranges, sections=sections)
    count = len(made.row_offset)
    numbers = [n % len(RULES) for n in range(count)] if rules is None else rules
    made.row_rule = np.array(numbers[:count], np.uint32)
    made.range_signal = np.array([n in signal for n in range(len(made))], np.bool_)
    made.range_pauth_key = np.array([n in key for n in range(len(made))], np.uint8)
    return made


def meaning(one: UnwindTable, pc: int, section: int) -> tuple[tuple[Rule, bool, int] | None, bool]:
    """The rule with its marks; None where there is none, and whether there is a range."""
    found = one.find(pc, section=section)
    if found is None:
        return None, False
    rule = found.rule
    if rule is None:
        return None, True
    if rule.outermost:
        return (OUTERMOST, found.signal, 0), True
    if PartKind.INEXPRESSIBLE in {rule.cfa.kind, rule.ra.kind, rule.fp.kind}:
        return None, True
    return (rule, found.signal, found.pauth_key if rule.ra_signed else 0), True


def expected(one: UnwindTable, other: UnwindTable, pc: int, section: int) -> Verdict | None:
    (left, there), (right, there_too) = meaning(one, pc, section), meaning(other, pc, section)
    if not there and not there_too:
        return None
    if left is None or right is None:
        if left is right:
            return Verdict.NEITHER
        return Verdict.ONLY_OTHER if left is None else Verdict.ONLY_ONE
    return Verdict.EQUAL if left == right else Verdict.DIFFERENT


def check(one: UnwindTable, other: UnwindTable, sections: tuple[int, ...] = (-1,)) -> None:
    report = compare(one, other)
    said: dict[tuple[int, int], Verdict] = {}
    columns = (report.section, report.start, report.size, report.verdict)
    for section, start, size, verdict in zip(*(column.tolist() for column in columns), strict=True):
        for pc in range(start, start + size):
            assert (section, pc) not in said
            said[section, pc] = Verdict(verdict)
    wanted = {(s, pc): expected(one, other, pc, s) for s in sections for pc in range(90)}
    assert said == {place: verdict for place, verdict in wanted.items() if verdict not in {None, Verdict.EQUAL}}
    assert report.equal == (Verdict.DIFFERENT not in said.values())
    for verdict in Verdict:
        places = {place for place, found in wanted.items() if found == verdict}
        assert report.code_bytes(verdict) == len(places)
        if verdict == Verdict.EQUAL:
            assert list(report.stretches(verdict)) == []
            continue
        check_stretches(report, one, other, verdict, places)


def check_stretches(
    report: Comparison, one: UnwindTable, other: UnwindTable, verdict: Verdict, places: set[tuple[int, int]]
) -> None:
    """The stretches cover what has the verdict, each address once, and each is as long as it can be."""
    covered, before = set(), None
    for part in report.stretches(verdict):
        assert part.verdict == verdict
        for pc in range(part.start, part.start + part.size):
            assert (part.section, pc) not in covered
            covered.add((part.section, pc))
            for source, text, origin in ((one, part.one, part.range_one), (other, part.other, part.range_other)):
                found = source.find(pc, section=part.section)
                assert origin == (None if found is None else int(source.range_origin[found.range]))
                rule = None if found is None else found.rule
                if rule == inexpressible(Reason.EXPRESSION):
                    assert text == "no rule: an expression that is no rule of the table"
                    continue
                assert text.startswith("no rule" if rule is None else rule.text(AARCH64))
                if rule is not None:
                    assert text.endswith("signal frame") == (found.signal and not (rule.ra_signed and found.pauth_key))
        touching = before is not None and (before.section, before.start + before.size) == (part.section, part.start)
        if touching and not (one.range_block.any() or other.range_block.any()):
            assert numbers(one, other, before) != numbers(one, other, part)
        before = part
    assert covered == places


def numbers(one: UnwindTable, other: UnwindTable, part: Any) -> list[tuple[int, int]]:
    """Range and number of the rule in each table where a stretch begins."""
    found = []
    for source in (one, other):
        ranges, rows = source.find_many([part.start], section=part.section)
        found.append((int(ranges[0]), int(source.row_rule[rows[0]]) if rows[0] >= 0 else -1))
    return found


NUMBERS = st.lists(st.integers(0, len(RULES) - 1), min_size=24, max_size=24)
MARKS = st.sets(st.integers(0, 5))


@settings(max_examples=examples(60), deadline=None)
@given(RANGES, RANGES, NUMBERS, NUMBERS, MARKS, MARKS)
def test_every_address_has_the_verdict_of_a_look_up_in_both(
    ranges: list[tuple[int, int, list[int], int]],
    others: list[tuple[int, int, list[int], int]],
    rules: list[int],
    more: list[int],
    signal: set[int],
    key: set[int],
) -> None:
    check(table(ranges, rules=rules, signal=signal, key=key), table(others, rules=more, signal=key, key=signal))


@settings(max_examples=examples(12), deadline=None)
@given(st.data(), RANGES, RANGES, NUMBERS)
def test_in_several_sections(
    data: DataObject, ranges: list[tuple[int, int, list[int], int]], others: list[Any], rules: list[int]
) -> None:
    places = st.sampled_from([1, 2, 7])
    one = data.draw(st.lists(places, min_size=len(ranges), max_size=len(ranges)))
    other = data.draw(st.lists(places, min_size=len(others), max_size=len(others)))
    check(table(ranges, rules=rules, sections=one), table(others, rules=rules, sections=other), (1, 2, 7))


@settings(max_examples=examples(40), deadline=None)
@given(RANGES, NUMBERS)
def test_a_table_equals_itself_in_another_order(
    ranges: list[tuple[int, int, list[int], int]], rules: list[int]
) -> None:
    one = table(ranges, rules=rules)
    report = compare(one, one)
    assert report.equal
    assert report.code_bytes(Verdict.ONLY_ONE) == report.code_bytes(Verdict.ONLY_OTHER) == 0


@pytest.mark.parametrize("second", [(5, 10), (2, 3), (0, 10)])
def test_overlapping_code_is_counted_once(second: tuple[int, int]) -> None:
    start, size = second
    one = table([(0, 10, [0], 0), (start, size, [0], 0)], rules=[0, 0])
    assert compare(one, one).code_bytes(Verdict.EQUAL) == max(10, start + size)


def test_nothing_with_nothing_and_with_something() -> None:
    nothing, some = table([]), table([(10, 5, [0], 0)])
    assert len(compare(nothing, nothing).start) == 0
    assert compare(nothing, nothing).equal
    assert list(compare(nothing, nothing).stretches(Verdict.DIFFERENT)) == []
    (part,) = compare(nothing, some).stretches(Verdict.ONLY_OTHER)
    assert (part.start, part.size, part.one, part.range_one, part.range_other) == (10, 5, "no rule", None, 0)
    assert compare(some, nothing).ranges(Verdict.ONLY_ONE) == compare(nothing, some).ranges(Verdict.ONLY_OTHER) == 1


def test_a_difference_is_told_with_both_rules() -> None:
    one, other = table([(10, 10, [0, 4], 0)], rules=[0, 1], key={0}), table([(10, 10, [0], 0)], rules=[2], signal={0})
    found = list(compare(one, other).stretches(Verdict.DIFFERENT))
    assert [(part.start, part.size, part.one, part.other) for part in found] == [
        (10, 4, "CFA = sp+16, RA unchanged, FP unchanged", "CFA = x29+16, RA unchanged, FP unchanged, signal frame"),
        (14, 6, "CFA = sp+16, RA unchanged signed, FP unchanged, key B", found[0].other),
    ]


def test_neighbours_that_differ_alike_are_one() -> None:
    one = table([(0, 30, [0, 5, 9, 20], 0)], rules=[0, 0, 0, 1])
    other = table([(0, 30, [0, 3, 12], 0)], rules=[2, 2, 2])
    found = [(part.start, part.size) for part in compare(one, other).stretches(Verdict.DIFFERENT)]
    assert found == [(0, 20), (20, 10)]


def test_functions_next_to_each_other_are_told_apart() -> None:
    one = table([(0, 10, [0], 0), (10, 10, [0], 0)], rules=[0, 0])
    other = table([(0, 20, [0], 0)], rules=[2])
    report = compare(one, other)
    assert [part.range_one for part in report.stretches(Verdict.DIFFERENT)] == [0, 1]
    assert report.ranges(Verdict.DIFFERENT) == 2


def test_how_many_functions_have_code_with_a_verdict() -> None:
    one = table([(0, 10, [0, 5], 0), (20, 10, [0], 0), (40, 4, [], 0)], rules=[0, 5, 0])
    other = table([(0, 10, [0], 0), (60, 8, [0], 0), (80, 4, [0], 0)], rules=[0, 0, 5])
    report = compare(one, other)
    assert {verdict: (report.ranges(verdict), report.code_bytes(verdict)) for verdict in Verdict} == {
        Verdict.NEITHER: (1, 8),
        Verdict.EQUAL: (1, 5),
        Verdict.DIFFERENT: (0, 0),
        Verdict.ONLY_ONE: (1, 10),
        Verdict.ONLY_OTHER: (2, 13),
    }


def test_where_there_is_no_caller_nothing_else_counts() -> None:
    one, other = table([(0, 10, [0], 0)], rules=[3]), table([(0, 10, [0], 0)], rules=[4], key={0})
    assert compare(one, other).equal


def test_tables_of_different_machines_are_not_compared() -> None:
    with pytest.raises(InexpressibleError, match="AArch64"):
        compare(table([]), replace(table([]), machine=AMD64))


@pytest.mark.whole
@pytest.mark.whole
def test_many_ranges_are_compared_quickly(interpreted: bool) -> None:
    count = 300 if interpreted else 50_000
    one = table([(8 * n, 8, [0, 3], 0) for n in range(count)], rules=[0, 2] * count)
    other = table([(12 * n, 40, [0, 5, 9], 0) for n in range(count)], rules=[0, 2, 0] * count)
    began = time.process_time()
    report = compare(one, other)
    assert sum(1 for _ in report.stretches(Verdict.DIFFERENT)) > count // 2
    assert time.process_time() - began < 15
