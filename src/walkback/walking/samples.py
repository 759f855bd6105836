"""What a walk starts from: registers, memory, and where code is mapped.

Every source (a live thread, a core file, a sample of a recording) says the same in these arrays, so there is one walker
for all. Nothing is copied: the memory of many samples can be pieces of one mapped file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from walkback.base.arrays import I32, I64, U64
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine

COLUMNS = 35
"""Registers of a sample: by their DWARF numbers, then the program counter, and what no rule of a file speaks of."""
PC = 32
"""The column of the program counter, for every machine."""
THREAD = 33
"""That of where AMD64 keeps the data of a thread."""
SYSTEM_STACK = 34
"""That of where a walk came to the stack of a Go program's thread last, before the call that led to another; else 0."""
BEYOND = 1 << 16
"""What the numbers of these two are above their columns, in the expressions of Go's functions."""


@dataclass(frozen=True, slots=True, repr=False)
class Memory(OneLine):
    """Bytes at addresses: segments, whose contents stand in one buffer.

    >>> import numpy as np
    >>> words = memoryview(np.array([0x1030, 0], np.uint64)).cast("B")
    >>> memory = walkback.walking.Memory(words, np.array([0x7000], np.uint64), np.array([16], np.uint64), np.array([0]))
    >>> len(memory.buffer)
    16
    """

    buffer: memoryview
    start: U64
    """The address of each segment; rising within the segments of one sample, which do not overlap."""
    size: U64
    """The size of each segment in bytes."""
    offset: I64
    """Where they begin in the buffer, or beyond its end in `following`."""
    following: memoryview = memoryview(b"")
    """More bytes, counted from the end of the buffer."""


@dataclass(frozen=True, slots=True, repr=False)
class Space(OneLine):
    """Where code is mapped in one process at one time; rising and disjoint.

    >>> import numpy as np
    >>> code = np.array([0x1000], np.uint64), np.array([0x10FF], np.uint64)
    >>> space = walkback.walking.Space(*code, np.zeros(1, np.int32), np.zeros(1, np.uint64))
    >>> space.module.tolist()
    [0]
    """

    start: U64
    last: U64
    """The last address of each mapping."""
    module: I32
    """Whose code it is; -1 where that is not known. The caller numbers its modules."""
    bias: U64
    """What to take from an address, modulo 2**64, to have the address that the module's file gives it."""

    @classmethod
    def of(cls, start: Sequence[int], last: Sequence[int], module: Sequence[int], bias: Sequence[int]) -> Self:
        """From lists."""
        starts, lasts, biases = (np.array(column, np.uint64) for column in (start, last, bias))
        return cls(starts, lasts, np.array(module, np.int32), biases)


@dataclass(frozen=True, slots=True, repr=False)
class Samples(OneLine):
    """Threads stopped at some moment.

    >>> samples = walkback.stack("core.hello").snapshot.samples
    >>> len(samples), samples.registers.shape
    (1, (1, 35))
    """

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
