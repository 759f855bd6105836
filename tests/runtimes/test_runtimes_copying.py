"""A look is done twice: first on memory that notes what is read, then on a copy of that alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from walkback.runtimes.copying import CopiedMemory, NotCopiedError, NotedMemory, ranges_of

START, END = 0x1000, 0x4000
CONTENTS = bytes(place * 7 % 251 for place in range(END - START))


class Memory:
    """Memory from START to END."""

    def __init__(self, contents: bytes) -> None:
        self.contents = contents

    def read(self, address: int, size: int) -> bytes:
        away = address - START
        return self.contents[away : away + size] if away >= 0 else b""

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        parts = []
        for address in addresses:
            parts.append(self.read(address, size))
            if len(parts[-1]) < size:
                return b"".join(parts[:-1])
        return b"".join(parts)


def copied(noted: NotedMemory, contents: bytes) -> CopiedMemory:
    ranges = ranges_of(noted.blocks)
    return CopiedMemory(ranges, b"".join(contents[start - START :][:size] for start, size in ranges))


def test_what_was_read_is_copied() -> None:
    noted = NotedMemory(Memory(CONTENTS))
    wanted = [(START, 8), (START + 0x1F8, 0x10), (START + 0x9FF, 0x802), (END - 1, 1)]
    for address, size in wanted:
        assert len(noted.read(address, size)) == size
    assert noted.gather([START + 0x2000, START + 0x2208], 16) == CONTENTS[0x2000:0x2010] + CONTENTS[0x2208:0x2218]
    changed = bytes(255 - byte for byte in CONTENTS)
    memory = copied(noted, changed)
    for address, size in wanted:
        assert memory.read(address, size) == changed[address - START :][:size]
    assert memory.gather([START + 0x2208, START + 0x2000], 16) == changed[0x2208:0x2218] + changed[0x2000:0x2010]


def test_neighbours_are_copied_as_one() -> None:
    noted = NotedMemory(Memory(CONTENTS))
    noted.read(START + 0x7F0, 0x20)
    noted.read(START + 0x200, 1)
    noted.read(START + 0x400, 0x200)
    assert ranges_of(noted.blocks) == [(START + 0x200, 0x800)]


@pytest.mark.parametrize(("address", "size"), [(0, 8), (START - 4, 8), (START + 0x1FC, 8), (2**64 - 4, 8)])
def test_what_was_not_copied_is_an_error(address: int, size: int) -> None:
    noted = NotedMemory(Memory(CONTENTS))
    noted.read(START, 8)
    noted.read(START + 0x400, 8)
    memory = copied(noted, CONTENTS)
    with pytest.raises(NotCopiedError) as caught:
        memory.read(address, size)
    assert caught.value.blocks[0] <= address < caught.value.blocks[0] + 0x200
    with pytest.raises(NotCopiedError):
        memory.gather([START, address], size)


def test_what_could_not_be_read_is_an_error_as_well() -> None:
    noted = NotedMemory(Memory(CONTENTS))
    assert noted.read(END - 8, 16) == CONTENTS[-8:]
    assert noted.read(END, 8) == b""
    assert noted.gather([START, END - 4, START + 0x400], 8) == CONTENTS[:8]
    memory = copied(noted, CONTENTS)
    assert memory.read(END - 8, 8) == CONTENTS[-8:]
    for address, size in ((END - 8, 16), (END, 8), (START + 0x400, 8)):
        with pytest.raises(NotCopiedError):
            memory.read(address, size)


def test_a_copy_that_ends_early_has_what_came() -> None:
    noted = NotedMemory(Memory(CONTENTS))
    for place in (0, 0x600, 0xC00):
        noted.read(START + place, 0x200)
    ranges = ranges_of(noted.blocks)
    memory = CopiedMemory(ranges, CONTENTS[:0x200] + CONTENTS[0x600:0x700])
    assert memory.read(START, 0x200) == CONTENTS[:0x200]
    for place in (0x600, 0xC00):
        with pytest.raises(NotCopiedError):
            memory.read(START + place, 0x200)
    assert CopiedMemory([], b"").read(START, 0) == b""
