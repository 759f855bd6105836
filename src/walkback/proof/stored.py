"""States of the proof that are kept in an array of words (a face: kernels compile these functions in).

Where two ways meet, `join` keeps what both agree on.
"""

import cython

from walkback.code.effects import NONE
from walkback.proof._state import State
from walkback.proof.packed import joined
from walkback.proof.values import NO_BOUND

HEAD = 4
"""Words of a stored state before its values: the slots, whether something was lost, and the bound of an index."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size(state: State) -> cython.int:
    """How many words the state takes when it is stored."""
    return HEAD + state.registers + 2 * state.slots


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def write(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.int:
    """Store the state."""
    i: cython.int
    with cython.boundscheck(False):
        arena[at] = state.slots
        arena[at + 1] = state.lost
        arena[at + 2] = state.bound_register
        arena[at + 3] = state.bound
        at += HEAD
        for i in range(state.registers):
            arena[at + i] = state.values[i]
        at += state.registers
        for i in range(state.slots):
            arena[at + i] = state.keys[i]
        at += state.slots
        for i in range(state.slots):
            arena[at + i] = state.saved[i]
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def read(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.int:
    """Go on from a stored state."""
    i: cython.int
    with cython.boundscheck(False):
        state.slots = cython.cast(cython.int, arena[at])
        state.lost = arena[at + 1] != 0
        state.bound_register = cython.cast(cython.int, arena[at + 2])
        state.bound = arena[at + 3]
        at += HEAD
        for i in range(state.registers):
            state.values[i] = arena[at + i]
        at += state.registers
        for i in range(state.slots):
            state.keys[i] = arena[at + i]
        at += state.slots
        for i in range(state.slots):
            state.saved[i] = arena[at + i]
    state.changed = state.stirred = state.may_link = True
    state.compared = 0
    state.copied = state.copy = NONE
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def join(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.bint:
    """Keep of a stored state what this one agrees with; returns whether that changed it."""
    differs: cython.bint = False
    with cython.boundscheck(False):
        if arena[at + 2] != NONE and (arena[at + 2] != state.bound_register or arena[at + 3] != state.bound):
            arena[at + 2] = NONE
            arena[at + 3] = NO_BOUND
            differs = True
        if state.lost and not arena[at + 1]:
            arena[at + 1] = True
            differs = True
    if not is_at(state, arena, at) and join_values(state, arena, at):
        differs = True
    return differs


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_at(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.bint:
    """Whether a stored state has the same values, in the same order."""
    i: cython.int
    difference: cython.longlong = 0
    with cython.boundscheck(False):
        if arena[at] != state.slots:
            return False
        at += HEAD
        for i in range(state.registers):
            difference |= arena[at + i] ^ state.values[i]
        at += state.registers
        for i in range(state.slots):
            difference |= arena[at + i] ^ state.keys[i]
        at += state.slots
        for i in range(state.slots):
            difference |= arena[at + i] ^ state.saved[i]
    return difference == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def join_values(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.bint:
    """Keep of the values of a stored state what this one agrees with; returns whether that changed it."""
    i: cython.int
    j: cython.int = -1
    kept: cython.int = 0
    one: cython.longlong
    differs: cython.bint = False
    with cython.boundscheck(False):
        count: cython.int = cython.cast(cython.int, arena[at])
        values: cython.Py_ssize_t = at + HEAD
        keys: cython.Py_ssize_t = values + state.registers
        saved: cython.Py_ssize_t = keys + count
        for i in range(state.registers):
            one = arena[values + i]
            if one != state.values[i]:
                one = joined(one, state.values[i])
                if one != arena[values + i]:
                    arena[values + i] = one
                    differs = True
        for i in range(count):
            for _ in range(state.slots):
                j = j + 1 if j + 1 < state.slots else 0  # the next is mostly in the next slot
                if state.keys[j] == arena[keys + i]:
                    one = arena[saved + i]
                    if one != state.saved[j]:
                        one = joined(one, state.saved[j])
                        differs = differs or one != arena[saved + i]
                    arena[keys + kept] = state.keys[j]
                    arena[saved + kept] = one
                    kept += 1
                    break
        if kept != count:
            arena[at] = kept
            for i in range(kept):
                arena[keys + kept + i] = arena[saved + i]
            differs = True
    return differs
