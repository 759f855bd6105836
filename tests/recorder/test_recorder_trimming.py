"""Samples without the empty part of their stack copies."""

from __future__ import annotations

import random
import struct

import pytest

from walkback.capture.perfdata import layout
from walkback.capture.recorder.trimming import trim

ROOM = 1024
pytestmark = pytest.mark.kernel


def trimmed(data: bytes | bytearray, room: int) -> bytes:
    contents = bytearray(data)
    trim(contents, room)
    return bytes(contents)


def record(kind: int, contents: bytes) -> bytes:
    return struct.pack("=IHH", kind, 1, 8 + len(contents)) + contents


def sample(head: bytes, stack: bytes, used: int) -> bytes:
    """A sample whose last field is a copy of the stack; none has no used size either."""
    end = struct.pack("=Q", used) if stack else b""
    return record(layout.SAMPLE, head + struct.pack("=Q", len(stack)) + stack + end)


@pytest.mark.parametrize(
    ("used", "kept"), [(0, 8), (1, 8), (7, 8), (8, 16), (500, 504), (1016, 1024), (1023, 1024), (1024, 1024)]
)
def test_a_copy_has_a_little_more_room_than_is_used(used: int, kept: int) -> None:
    stack = random.Random(used).randbytes(ROOM)
    head = bytes(range(80))
    assert trimmed(sample(head, stack, used), ROOM) == sample(head, stack[:kept], used)


def test_what_is_no_such_sample_stays_as_it_is() -> None:
    stack = b"s" * ROOM
    others = [
        record(layout.COMM, b"c" * 2000),  # larger than a copy
        sample(b"h" * 40, b"", 0),  # of a thread of the kernel
        sample(b"h" * 2000, b"", 0),
        sample(b"h" * 40, stack, ROOM + 1),  # nonsense
        sample(b"h" * 40, stack + b"8 bytes!", 5),
        record(layout.SAMPLE, b""),
    ]
    for other in others:
        assert trimmed(other, ROOM) == other
    between = b"".join(other + sample(b"", stack, 3) for other in others)
    assert trimmed(between, ROOM) == b"".join(other + sample(b"", stack[:8], 3) for other in others)
    assert trimmed(b"", ROOM) == b""


def test_thousands_of_records_come_back_in_their_order() -> None:
    chance = random.Random(1)
    data, wanted = bytearray(), bytearray()
    for number in range(10_000):
        used = chance.randrange(64)
        stack = chance.randbytes(64)
        head = struct.pack("=Q", number)
        data += sample(head, stack, used)
        wanted += sample(head, stack[: (used & ~7) + 8], used)
    assert trimmed(data, 64) == wanted
