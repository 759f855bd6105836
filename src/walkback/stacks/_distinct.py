"""Numbers lists of 64-bit words, and finds repeats in them (compiled); `distinct.py` is its face.

A list's hash is a polynomial in a secret number over its words, each mixed with a second secret first. So no input can
be prepared that makes many lists meet in one slot. Lists of any length are compared where they are kept, so their table
is here and not in `walkback.base.intern`, whose keys are words.
"""

import cython

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.mixing import folded, mixed
else:
    from walkback.base.mixing import folded, mixed

_WORD = cython.declare(cython.ulonglong, WORD)
"""Keeps products to 64 bits where this runs interpreted."""

FULL_LISTS = 1
"""Why `number` stopped: there is no room for one more list."""
FULL_WORDS = 2
"""Why `number` stopped: there is no room for the words of one more list."""
_FULL_LISTS = cython.declare(cython.int, FULL_LISTS)
_FULL_WORDS = cython.declare(cython.int, FULL_WORDS)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(0, check=True)
def _hash(
    words: cython.const[cython.ulonglong][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    mix: cython.ulonglong,
    base: cython.ulonglong,
) -> cython.ulonglong:
    i: cython.Py_ssize_t
    key: cython.ulonglong = cython.cast(cython.ulonglong, end - begin)
    for i in range(begin, end):
        key = (key * base + mixed(words[i], mix)) & _WORD
    # An odd number is never 0, which would say that there was an error.
    return ((folded(key) * mix) & _WORD) | 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _equal(
    words: cython.const[cython.ulonglong][::1],
    begin: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    kept: cython.ulonglong[::1],
    kept_begin: cython.Py_ssize_t,
    kept_length: cython.Py_ssize_t,
) -> cython.int:
    i: cython.Py_ssize_t
    if length != kept_length:
        return 0
    for i in range(length):
        if words[begin + i] != kept[kept_begin + i]:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _slot(
    key: cython.ulonglong,
    words: cython.const[cython.ulonglong][::1],
    begin: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    slots: cython.int[::1],
    hashes: cython.ulonglong[::1],
    kept_first: cython.longlong[::1],
    kept: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """The slot of the number of a list, or the free one where that is to go."""
    slot_mask: cython.Py_ssize_t = slots.shape[0] - 1
    slot: cython.Py_ssize_t = _first_slot(key, slot_mask)
    found: cython.Py_ssize_t = slots[slot]
    while found >= 0:
        if hashes[found] == key:
            kept_begin: cython.Py_ssize_t = kept_first[found]
            if _equal(words, begin, length, kept, kept_begin, kept_first[found + 1] - kept_begin):
                break
        slot = (slot + 1) & slot_mask
        found = slots[slot]
    return slot


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _first_slot(key: cython.ulonglong, slot_mask: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where a list is looked for first: by the upper half of its hash, which is a product."""
    return cython.cast(cython.Py_ssize_t, key >> 32) & slot_mask


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _keep(
    words: cython.const[cython.ulonglong][::1],
    begin: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    kept_first: cython.longlong[::1],
    kept: cython.ulonglong[::1],
) -> cython.int:
    """Copy a new list behind the `count` others; returns 0, or what there is no room for."""
    j: cython.Py_ssize_t
    kept_begin: cython.Py_ssize_t = kept_first[count]
    if count + 1 == kept_first.shape[0]:
        return _FULL_LISTS
    if kept.shape[0] - kept_begin < length:
        return _FULL_WORDS
    for j in range(length):
        kept[kept_begin + j] = words[begin + j]
    kept_first[count + 1] = kept_begin + length
    return 0


@takes_views
def number(
    first: cython.const[cython.longlong][::1],
    width: cython.Py_ssize_t,
    words: cython.const[cython.ulonglong][::1],
    numbers: cython.longlong[::1],
    state: cython.longlong[::1],
    slots: cython.int[::1],
    hashes: cython.ulonglong[::1],
    kept_first: cython.longlong[::1],
    kept: cython.ulonglong[::1],
    mix: cython.ulonglong,
    base: cython.ulonglong,
):
    """Number lists from the one that `state[0]` says on; `state[1]` counts the distinct ones.

    List i has the words from `first[i]` up to `first[i + 1]`, or where `width` is not 0 each has that many. Returns 0
    when all have a number, else what there is not enough room for.
    """
    i: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    length: cython.Py_ssize_t = width
    key: cython.ulonglong
    slot: cython.Py_ssize_t
    found: cython.Py_ssize_t
    count: cython.Py_ssize_t = state[1]
    stopped: cython.int = 0
    with cython.nogil:
        for i in range(state[0], numbers.shape[0]):
            if width:
                begin = i * width
            else:
                begin = first[i]
                length = first[i + 1] - begin
            key = _hash(words, begin, begin + length, mix, base)
            slot = _slot(key, words, begin, length, slots, hashes, kept_first, kept)
            found = slots[slot]
            if found < 0:
                stopped = _keep(words, begin, length, count, kept_first, kept)
                if stopped:
                    state[0] = i
                    break
                found = count
                slots[slot] = cython.cast(cython.int, found)
                hashes[found] = key
                count += 1
            numbers[i] = found
        if not stopped:
            state[0] = numbers.shape[0]
        state[1] = count
    return stopped


@takes_views
def fill(slots: cython.int[::1], hashes: cython.const[cython.ulonglong][::1], count: cython.Py_ssize_t):
    """Put lists 0 to `count` into empty slots; there are more slots than lists."""
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    slot_mask: cython.Py_ssize_t = slots.shape[0] - 1
    with cython.nogil:
        for i in range(count):
            slot = _first_slot(hashes[i], slot_mask)
            while slots[slot] >= 0:
                slot = (slot + 1) & slot_mask
            slots[slot] = cython.cast(cython.int, i)


@takes_views
def leading(
    first: cython.const[cython.longlong][::1],
    words: cython.const[cython.longlong][::1],
    seen: cython.longlong[::1],
    marks: cython.uchar[::1],
):
    """Mark each word that is not earlier in its list; `seen` has a -1 for each value that a word can have."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    value: cython.Py_ssize_t
    with cython.nogil:
        for i in range(first.shape[0] - 1):
            for j in range(first[i], first[i + 1]):
                value = words[j]
                if seen[value] != i:
                    seen[value] = i
                    marks[j] = 1
