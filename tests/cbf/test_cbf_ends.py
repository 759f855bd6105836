"""What is kept of deep stacks, and the objects for JSON."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from walkback.base.errors import BacktraceError, InexpressibleError
from walkback.cbf.decoding import decode
from walkback.cbf.encoding import encode
from walkback.cbf.ends import Ends, kept_ends
from walkback.cbf.layout import FrameCode
from walkback.cbf.objects import from_json, to_json

PC, RA, ASYNC, OMIT = FrameCode


def plainly(frames: list[tuple[int, int]], top: int, bottom: int) -> list[tuple[int, int]]:
    if len(frames) <= top + bottom:
        return frames
    left_out = frames[top : len(frames) - bottom]
    count = min(sum(value if kind == OMIT else 1 for kind, value in left_out), 2**64 - 1)
    return [*frames[:top], *([(OMIT, count)] if count else []), *frames[len(frames) - bottom :]]


def test_both_ways_keep_the_same_ends() -> None:
    rng = random.Random(6)
    for _ in range(500):
        top, bottom = rng.randint(0, 4), rng.randint(0, 4)
        stacks = []
        for _ in range(rng.randint(0, 6)):
            some = rng.choices((1, 2, 3, 4), (1, 5, 1, 1), k=rng.randint(0, 14))
            stacks.append([(kind, rng.choice((0, 1, 7, 2**63, rng.getrandbits(64)))) for kind in some])
        wanted = [plainly(stack, top, bottom) for stack in stacks]
        for stack, expected in zip(stacks, wanted, strict=True):
            ends = Ends(top, bottom)
            for kind, value in stack:
                ends.add(kind, value)
                assert len(ends.frames()) <= top + bottom + 1
            assert ends.frames() == expected
        flat = [frame for stack in [[(9, 9)] * 3, *stacks, [(9, 9)]] for frame in stack]
        column, words = (np.array([frame[number] for frame in flat], np.uint64) for number in (0, 1))
        first, kinds, values = kept_ends(np.cumsum([3, *map(len, stacks)]), column, words, top, bottom)
        found = [
            list(zip(kinds[begin:end].tolist(), values[begin:end].tolist(), strict=True))
            for begin, end in pairwise(first.tolist())
        ]
        assert found == wanted


def test_a_number_of_frames_cannot_be_negative() -> None:
    nothing = np.zeros(0, np.int64)
    for numbers in ((-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="negative"):
            Ends(*numbers)
        with pytest.raises(ValueError, match="negative"):
            kept_ends(np.zeros(1, np.int64), nothing, nothing, *numbers)


def test_objects_and_back() -> None:
    data = encode([(PC, 0x11), (RA, 0x22), (OMIT, 7), (ASYNC, 2**64 - 1)], truncated=True)
    objects = json.loads(json.dumps(to_json(decode(data))))
    assert objects == [
        {"kind": "pc", "address": 0x11},
        {"kind": "ra", "address": 0x22},
        {"kind": "omit", "count": 7},
        {"kind": "async", "address": 2**64 - 1},
        {"kind": "truncated"},
    ]
    assert encode(from_json(objects)) == data
    assert encode(from_json([])) == b"\x02\x00"


def test_more_frames_than_wanted_make_a_truncated_list() -> None:
    bomb = decode(bytes.fromhex("02187f8fffffffffffffffff00"))
    assert to_json(bomb, 2) == [{"kind": "pc", "address": 0x7F}] * 2 + [{"kind": "truncated"}]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({}, "a backtrace is a list of frames"),
        ([1], "frame 0 is none"),
        ([{"kind": "pc"}], '"pc" has address, a whole number'),
        ([{"kind": "omit", "address": 1}], '"omit" has count, a whole number'),
        ([{"kind": "pc", "address": True}], '"pc" has address'),
        ([{"kind": "pc", "address": 1.5}], '"pc" has address'),
        ([{"kind": ["pc"], "address": 1}], "its kind is none of pc, ra, async, omit"),
        ([{"kind": "truncated"}, {"kind": "pc", "address": 1}], "frame 0 is none: only the last can be truncated"),
    ],
)
def test_other_objects_are_refused(objects: list[int | dict[str, Any]] | dict[Any, Any], message: str) -> None:
    with pytest.raises(BacktraceError, match=message):
        from_json(objects)


def test_addresses_that_the_word_cannot_say_are_refused() -> None:
    with pytest.raises(InexpressibleError, match="more than 32 bits"):
        encode(from_json([{"kind": "pc", "address": 2**32}], word=32))
    with pytest.raises(InexpressibleError, match="does not fit into 64 bits"):
        from_json([{"kind": "pc", "address": 2**64}])
