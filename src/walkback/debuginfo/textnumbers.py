"""How texts are numbered (a face: kernels compile this in)."""

from __future__ import annotations

import cython

from walkback.debuginfo.values import OFFSET_MASK, PLACE_SHIFT


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def text_at(place: cython.int, offset: cython.ulonglong) -> cython.ulonglong:
    """The number of a text."""
    return (cython.cast(cython.ulonglong, place) << PLACE_SHIFT) | (offset & OFFSET_MASK)
