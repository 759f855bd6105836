"""Keys of hash tables (a face: kernels compile these functions in)."""

import cython

from walkback.base.bits import WORD

FOLD = 29
"""How far the upper bits of a key are brought down, to count in the lower ones as well."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def folded(key: cython.ulonglong) -> cython.ulonglong:
    """A key whose lower bits depend on its upper ones, which a product does not give."""
    return key ^ (key >> FOLD)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mixed(key: cython.ulonglong, factor: cython.ulonglong) -> cython.ulonglong:
    """A key multiplied by an odd number, so that each of its bits counts in all."""
    return folded((key * factor) & WORD)
