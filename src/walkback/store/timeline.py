"""When samples of a store were taken: how many in each of some spans of time, all of one length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from walkback.base.arrays import I64
from walkback.base.dataclass import dataclass
from walkback.segments.database import connect
from walkback.store.layout import LAST_NS
from walkback.store.parts import Block
from walkback.store.reading import BlockTables
from walkback.store.sums import Wanted

_MILLISECOND = 10**6
_DAY = 24 * 3600 * 1000
_STEPS = [
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1000 * seconds for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)),
    *(3600_000 * hours for hours in (2, 3, 6, 12)),
    *(_DAY * days for days in (1, 2, 7, 14, 28, 91, 182, 364, 728)),
]
"""In milliseconds: lengths that people know."""


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The number of samples in each span."""

    first: int
    """When the first span begins, in nanoseconds since 1970."""
    step: int
    """How long each is."""
    counts: I64


def sample_times(blocks: Sequence[Block], wanted: Wanted, most: int) -> SampleTimes:
    """When the samples that are wanted were taken, in at most `most` spans, which is no less than 150.

    The spans reach over the times that are wanted; where these have no end, over the times of all samples.
    """
    begin, end = wanted.since, wanted.until
    if begin is None:
        begin = min((block.counts.first for block in blocks), default=0)
    begin = min(max(begin, 0), LAST_NS)
    if end is None:
        end = max((block.counts.last for block in blocks), default=begin) + 1
    end = max(min(end, LAST_NS), begin + 1)
    step = _step(begin, end, most)
    first = begin // step
    counts = np.zeros((end - 1) // step - first + 1, np.int64)
    if blocks:
        span, count = _counted(blocks, wanted, step)
        inside = (span >= first) & (span < first + len(counts))
        counts[span[inside] - first] = count[inside]
    return SampleTimes(first * step, step, counts)


def _step(begin: int, end: int, most: int) -> int:
    """The shortest step with which a range has few spans; the longest, if none has."""
    steps = [_MILLISECOND * step for step in _STEPS]
    return next((step for step in steps if (end - 1) // step - begin // step < most), steps[-1])


def _counted(blocks: Sequence[Block], wanted: Wanted, step: int) -> tuple[I64, I64]:
    """The number of each span that has samples, and how many it has."""
    with connect() as connection:
        tables = BlockTables(connection, blocks)
        rows = f"(SELECT * FROM {tables.scan('samples')} WHERE {wanted.of_times or 'true'})"
        if wanted.of_sources:
            picked = f"SELECT block, row AS source FROM {tables.scan('sources')} WHERE {wanted.of_sources}"
            rows += f" JOIN ({picked}) USING (block, source)"
        found = tables.ask(
            f"""SELECT epoch_ns("time") // {step} AS span, CAST(count(*) AS BIGINT) AS count
            FROM {rows} GROUP BY span ORDER BY span"""
        )
    return np.asarray(found["span"], np.int64), np.asarray(found["count"], np.int64)
