"""What formats that have tables share: numbered texts, and the samples thread by thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from walkback.base.arrays import I64, U64, numbered
from walkback.base.dataclass import dataclass
from walkback.base.text import clean
from walkback.stacks.profile import Profile
from walkback.stacks.threads import threads

T = TypeVar("T")


def outermost_first(first: I64, words: Sequence[T]) -> Iterator[Sequence[T]]:
    """The words of each stack, which stand innermost first, turned around; stack i has its from `first[i]` on."""
    turned, count = words[::-1], len(words)
    return (turned[count - end : count - begin] for begin, end in pairwise(first.tolist()))


class StringTable:
    """Texts, each once, numbered as they come."""

    def __init__(self, *first: str) -> None:
        self.numbers = {text: number for number, text in enumerate(first)}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(clean(text), len(self.numbers))


@dataclass(frozen=True, slots=True)
class Series:
    """The samples of a thread; without a timeline those of a comm."""

    comm: str
    pid: int
    tid: int
    time: U64 | None
    """In nanoseconds, in their order."""
    stack: I64
    weight: U64


def series_of(profile: Profile) -> Iterator[Series]:
    """All samples. A comm that stands for a thread has its number as that of a process and thread."""
    if profile.timeline is not None:
        for one in threads(profile.timeline):
            yield Series(profile.comms[one.comm], one.pid, one.tid, one.time, one.stack, one.weight)
        return
    comms, comm_number = numbered(profile.comms)
    comm = comm_number[profile.comm]
    for number, text in enumerate(comms):
        rows = np.flatnonzero(comm == number)
        if len(rows):
            yield Series(str(text), number, number, None, profile.stack[rows], profile.weight[rows])
