"""The chain of frames in memory that is made here, and its place in a stack."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import numpy as np
import pytest

from walkback.runtimes.chains import Chain, Part
from walkback.runtimes.merging import merged
from walkback.runtimes.python._frames import WIDTH, follow
from walkback.stacks.stacks import End, FrameKind, How, Stacks

pytestmark = pytest.mark.kernel

SIZE = 40
SHAPE = np.array([8, 0, 16, 30, 24, SIZE], np.int64)
"""Of a frame: previous, code, instruction, owner, copy."""
BASE = 0x7000


def memory_of(frames: list[tuple[int, int, int, int, int, int]], order: str) -> bytes:
    """Frames with their addresses, previous ones, code, instruction, owner and copy."""
    contents = bytearray(0x1000)
    for address, previous, code, instruction, owner, copy in frames:
        struct.pack_into(f"{order}QQQ", contents, address - BASE, code, previous, instruction)
        struct.pack_into(f"{order}i", contents, address - BASE + 24, copy)
        contents[address - BASE + 30] = owner
    return bytes(contents)


@pytest.mark.parametrize("order", "<>")
def test_frames_are_taken_as_far_as_they_are_there(order: str) -> None:
    frames = [
        (BASE + 0x100, BASE + 0x80, 2**64 - 8, 2**63, 1, 2**31 - 1),
        (BASE + 0x80, BASE + 0x1000 - SIZE, 3, 4, 255, 0),
        (BASE + 0x1000 - SIZE, BASE + 0x1000 - SIZE + 8, 5, 6, 0, 7),
    ]
    memory, big = memory_of(frames, order), order == ">"
    found = np.zeros((5, WIDTH), np.uint64)
    # The last one of which there is not enough.
    assert follow(memoryview(memory), BASE, BASE + 0x100, SHAPE, big, found, 1) == (BASE + 0x1000 - SIZE + 8, 4)
    expected = [[address, code, instruction, owner, copy] for address, _, code, instruction, owner, copy in frames]
    assert found[1:4].tolist() == expected
    # Room for one more.
    assert follow(memoryview(memory), BASE, BASE + 0x100, SHAPE, big, found, 4) == (BASE + 0x80, 5)
    assert follow(memoryview(memory), BASE, BASE + 0x100, SHAPE, big, found, 5) == (BASE + 0x100, 5)


@pytest.mark.parametrize("address", [0, BASE - 8, BASE + 0x1000, BASE + 0x84, 2**64 - 8, 1])
def test_what_is_not_there_is_not_read(address: int) -> None:
    found = np.zeros((5, WIDTH), np.uint64)
    assert follow(memoryview(bytes(0x1000)), BASE, address, SHAPE, False, found, 0) == (address, 0)
    assert follow(memoryview(b""), BASE, address, SHAPE, False, found, 0) == (address, 0)


def test_a_frame_without_copies_has_none() -> None:
    shape = SHAPE.copy()
    shape[4] = -1
    found = np.zeros((1, WIDTH), np.uint64)
    memory = memory_of([(BASE, 0, 1, 2, 3, 4)], "<")
    assert follow(memoryview(memory), BASE, BASE, shape, False, found, 0) == (0, 1)
    assert found.tolist() == [[BASE, 1, 2, 3, 0]]


def test_hostile_frames_end() -> None:
    rng = random.Random(1)
    for _ in range(300):
        memory = bytearray(rng.randbytes(0x1000))
        for place in range(0, 0x1000, 8):
            if rng.random() < 0.7:
                memory[place : place + 8] = (BASE + 8 * rng.randrange(-2, 0x203)).to_bytes(8, "little")
        found = np.zeros((64, WIDTH), np.uint64)
        address, used = follow(
            memoryview(bytes(memory)), BASE, BASE + 8 * rng.randrange(0x200), SHAPE, rng.random() < 0.5, found, 0
        )
        assert 0 <= used <= 64
        assert address or used
        assert not found[used:].any()


def stack_of(*frames: tuple[int, int], end: int = End.COMPLETE) -> Stacks:
    """One stack of frames with an address and a stack pointer."""
    count = len(frames)
    address, sp = (np.array([frame[i] for frame in frames], np.uint64) for i in range(2))
    return Stacks(
        first=np.array([0, count]),
        pc=address + np.uint64(0x1000),
        kind=np.full(count, FrameKind.RETURN, np.uint8),
        how=np.full(count, How.CFI, np.uint8),
        module=np.zeros(count, np.int32),
        address=address,
        sp=sp,
        end=np.array([end], np.uint8),
        at=np.zeros(1, np.uint64),
    )


NATIVE = stack_of((1, 0x100), (2, 0x140), (3, 0x180), (4, 0x1C0), (5, 0x200))


def shown(stacks: Stacks) -> list[int]:
    """Addresses, and the negative numbers of frames of chains."""
    return [
        -address if how == How.PYTHON else address
        for address, how in zip(stacks.address.tolist(), stacks.how.tolist(), strict=True)
    ]


def put(
    *parts: tuple[int, list[int]], stacks: Stacks = NATIVE, evaluators: bool = False, torn: int | None = None
) -> Stacks:
    chain = Chain(How.PYTHON, [Part(at, frames) for at, frames in parts], torn)
    return merged(stacks, [[chain]], lambda _, address: address == 3, lambda module: module == 1, evaluators=evaluators)


def test_functions_take_the_place_of_the_frame_that_has_their_address() -> None:
    assert shown(put((0x150, [7, 8]))) == [1, -7, -8, 3, 4, 5]
    assert shown(put((0x140, [7]), (0x17F, [8]))) == [1, -7, -8, 3, 4, 5]
    assert shown(put((0x100, [7]), (0x1BF, [8, 9]))) == [-7, 2, -8, -9, 4, 5]
    assert shown(put((0x150, []))) == [1, 2, 3, 4, 5]
    assert shown(put((0x150, [7]), evaluators=True)) == [1, -7, 2, 3, 4, 5]


def test_pieces_of_an_evaluator_go_with_it() -> None:
    assert shown(put((0x1C8, [7, 8]))) == [1, 2, -7, -8, 5]
    assert shown(put((0x1C8, [7, 8]), evaluators=True)) == [1, 2, 3, -7, -8, 4, 5]


def test_what_calls_an_evaluator_for_a_function_goes_with_it() -> None:
    called = replace(NATIVE, module=np.array([1, 0, 1, 1, 0], np.int32))
    assert shown(put((0x150, [7]), stacks=called)) == [1, -7, 4, 5]
    assert shown(put((0x150, [7]), stacks=called, evaluators=True)) == [1, -7, 2, 3, 4, 5]


def test_functions_beyond_the_end_follow_it() -> None:
    assert shown(put((0x150, [7]), (0x5000, [8, 9]))) == [1, -7, 3, 4, 5, -8, -9]
    # Those of another stack, and of what has returned already.
    assert shown(put((0x150, [7]), (0x7FFF_0000_0000, [8]), (0x80, [9]))) == [1, -7, 3, 4, 5]
    unknown = stack_of((1, 0x100), (2, 0), (3, 0))
    assert shown(put((0x150, [7]), stacks=unknown)) == [1, 2, 3]
    empty = stack_of(end=End.NO_REGISTERS)
    assert shown(put((0x150, [7]), stacks=empty)) == []


def test_a_torn_chain_is_no_complete_stack() -> None:
    found = put((0x150, [7]), torn=0x77)
    assert (found.end.tolist(), found.at.tolist()) == ([End.TORN], [0x77])
    cut = stack_of((1, 0x100), (2, 0x140), end=End.STACK_CUT)
    assert put((0x110, [7]), torn=0x77, stacks=cut).end.tolist() == [End.STACK_CUT]
    assert merged(NATIVE, [[]], lambda *_: False, lambda _: False) is NATIVE
    longer = Chain(How.PYTHON, [Part(0x150, [7])], 0x77, has_more=True)
    assert merged(NATIVE, [[longer]], lambda *_: False, lambda _: False).end.tolist() == [End.LIMIT]
