"""How many frames two stacks have in common, in order (compiled)."""

import cython

from walkback.base.views import takes_views

_MOST = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Pairs of frames that are compared for one pair of stacks."""


@takes_views
def common(
    pairs: cython.const[cython.ulonglong][:, ::1],
    first: cython.const[cython.longlong][::1],
    words: cython.const[cython.ulonglong][::1],
    other_first: cython.const[cython.longlong][::1],
    other_words: cython.const[cython.ulonglong][::1],
    row: cython.longlong[::1],
    found: cython.longlong[::1],
):
    """For each pair of a list and an other list the length of the longest sequence of words that both have.

    `row` is room for the longest list of the others and 1.
    """
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(pairs.shape[0]):
            found[i] = _one(
                words,
                cython.cast(cython.Py_ssize_t, first[cython.cast(cython.Py_ssize_t, pairs[i, 0])]),
                cython.cast(cython.Py_ssize_t, first[cython.cast(cython.Py_ssize_t, pairs[i, 0]) + 1]),
                other_words,
                cython.cast(cython.Py_ssize_t, other_first[cython.cast(cython.Py_ssize_t, pairs[i, 1])]),
                cython.cast(cython.Py_ssize_t, other_first[cython.cast(cython.Py_ssize_t, pairs[i, 1]) + 1]),
                row,
            )


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _one(
    words: cython.const[cython.ulonglong][::1],
    a: cython.Py_ssize_t,
    a_end: cython.Py_ssize_t,
    other: cython.const[cython.ulonglong][::1],
    b: cython.Py_ssize_t,
    b_end: cython.Py_ssize_t,
    row: cython.longlong[::1],
) -> cython.longlong:
    same: cython.longlong = 0
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    diagonal: cython.longlong
    above: cython.longlong
    # Beginnings and ends that are equal are common whatever is between.
    while a < a_end and b < b_end and words[a] == other[b]:
        a += 1
        b += 1
        same += 1
    while a < a_end and b < b_end and words[a_end - 1] == other[b_end - 1]:
        a_end -= 1
        b_end -= 1
        same += 1
    # What would take too long is counted as different: no two honest stacks have so much between.
    if a == a_end or b == b_end or (a_end - a) > _MOST // (b_end - b):
        return same
    for j in range(b_end - b + 1):
        row[j] = 0
    for i in range(a, a_end):
        diagonal = 0
        for j in range(b_end - b):
            above = row[j + 1]
            if words[i] == other[b + j]:
                row[j + 1] = diagonal + 1
            elif row[j] > above:
                row[j + 1] = row[j]
            diagonal = above
    return same + row[b_end - b]
