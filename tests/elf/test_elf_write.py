"""Places of a file written over: what is read then, what it comes to, and that many cost no more than their bytes."""

from __future__ import annotations

import random
import time
from itertools import pairwise

from walkback.elf.write import Draft


def test_what_is_written_is_read() -> None:
    chance = random.Random(7)
    for _ in range(300):
        data = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 60)))
        draft, now = Draft(memoryview(data)), bytearray(data)
        for _ in range(chance.randrange(12)):
            start = chance.randrange(len(data))
            contents = bytes(chance.randrange(256) for _ in range(chance.randrange(len(data) - start + 1)))
            draft.write(start, contents)
            now[start : start + len(contents)] = contents
            low, size = chance.randrange(len(data)), chance.randrange(20)
            assert draft.read(low, size) == bytes(now[low : low + size])
        assert b"".join(draft.parts()) == bytes(now)
        places = [(start, start + len(patch)) for start, patch in draft.patches]
        assert all(end < start for (_, end), (start, _) in pairwise(places))
        assert all(now[start:end] == patch for (start, end), (_, patch) in zip(places, draft.patches, strict=True))


def test_places_in_a_row_are_not_copied_again_and_again() -> None:
    draft = Draft(memoryview(bytes(1 << 24)))
    start = time.process_time()
    for offset in range(0, 1 << 24, 256):
        draft.write(offset, b"x" * 256)
    assert time.process_time() - start < 2
    assert len(draft.patches) == 1
