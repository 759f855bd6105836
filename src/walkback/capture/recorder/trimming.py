"""Samples without what the kernel leaves empty: it makes room for a whole copy of the stack, however deep that is."""

from __future__ import annotations

import struct

import numpy as np

from walkback.capture.perfdata import layout
from walkback.capture.recorder.scanning import scanned

_SIZE_AT = 6
"""Where a record has its size."""
_WORD = struct.Struct("=Q")


def trim(data: bytearray, stack_bytes: int) -> None:
    """Shorten the samples that have this much room for the stack, to how much of it is used.

    A copy that does not fill its room has some left: one without any is of a stack that is longer.
    """
    view = memoryview(data)
    read = written = 0
    for rows in scanned(view):
        for i in np.flatnonzero((rows.kind == layout.SAMPLE) & (rows.size >= stack_bytes + 24)).tolist():
            begin, end = int(rows.offset[i]), int(rows.offset[i] + rows.size[i])
            room_at = end - stack_bytes - 16
            room, used = (_WORD.unpack_from(view, place)[0] for place in (room_at, end - 8))
            if room != stack_bytes or used >= room:
                continue
            kept = (used & ~7) + 8
            struct.pack_into("=H", view, begin + _SIZE_AT, end - begin - stack_bytes + kept)
            _WORD.pack_into(view, room_at, kept)
            written = _moved(view, read, room_at + 8 + kept, written)
            read = end - 8
    written = _moved(view, read, len(data), written)
    view.release()
    del data[written:]


def _moved(view: memoryview, begin: int, end: int, to: int) -> int:
    """Move bytes to the front; where they end then."""
    until = to + end - begin
    if begin != to:
        view[to:until] = view[begin:end]
    return until
