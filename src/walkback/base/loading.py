"""Numbers from bytes (a face: kernels compile the function in)."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def load8(buffer: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t) -> cython.ulonglong:
    """Eight bytes, the first lowest; the caller knows that they are there. Compilers make one load of it."""
    i: cython.Py_ssize_t
    value: cython.ulonglong = 0
    with cython.boundscheck(False):
        for i in range(8):
            value |= cython.cast(cython.ulonglong, buffer[pos + i]) << (8 * i)
    return value
