"""Samples without what the kernel leaves empty: it makes room for a whole copy of the stack, however deep that is."""

from __future__ import annotations

import struct

import numpy as np

from walkback.capture.perfdata import layout
from walkback.capture.recorder.scanning import scanned

_SIZE_AT = 6
"""Where a record has its size."""
_WORD = struct.Struct("=Q")


def trimmed(data: bytearray, stack_bytes: int) -> bytearray:
    """The records, whose samples have this much room for the stack and then how much of it is used, and nothing else.

    A copy that does not fill its room has some left: one without any is of a stack that is longer.
    """
    view, done, found = memoryview(data), 0, bytearray()
    for rows in scanned(data):
        for i in np.flatnonzero((rows.kind == layout.SAMPLE) & (rows.size >= stack_bytes + 24)).tolist():
            begin, end = int(rows.offset[i]), int(rows.offset[i] + rows.size[i])
            room_at = end - stack_bytes - 16
            room, used = (_WORD.unpack_from(data, place)[0] for place in (room_at, end - 8))
            if room != stack_bytes or used >= room:
                continue
            kept = (used & ~7) + 8
            found += view[done : begin + _SIZE_AT]
            found += struct.pack("=H", end - begin - stack_bytes + kept)
            found += view[begin + 8 : room_at]
            found += _WORD.pack(kept)
            found += view[room_at + 8 : room_at + 8 + kept]
            done = end - 8
    found += view[done:]
    return found
