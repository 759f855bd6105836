"""Wherever in a buffer the memory of a sample stands, the walk reads the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from walkback.base.arch import AMD64, ByteOrder
from walkback.walking.samples import PC, Memory
from walking.stacksource import (
    CALL,
    HERE,
    OUTERMOST,
    STACK,
    Thread,
    ended,
    made_walker,
    samples_of,
    table_of,
    usual_space,
)

pytestmark = pytest.mark.kernel

TABLE = table_of([(0, CALL), (0x20, OUTERMOST), (0x40, None)])


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("before", range(9))
@pytest.mark.parametrize("follows", [False, True])
def test_memory_at_any_place_of_a_buffer(order: ByteOrder, before: int, follows: bool) -> None:
    thread = Thread({7: STACK, 6: 0, 16: HERE, PC: HERE}).words(STACK, [1, HERE + 0x15, 2, HERE + 0x21], order)
    samples = samples_of([thread])
    contents = bytes(before) + bytes(samples.memory.buffer)
    memory = Memory(memoryview(contents), samples.memory.start, samples.memory.size, samples.memory.offset + before)
    if follows:
        memory = replace(memory, buffer=memoryview(bytes(before)), following=memoryview(contents[before:]))
    # A walk that is not by the buffer's words, which begin at an address that is not a multiple of 8
    apart = replace(memory, buffer=memoryview(bytes(1) + bytes(memory.buffer))[1:])
    for one in (memory, apart):
        walker = made_walker(AMD64, order, [TABLE], only="cfi")
        stacks = walker.walk(replace(samples, memory=one), [usual_space()])
        assert stacks.pc.tolist() == [HERE, HERE + 0x15, HERE + 0x21]
        assert ended(stacks) == ("COMPLETE", HERE + 0x21)
        short = replace(one, size=samples.memory.size - np.uint64(1))
        stacks = walker.walk(replace(samples, memory=short), [usual_space()])
        assert ended(stacks) == ("UNREADABLE", STACK + 24)
