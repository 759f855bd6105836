"""The samples of each thread, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from walkback.base.arrays import I64, U64
from walkback.base.dataclass import dataclass
from walkback.stacks.profile import Timeline


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread's samples."""

    pid: int
    tid: int
    comm: int
    """What it was called last."""
    time: U64
    stack: I64
    weight: U64


def threads(timeline: Timeline) -> Iterator[Thread]:
    """All threads, by process and thread number."""
    if not len(timeline):
        return
    order = np.lexsort((timeline.time, timeline.tid, timeline.pid))
    pid, tid = timeline.pid[order], timeline.tid[order]
    changes = np.flatnonzero((pid[1:] != pid[:-1]) | (tid[1:] != tid[:-1])) + 1
    for begin, end in pairwise([0, *changes.tolist(), len(order)]):
        its = order[begin:end]
        yield Thread(
            int(pid[begin]),
            int(tid[begin]),
            int(timeline.comm[its[-1]]),
            timeline.time[its],
            timeline.stack[its].astype(np.int64),
            timeline.weight[its],
        )
