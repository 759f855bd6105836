"""How long threads were away, of records made by hand: late, lost, of several processors."""

from __future__ import annotations

import struct

from walkback.capture.perfdata import layout
from walkback.capture.recorder.away import Away

MMAP = struct.pack("=IHHQQ", layout.MMAP2, 0, 24, 1, 2)


def left(tid: int, time: int) -> bytes:
    return struct.pack("=IHHQIIQQQ", layout.SAMPLE, 0, 48, 0x1000, tid, tid, time, 0, 1)


def came_back(tid: int, time: int) -> bytes:
    return struct.pack("=IHHIIQQ", layout.SWITCH, 0, 32, tid, tid, time, 0)


def switched_out(tid: int, time: int) -> bytes:
    return struct.pack("=IHHIIQQ", layout.SWITCH, layout.MISC_SWITCH_OUT, 32, tid, tid, time, 0)


def came_back_wide(tid: int, time: int) -> bytes:
    """As it is written of the whole machine: with who was there before."""
    return struct.pack("=IHHIIIIQQ", layout.SWITCH_CPU_WIDE, 0, 40, 3, 3, tid, tid, time, 0)


def ended(tid: int, time: int) -> bytes:
    return struct.pack("=IHHIIIIQIIQQ", layout.EXIT, 0, 56, tid, 1, tid, 1, time, tid, tid, time, 0)


def samples(data: bytearray) -> list[tuple[int, int, int]]:
    """Thread, time and period of each."""
    found, at = [], 0
    while at < len(data):
        kind, _, size = struct.unpack_from("=IHH", data, at)
        if kind == layout.SAMPLE:
            _, _, tid, time, _, period = struct.unpack_from("=QIIQQQ", data, at + 8)
            found.append((tid, time, period))
        at += size
    return sorted(found)


def test_a_sample_is_held_back_until_its_thread_comes_back() -> None:
    away = Away()
    assert away.take(bytearray(left(7, 100) + MMAP + switched_out(7, 101))) == MMAP
    assert samples(away.take(bytearray(left(8, 150)))) == []
    assert samples(away.take(bytearray(came_back(7, 180) + left(7, 190)))) == [(7, 100, 80)]
    assert samples(away.take(bytearray(came_back(8, 1150)), until=2000)) == [(7, 190, 1810), (8, 150, 1000)]


def test_buffers_of_processors_come_one_after_the_other() -> None:
    away = Away()
    # It left on the second processor and came back on the first, whose buffer is read before.
    assert samples(away.take(bytearray(came_back(7, 180) + left(7, 100)))) == [(7, 100, 80)]
    assert samples(away.take(bytearray(came_back(7, 280)))) == []
    assert samples(away.take(bytearray(left(7, 200)))) == [(7, 200, 80)]


def test_what_was_lost_is_not_counted_with_what_follows() -> None:
    away = Away()
    assert samples(away.take(bytearray(left(7, 100) + left(7, 500) + came_back(7, 600)))) == [(7, 500, 100)]
    assert samples(away.take(bytearray(came_back(7, 700) + came_back(7, 800)), until=900)) == []


def test_switches_of_the_whole_machine_name_their_thread_elsewhere() -> None:
    away = Away()
    assert samples(away.take(bytearray(left(7, 100)))) == []
    assert samples(away.take(bytearray(came_back_wide(8, 120) + came_back_wide(7, 180)))) == [(7, 100, 80)]


def test_a_thread_that_has_ended_is_not_away() -> None:
    away = Away()
    mixed = left(7, 100) + came_back_wide(7, 180) + ended(7, 190) + left(7, 200) + left(2**32 - 1, 210) + ended(8, 300)
    given = away.take(bytearray(mixed))
    assert samples(given) == [(7, 100, 80)]
    assert given.endswith(ended(7, 190) + ended(8, 300))
    assert away.take(bytearray(left(8, 310))) == b""
    assert away.take(bytearray(), until=900) == b""


def test_the_idle_task_is_not_away() -> None:
    away = Away()
    assert samples(away.take(bytearray(left(0, 100) + came_back_wide(0, 180) + left(0, 200)), until=900)) == []


def test_nothing_comes_of_nothing() -> None:
    assert Away().take(bytearray()) == b""
    assert Away().take(bytearray(), until=5) == b""
