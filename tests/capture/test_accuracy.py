"""The accuracy of ways of walking: what is counted, on stacks made by hand and on recordings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from perfbuilder import CALLCHAIN, IP, TID, TIME, Attr, Builder
from recorded import PID, hello, recording
from walkback.capture.methods import METHODS, Comparing, _add, accuracy
from walkback.stacks.accuracy import Accuracy, bars, chart, frames_right, measures, share, table
from walkback.stacks.stacks import End, FrameKind, How, Stacks

pytestmark = pytest.mark.kernel


def stacks_of(*stacks: list[int], ends: Sequence[int] | None = None) -> Stacks:
    """Stacks by their program counters."""
    pcs = [pc for one in stacks for pc in one]
    return Stacks(
        first=np.cumsum([0, *map(len, stacks)]),
        pc=np.array(pcs, np.uint64),
        kind=np.full(len(pcs), FrameKind.RETURN, np.uint8),
        how=np.full(len(pcs), How.CFI, np.uint8),
        module=np.zeros(len(pcs), np.int32),
        address=np.array(pcs, np.uint64),
        sp=np.zeros(len(pcs), np.uint64),
        end=np.array(ends or [End.COMPLETE] * len(stacks), np.uint8),
        at=np.zeros(len(stacks), np.uint64),
    )


def compared(ours: Stacks, theirs: Stacks) -> Accuracy:
    row = Accuracy("fp")
    _add(row, ours, theirs)
    return row


def test_equal_stacks_agree_in_everything() -> None:
    stacks = stacks_of([1, 2, 3], [1, 2, 3], [4])
    row = compared(stacks, stacks)
    assert (row.stacks, row.complete, row.exact) == (3, 3, 3)
    assert (row.frames, row.reference_frames, row.agreeing, row.missed, row.invented) == (7, 7, 7, 0, 0)
    assert row.ends == {End.COMPLETE: 3}
    assert row.hows == {How.CFI: 7}


@pytest.mark.parametrize(
    ("ours", "theirs", "agreeing", "complete"),
    [
        ([1, 2, 9], [1, 2, 3, 9], 3, 1),  # one was passed over
        ([1, 5, 2, 9], [1, 2, 9], 3, 1),  # one was invented
        ([1, 2], [1, 2, 3], 2, 0),  # ended too soon
        ([1, 2, 3, 4], [1, 2, 3], 3, 0),  # went on too far
        ([7, 8], [1, 2], 0, 0),
        ([], [1, 2], 0, 0),
        ([1, 2], [], 0, 0),
        ([1, 1, 1, 2], [1, 1, 2], 3, 1),  # recursion
        ([2, 1], [1, 2], 1, 0),
    ],
)
def test_what_is_counted_of_one_stack(ours: list[int], theirs: list[int], agreeing: int, complete: int) -> None:
    row = compared(stacks_of(ours), stacks_of(theirs))
    assert (row.agreeing, row.missed, row.invented) == (agreeing, len(theirs) - agreeing, len(ours) - agreeing)
    assert (row.complete, row.exact) == (complete, 0)


def test_a_stack_is_complete_only_where_the_reference_is() -> None:
    ours, theirs = stacks_of([1, 2], ends=[End.ZERO]), stacks_of([1, 2], ends=[End.STACK_CUT])
    row = compared(ours, theirs)
    assert (row.complete, row.exact) == (0, 1)
    assert row.ends == {End.ZERO: 1}
    assert compared(theirs, stacks_of([1, 2])).complete == 1


def test_samples_without_registers_do_not_count() -> None:
    nothing = [End.COMPLETE, End.NO_REGISTERS]
    row = compared(stacks_of([1], [], ends=nothing), stacks_of([1], [], ends=nothing))
    assert (row.stacks, row.complete, row.exact) == (1, 1, 1)
    row = compared(stacks_of([], ends=[End.NO_REGISTERS]), stacks_of([], ends=[End.NO_REGISTERS]))
    assert (row.stacks, row.complete, row.exact, row.per_frame) == (0, 0, 0, 0)


def test_random_stacks_against_the_longest_common_subsequence(interpreted: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20 if interpreted else 200):
        ours, theirs = (rng.integers(1, 6, rng.integers(0, 9)).tolist() for _ in range(2))
        row = compared(stacks_of(ours), stacks_of(theirs))
        lengths = np.zeros((len(ours) + 1, len(theirs) + 1), int)
        for i, one in enumerate(ours):
            for j, other in enumerate(theirs):
                lengths[i + 1, j + 1] = lengths[i, j] + 1 if one == other else max(lengths[i, j + 1], lengths[i + 1, j])
        assert (
            row.agreeing
            == lengths[-1, -1]
            >= sum(m.size for m in SequenceMatcher(None, ours, theirs).get_matching_blocks())
        )
        assert row.exact == (ours == theirs)


def test_batches_add_up() -> None:
    one, other = stacks_of([1, 2, 3]), stacks_of([1, 3])
    row = Accuracy("fp")
    for _ in range(3):
        _add(row, other, one)
    assert (row.stacks, row.complete, row.exact, row.agreeing, row.missed) == (3, 3, 0, 6, 3)


# Recordings


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path), times=3))
    return path


def test_a_recording_in_all_ways(recorded: Path) -> None:
    rows = {row.method: row for row in accuracy(recorded, list(METHODS))}
    assert list(rows) == ["auto", "sframe", "cfi", "go", "code", "fp"]
    for name in ("auto", "sframe", "cfi"):
        row = rows[name]
        assert (row.stacks, row.complete, row.exact, row.frames, row.agreeing) == (18, 15, 18, 45, 45)
        assert row.ends == {End.COMPLETE: 15, End.STACK_CUT: 3}
        assert row.nanoseconds > 0
    assert rows["sframe"].hows == {How.REGISTERS: 18, How.DERIVED: 27}
    fp = rows["fp"]
    assert (fp.stacks, fp.complete, fp.frames, fp.agreeing, fp.invented) == (18, 0, 30, 30, 0)
    assert sum(fp.ends.values()) == 18
    assert End.COMPLETE not in fp.ends


def test_a_recording_is_compared_batch_after_batch(recorded: Path) -> None:
    comparing = Comparing(recorded, ["fp", "fp"], max_stack=2, cache=False)
    assert sum(comparing) == 18
    assert [row.method for row in comparing.rows] == ["fp", "fp"]
    assert all(row.frames == 18 + 12 for row in comparing.rows)
    assert comparing.troubles == []


def test_missing_files_are_told(recorded: Path) -> None:
    (recorded.parent / "hello").unlink()
    comparing = Comparing(recorded, ["sframe"])
    assert sum(comparing) == 18
    (line,) = comparing.troubles
    assert (
        line == f"{recorded.parent / 'hello'}: {recorded.parent / 'hello'}: No such file or directory"
        or line.endswith("hello: No such file or directory")
    )


def test_a_recording_without_registers(tmp_path: Path) -> None:
    made = Builder(attrs=[Attr(IP | TID | TIME | CALLCHAIN)])
    made.sample(ip=16, pid=PID, tid=PID, time=1, chain=[16])
    path = tmp_path / "perf.data"
    path.write_bytes(made.file())
    (row,) = accuracy(path, ["cfi"])
    assert (row.stacks, row.frames, row.per_frame) == (0, 0, 0)
    assert table([row])[1].split() == ["cfi", "0", "-", "-", "0", "-", "-", "-", "0"]


# Tables and charts


ROWS = [
    Accuracy("sframe", 1000, 999, 998, 5000, 5001, 4999, 100_000, {End.COMPLETE: 1000}, {How.SFRAME: 5000}),
    Accuracy("fp", 1000, 0, 1000, 0, 5001, 0),
]


def test_a_share_is_100_only_for_all_and_0_only_for_nothing() -> None:
    assert [share(*one) for one in ((5, 5), (0, 5), (0, 0), (99_999, 100_000), (1, 10**9), (1, 4))] == [
        "100 %",
        "0 %",
        "-",
        "99.99 %",
        "0.01 %",
        "25.00 %",
    ]


def test_the_table_is_aligned() -> None:
    lines = table(ROWS)
    assert len({len(line) for line in lines}) == 1
    assert re.split(" {2,}", lines[1]) == [
        "sframe",
        "1000",
        "99.90 %",
        "99.80 %",
        "5000",
        "99.96 %",
        "0.04 %",
        "0.02 %",
        "20",
    ]
    assert re.split(" {2,}", lines[2])[2:4] == ["0 %", "100 %"]
    for one, other in pairwise(re.finditer(r"\S+", lines[0])):
        assert one.end() + 2 <= other.start()


def test_the_chart_has_a_bar_for_each_share() -> None:
    root = ElementTree.fromstring(chart(measures(ROWS), 'a < b & "c"'))
    name = "{http://www.w3.org/2000/svg}"
    widths = [float(one.attrib["width"]) for one in root.iter(f"{name}rect")][1::2]
    assert len(widths) == 6
    assert (widths[1], widths[3]) == (0, 480)
    assert 'a < b & "c"' in {one.text for one in root.iter(f"{name}text")}
    groups = [("one", frames_right(ROWS)), ("other", frames_right(ROWS[:1]))]
    assert chart(groups, "frames").count("<rect") == 6
    lines = bars(ROWS, 10)
    assert len(lines) == 9
    assert lines[5].count("█") == 10
    assert lines[2].count("█") == 0


def test_the_object_has_words() -> None:
    one = ROWS[0].as_object()
    assert one["ends"] == {"complete": 1000}
    assert one["hows"] == {"sframe": 5000}
    assert (one["missed"], one["invented"], one["ns_per_frame"]) == (2, 1, 20.0)
