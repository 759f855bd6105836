"""Compact Backtrace Format: a backtrace for each sample, one after the other.

The addresses are those of the process; `walkback cif encode` keeps what they were mapped to. The first frame is a
program counter, the callers are return addresses, and a stack whose end was not found is truncated. Calls that are
inlined have no address of their own, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np

from walkback.cbf.encoding import encode_columns
from walkback.cbf.layout import FrameCode
from walkback.stacks.profile import SampleBatch
from walkback.stacks.stacks import End, How


def write(batches: Iterable[SampleBatch], out: BinaryIO) -> None:
    """Write samples as they come."""
    for batch in batches:
        kept = batch.how < How.INLINED
        first, pc = np.concatenate(([0], np.cumsum(kept)))[batch.first], batch.pc[kept]
        # What is looked up one byte before is where a call returns to; so are all callers in the kernel.
        returns = pc != batch.lookup[kept]
        calls = batch.frames.kernel[batch.frame[kept]]
        calls[first[:-1][np.diff(first) > 0]] = False
        kind = np.where(returns | calls, np.uint8(FrameCode.RA), np.uint8(FrameCode.PC))
        data, _ = encode_columns(first, kind, pc, truncated=batch.end != End.COMPLETE)
        out.write(data.data)
