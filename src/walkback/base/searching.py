"""Searching sorted numbers (a face: kernels compile this in)."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def last_between(
    numbers: cython.const[cython.ulonglong][::1],
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    wanted: cython.ulonglong,
) -> cython.Py_ssize_t:
    """The last number from `low` to `high` that is not larger than the one wanted; the one before if all are."""
    middle: cython.Py_ssize_t
    with cython.boundscheck(False):
        while low < high:
            middle = (low + high) // 2
            if numbers[middle] <= wanted:
                low = middle + 1
            else:
                high = middle
    return low - 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def last(
    numbers: cython.const[cython.ulonglong][::1], count: cython.Py_ssize_t, wanted: cython.ulonglong
) -> cython.Py_ssize_t:
    """The last of the first `count` numbers that is not larger than the one wanted; -1 if all are."""
    return last_between(numbers, 0, count, wanted)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def holds(numbers: cython.const[cython.ulonglong][::1], wanted: cython.ulonglong) -> cython.bint:
    """Whether sorted numbers hold one."""
    i: cython.Py_ssize_t = last(numbers, numbers.shape[0], wanted)
    return i >= 0 and numbers[i] == wanted
