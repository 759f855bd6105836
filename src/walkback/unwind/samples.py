"""What a walk starts from: registers, memory, and where code is mapped.

Every source (a live thread, a core file, a sample of a recording) says the same in these arrays, so there is one walker
for all. Nothing is copied: the memory of many samples can be pieces of one mapped file.
"""

from __future__ import annotations

from dataclasses import dataclass

from walkback.arrays import I32, I64, U64

COLUMNS = 33
"""Registers of a sample: by their DWARF numbers, and last the program counter."""
PC = 32
"""The column of the program counter, for every machine."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes at addresses: segments, whose contents stand in one buffer."""

    buffer: memoryview
    start: U64
    """The address of each segment; rising within the segments of one sample, which do not overlap."""
    size: U64
    """Bytes of it that are there."""
    offset: I64
    """Where they begin in the buffer, or where it ends, in what follows it."""
    following: memoryview = memoryview(b"")  # noqa: RUF009 - it cannot be changed
    """More bytes, which count from the end of the buffer."""


@dataclass(frozen=True, slots=True)
class Space:
    """Where code is mapped in one process at one time; rising and disjoint."""

    start: U64
    last: U64
    """The last address of each mapping."""
    module: I32
    """Whose code it is; -1 where that is not known. The caller numbers its modules."""
    bias: U64
    """What to take from an address, modulo 2**64, to have the address that the module's file gives it."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Threads stopped at some moment."""

    registers: U64
    """A row of `COLUMNS` for each sample."""
    known: U64
    """A bit for each column whose value is known."""
    space: I32
    """The number of the space that holds for each sample; -1 for none."""
    memory: Memory
    first_segment: I64
    """The segments of sample i are those from `first_segment[i]` up to `end_segment[i]`."""
    end_segment: I64
    cut: U64
    """Where the copied stack of each sample ends though its memory goes on; 0 where nothing was cut off."""

    def __len__(self) -> int:
        return len(self.space)
