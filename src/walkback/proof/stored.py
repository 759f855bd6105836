"""States of the proof that are kept in an array of words (a face: kernels compile these functions in).

Where two ways meet, `join` keeps what both agree on.
"""

import cython

from walkback.code.effects import NONE
from walkback.proof._state import State
from walkback.proof.packed import joined
from walkback.proof.values import NO_BOUND

HEAD = 5
"""Words of a stored state before its values.

They are where its slots are, whether something was lost, the bound of an index, and which set of claims was proved.
"""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size(state: State) -> cython.int:
    """How many words the state takes at most when it is stored."""
    return HEAD + state.registers + 1 + 2 * state.slots


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def write(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Store the state; returns the place behind. Slots that are stored already are not stored again."""
    i: cython.int
    with cython.boundscheck(False):
        values: cython.Py_ssize_t = at + HEAD
        end: cython.Py_ssize_t = values + state.registers
        for i in range(state.registers):
            arena[values + i] = state.values[i]
        if state.slots_at < 0:
            state.slots_at = end
            arena[end] = state.slots
            end += 1
            for i in range(state.slots):
                arena[end + i] = state.keys[i]
            end += state.slots
            for i in range(state.slots):
                arena[end + i] = state.saved[i]
            end += state.slots
        arena[at] = state.slots_at
        arena[at + 1] = state.lost
        arena[at + 2] = state.bound_register
        arena[at + 3] = state.bound
        arena[at + 4] = -1 if state.changed else state.proved
    return end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def read(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.int:
    """Go on from a stored state."""
    i: cython.int
    with cython.boundscheck(False):
        slots: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, arena[at])
        state.lost = arena[at + 1] != 0
        state.bound_register = cython.cast(cython.int, arena[at + 2])
        state.bound = arena[at + 3]
        state.proved = arena[at + 4]
        for i in range(state.registers):
            state.values[i] = arena[at + HEAD + i]
        if slots != state.slots_at:
            state.slots_at = slots
            state.slots = cython.cast(cython.int, arena[slots])
            slots += 1
            for i in range(state.slots):
                state.keys[i] = arena[slots + i]
            slots += state.slots
            for i in range(state.slots):
                state.saved[i] = arena[slots + i]
    state.changed = state.proved < 0
    state.stirred = state.may_link = True
    state.compared = 0
    state.copied = state.copy = NONE
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def join(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t, room: cython.Py_ssize_t) -> cython.bint:
    """Keep of a stored state what this one agrees with; returns whether that changed it.

    If slots are lost, those that are left are stored at `room`, as other states may have the same.
    """
    differs: cython.bint = False
    with cython.boundscheck(False):
        if arena[at + 2] != NONE and (arena[at + 2] != state.bound_register or arena[at + 3] != state.bound):
            arena[at + 2] = NONE
            arena[at + 3] = NO_BOUND
            differs = True
        if state.lost and not arena[at + 1]:
            arena[at + 1] = True
            differs = True
        if join_registers(state, arena, at + HEAD):
            differs = True
        if arena[at] != state.slots_at and join_slots(state, arena, at, room):
            differs = True
        if differs:
            arena[at + 4] = -1
    return differs


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def join_registers(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.bint:
    """Keep of the registers of a stored state what this one agrees with; returns whether that changed them."""
    i: cython.int
    one: cython.longlong
    difference: cython.longlong = 0
    differs: cython.bint = False
    with cython.boundscheck(False):
        for i in range(state.registers):
            difference |= arena[at + i] ^ state.values[i]
        if not difference:
            return False
        for i in range(state.registers):
            one = arena[at + i]
            if one != state.values[i]:
                one = joined(one, state.values[i])
                if one != arena[at + i]:
                    arena[at + i] = one
                    differs = True
    return differs


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def has_slots(state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.bint:
    """Whether stored slots are those of the state, in the same order."""
    i: cython.int
    difference: cython.longlong = 0
    with cython.boundscheck(False):
        if arena[at] != state.slots:
            return False
        at += 1
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
def join_slots(
    state: State, arena: cython.longlong[::1], at: cython.Py_ssize_t, room: cython.Py_ssize_t
) -> cython.bint:
    """Let a stored state have the slots that this one agrees with; returns whether those are others."""
    i: cython.int
    j: cython.int = -1
    kept: cython.int = 0
    one: cython.longlong
    differs: cython.bint = False
    with cython.boundscheck(False):
        slots: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, arena[at])
        if has_slots(state, arena, slots):
            state.slots_at = slots
            return False
        count: cython.int = cython.cast(cython.int, arena[slots])
        saved: cython.Py_ssize_t = room + 1 + count
        for i in range(count):
            for _ in range(state.slots):
                j = j + 1 if j + 1 < state.slots else 0  # the next is mostly in the next slot
                if state.keys[j] == arena[slots + 1 + i]:
                    one = arena[slots + 1 + count + i]
                    if one != state.saved[j]:
                        one = joined(one, state.saved[j])
                        differs = differs or one != arena[slots + 1 + count + i]
                    arena[room + 1 + kept] = state.keys[j]
                    arena[saved + kept] = one
                    kept += 1
                    break
        if kept == count and not differs:
            return False
        for i in range(kept):
            arena[room + 1 + kept + i] = arena[saved + i]
        arena[room] = kept
        arena[at] = room
    return True
