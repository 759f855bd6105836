"""Recordings made by hand: events are told apart, and records come into order."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from perfdata.built import BASE, only, read, walkable
from walkback.capture.perfdata import Recording
from walkback.naming.modules import Modules

pytestmark = pytest.mark.kernel


# Events


@pytest.mark.parametrize("kinds", [pb.IDENTIFIER, pb.ID])
@pytest.mark.parametrize("size", [72, 96, 112, 136, 200])
def test_events_are_told_apart_by_their_ids(kinds: int, size: int, tmp_path: Path) -> None:
    first = Attr(BASE | kinds, "one", (11, 12), size=size, freq=True, period=4000)
    second = Attr((BASE | kinds) & ~pb.PERIOD, "two", (21,), size=size, period=500)
    builder = Builder(attrs=[first, second])
    builder.comm(1, 1, "name", time=4)
    builder.sample(1, pid=1, tid=1, time=6)
    builder.sample(0, pid=1, tid=1, time=5, id=12, period=3)
    builder.sample(0, id=999)
    builder.sample(0, id=0, time=7)
    for contents in (builder.file(), builder.pipe()):
        recording, batch = only(contents, tmp_path)
        assert recording.events == ["one", "two"]
        assert batch.event.tolist() == [0, 1, 0]
        assert batch.period.tolist() == [3, 500, 1]
        assert batch.time.tolist() == [5, 6, 7]
        assert recording.counts.unknown_ids == 1


def test_names_of_events_that_the_header_lacks(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE, "")])
    builder.sample()
    assert only(builder.file(), tmp_path)[0].events == ["cpu-clock"]


# Order


def test_rounds_bring_records_into_order(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE)])
    for times in ([10, 30], [20, 50], [40, 60], [55]):
        for time in times:
            builder.sample(time=time)
        builder.finished_round()
    _, batches = read(builder.file(), tmp_path)
    assert [time for batch in batches for time in batch.time.tolist()] == [10, 20, 30, 40, 50, 55, 60]


def test_records_have_effect_at_their_times(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE)])
    for time in (10, 20, 30):
        builder.sample(pid=1, tid=1, time=time)
    builder.comm(1, 1, "late", time=25)
    builder.comm(1, 1, "early", time=5)
    recording, batch = only(builder.file(), tmp_path)
    assert [recording.comms[i] for i in batch.comm] == ["early", "early", "late"]


def test_records_without_a_time_go_first(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE)])
    builder.sample(pid=1, tid=1, time=10)
    builder.comm(1, 1, "made up", time=0)
    recording, batch = only(builder.file(), tmp_path)
    assert [recording.comms[i] for i in batch.comm] == ["made up"]


def test_without_times_the_order_of_the_file_holds(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE & ~pb.TIME)])
    builder.sample(pid=1, tid=1)
    builder.comm(1, 1, "one")
    builder.sample(pid=1, tid=1)
    builder.comm(1, 1, "two", misc=pb.EXEC)
    builder.sample(pid=1, tid=1)
    recording, batch = only(builder.file(), tmp_path)
    assert [recording.comms[i] for i in batch.comm] == [":1", "one", "two"]
    assert batch.time.tolist() == [0, 0, 0]


def test_a_bound_lets_the_oldest_go(tmp_path: Path) -> None:
    builder = walkable()
    for i in range(1000):
        builder.sample(time=i + 1, registers={7: 5}, stack=bytes([i % 256]) * 64)
    stream = io.BytesIO(builder.pipe())
    recording = Recording.open(stream, Modules(), bound=1000)
    batches = list(recording.batches())
    assert recording.counts.early
    assert [time for batch in batches for time in batch.time.tolist()] == list(range(1, 1001))
    for batch in batches:
        for time, offset in zip(batch.time.tolist(), batch.samples.memory.offset.tolist(), strict=True):
            assert batch.samples.memory.buffer[offset] == (time - 1) % 256
