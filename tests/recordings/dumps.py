"""What perf says of a recording, record by record."""

from __future__ import annotations

from pathlib import Path

from walkback.capture.perfdata.recording import Recording
from walkback.naming.modules import Modules


def dumped(recording: Path) -> dict[tuple[int, int], int]:
    """How many bytes of stack there are for each sample."""
    found = {}
    for batch in Recording.open(recording, Modules()).batches():
        samples = batch.samples
        there = samples.end_segment > samples.first_segment
        for tid, time, some, segment in zip(batch.tid, batch.time, there, samples.first_segment, strict=True):
            found[int(tid), int(time)] = int(samples.memory.size[segment]) if some else 0
    return found
