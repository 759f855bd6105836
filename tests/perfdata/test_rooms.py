"""Memory that is used again, and recordings that are larger than what is read of them at once."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from walkback.capture.perfdata import Recording, source
from walkback.capture.perfdata.batch import RecordedBatch
from walkback.capture.perfdata.rooms import Rooms
from walkback.naming.modules import Modules

AT_ONCE = 1 << 17


def stacks(batches: list[RecordedBatch] | Iterator[Any]) -> list[tuple[int, bytes]]:
    """The time and the contents of each stack."""
    found = []
    for batch in batches:
        memory = batch.samples.memory
        for time, start, size in zip(batch.time.tolist(), memory.offset.tolist(), memory.size.tolist(), strict=True):
            found.append((time, bytes(memory.buffer[start : start + size])))
    return found


def test_a_room_is_used_again_when_nobody_holds_it_and_not_before() -> None:
    rooms = Rooms(1 << 12)
    room = rooms.take(100)
    room[:] = b"1" * 100
    words, part = room[:64].cast("Q"), np.frombuffer(room, np.uint8)[10:20]
    del room
    other = rooms.take(100)
    other[:] = b"2" * 100
    assert bytes(words) == b"1" * 64
    del words
    assert bytes(rooms.take(100)) == bytes(100)
    assert bytes(part) == b"1" * 10
    del part
    again = rooms.take(100)
    assert bytes(rooms.take(100)) == bytes(100)
    assert bytes(again) == b"1" * 100


def test_batches_stay_as_they_are_while_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_FILE_CHUNK", AT_ONCE)
    kinds = pb.IP | pb.TID | pb.TIME | pb.REGS_USER | pb.STACK_USER
    builder = Builder("little", "x86_64", [Attr(kinds, regs_user=pb.MASKS["x86_64"], stack_user=1 << 14)])
    wanted = []
    for number in range(60):
        time = 100 + (number ^ 1)
        stack = bytes([number]) * (1 << 14)
        builder.sample(pid=1, tid=1, time=time, registers={8: 0x1100, 7: 8}, stack=stack)
        wanted.append((time, stack))
        if number % 5 == 4:
            builder.finished_round()
    (tmp_path / "perf.data").write_bytes(builder.file())
    for worth in (1 << 40, 1 << 14):
        monkeypatch.setattr("walkback.capture.perfdata.recording._WORTH", worth)
        batches = list(Recording.open(tmp_path / "perf.data", Modules()).batches())
        assert len(batches) > len(wanted) * (1 << 14) // AT_ONCE
        assert stacks(batches) == sorted(wanted)
    piped = Recording.open(io.BytesIO(builder.pipe()), Modules())
    assert stacks(piped.batches()) == sorted(wanted)
