"""All threads of one process at one moment, live or from a core file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from walkback.base.arch import ByteOrder, Machine
from walkback.base.arrays import I64, U64
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.runtimes.chains import Chain
from walkback.runtimes.tasks import AsyncioTask
from walkback.stacks.stacks import Stacks
from walkback.walking.samples import Memory, Samples, Space


@dataclass(slots=True, repr=False)
class Snapshot(OneLine):
    """Threads, each with where it was; columns have one entry a thread."""

    machine: Machine
    byteorder: ByteOrder
    pid: int
    command: str
    """The name of the process, as the kernel keeps it."""
    tids: list[int]
    names: list[str]
    """Of the threads; a core file has only the name of the process."""
    samples: Samples
    spaces: list[Space]
    stopped: I64
    """For how many nanoseconds each thread was stopped; 0 in a core file."""
    signal: int = 0
    """What ended the process; 0 for nothing."""
    signalled: int = -1
    """The number in `tids` of the thread that got the signal; -1 for none."""
    fault: int | None = None
    """The address that the signal is about, where it is about one."""
    arguments: str = ""
    """The beginning of the command line, where a core file has it."""
    pac_mask: int = 0
    """The bits of a code address that a signature stands in, as an AArch64 kernel said."""
    troubles: list[str] = field(default_factory=list)
    """What could not be had, a line each."""
    stacks: Stacks | None = None
    """Once walked."""
    chains: list[list[Chain]] = field(default_factory=list)
    """Of each thread what its interpreters run."""
    tasks: list[AsyncioTask] = field(default_factory=list)
    """Those of Python's asyncio, where they were wanted."""


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Memory that was copied."""

    start: int
    contents: bytes


def samples_of(
    registers: U64, known: Sequence[int], pieces: Sequence[Sequence[MemoryRange]], cuts: Sequence[int]
) -> Samples:
    """Samples of one space from copied memory; the pieces of a thread may overlap, and then the first holds."""
    counts, flat = [], []
    for own in pieces:
        kept = _disjoint(own)
        counts.append(len(kept))
        flat += kept
    sizes = np.array([len(piece.contents) for piece in flat], np.int64)
    memory = Memory(
        memoryview(b"".join(piece.contents for piece in flat)),
        np.array([piece.start for piece in flat], np.uint64),
        sizes.astype(np.uint64),
        np.cumsum(sizes) - sizes,
    )
    ends = np.cumsum(np.array(counts, np.int64))
    return Samples(
        registers=registers,
        known=np.array(known, np.uint64),
        space=np.zeros(len(known), np.int32),
        memory=memory,
        first_segment=ends - np.array(counts, np.int64),
        end_segment=ends,
        cut=np.array(cuts, np.uint64),
    )


def _disjoint(pieces: Sequence[MemoryRange]) -> list[MemoryRange]:
    if len(pieces) < 2:
        return [piece for piece in pieces if piece.contents]
    taken: list[MemoryRange] = []
    for piece in pieces:
        start, end = piece.start, piece.start + len(piece.contents)
        for other in taken:
            if other.start <= start < other.start + len(other.contents):
                start = other.start + len(other.contents)
            elif start < other.start < end:
                end = other.start
        if start < end:
            taken.append(MemoryRange(start, piece.contents[start - piece.start : end - piece.start]))
            taken.sort(key=lambda one: one.start)
    return taken
