"""The rule that a state shows, in two numbers of 64 bits (a face: kernels compile these functions in)."""

import cython

from walkback.code.machines import AMD64
from walkback.proof._state import State
from walkback.proof.packed import is_vague, made, moved
from walkback.proof.values import (
    AT_CFA,
    AT_POINTER,
    BY_B,
    CFA_SAVED,
    CFA_SHIFT,
    IN_REGISTER,
    KEPT,
    KEY_B,
    KIND_MASK,
    OFFSET_SHIFT,
    PART_BIAS,
    PART_SHIFT,
    PLAIN_MASK,
    WITH_SIGNATURE,
    Known,
)

RETURN = -8
"""AMD64: the place of the return address, from the CFA."""
S390X_SP = 15
"""The stack pointer of s390x."""
S390X_ARGUMENT = 6
"""The register that is an argument there, though calls keep it."""
AARCH64_FP = 29
"""The frame pointer of AArch64."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def signature_of(value: cython.longlong, target: cython.int) -> cython.ulonglong:
    """Whether a value is that of a register at the entry: 0 if not, else 1 more than the bits of its signature."""
    if value == made(Known.ENTRY, target, 0):
        return 1
    if value & PLAIN_MASK != made(Known.SIGNED, target, 0):
        return 0
    signature: cython.longlong = value >> OFFSET_SHIFT
    if signature & ~KEY_B:
        return 0  # no rule can say its modifier
    return 1 + WITH_SIGNATURE + (BY_B if signature & KEY_B else 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def based(register: cython.int, offset: cython.longlong) -> cython.ulonglong:
    """The word of a register and an offset; 0 if that is too large."""
    if not -PART_BIAS < offset < PART_BIAS:
        return 0
    return (cython.cast(cython.ulonglong, register) << CFA_SHIFT) | cython.cast(cython.ulonglong, offset + PART_BIAS)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def beside(state: State, pointer: cython.longlong, value: cython.longlong) -> cython.longlong:
    """How far from a pointer into an aligned frame a value is saved; `PART_BIAS` if it is not."""
    i: cython.int
    if pointer & KIND_MASK == Known.ALIGNED:
        for i in range(state.slots):
            if state.saved[i] == value and (state.keys[i] ^ pointer) & PLAIN_MASK == 0:
                return (state.keys[i] >> OFFSET_SHIFT) - (pointer >> OFFSET_SHIFT)
    return PART_BIAS


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cfa_by(state: State, register: cython.int) -> cython.ulonglong:
    """The CFA as a register and an offset."""
    return based(register, -(state.values[register] >> OFFSET_SHIFT))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cfa_word(state: State) -> cython.ulonglong:
    """Where the CFA is: by a frame pointer that leads to the caller's, else by the stack pointer, else by another.

    Where the stack was aligned it is saved beside the frame pointer, or in some register before that is done.
    """
    register: cython.int
    offset: cython.longlong
    pointer: cython.longlong = state.values[state.fp]
    if pointer & KIND_MASK == Known.CFA and state.load(pointer) == made(Known.ENTRY, state.fp, 0):
        return cfa_by(state, state.fp)
    if state.values[state.sp] & KIND_MASK == Known.CFA:
        return cfa_by(state, state.sp)
    if pointer & KIND_MASK == Known.CFA:
        return cfa_by(state, state.fp)
    offset = beside(state, pointer, made(Known.CFA, 0, 0))
    if -PART_BIAS < offset < PART_BIAS:
        return CFA_SAVED | based(state.fp, offset)
    for register in range(state.registers):
        if (state.preserved >> register) & 1 and state.values[register] & KIND_MASK == Known.CFA:
            return cfa_by(state, register)
    for register in range(state.named):
        if state.values[register] & KIND_MASK == Known.CFA:
            return cfa_by(state, register)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def part_by(kind: cython.int, number: cython.ulonglong) -> cython.ulonglong:
    """The word of a part of a rule."""
    return (cython.cast(cython.ulonglong, kind) << PART_SHIFT) | number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def in_record(state: State, slot: cython.int, target: cython.int) -> cython.bint:
    """AArch64: whether the frame pointer and the return address are saved side by side, one of them in this slot."""
    if state.fp != AARCH64_FP:
        return False
    if target == state.fp:
        return signature_of(state.load(moved(state.keys[slot], 8)), state.ra) != 0
    return state.load(moved(state.keys[slot], -8)) == made(Known.ENTRY, state.fp, 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def in_frame(state: State, target: cython.int) -> cython.ulonglong:
    """The word for where a register was saved; 0 if it was not.

    That is in the record that the frame pointer leads to, else in the place where the ABI of s390x wants it and where
    functions of AMD64 push it first, and of AArch64 in any record, or at the lowest.
    """
    i: cython.int
    found: cython.ulonglong = 0
    best: cython.longlong = 0
    stack: cython.longlong = state.values[state.sp]
    pointer: cython.longlong = state.values[state.fp]
    has_record: cython.bint = pointer & KIND_MASK == Known.CFA and state.load(pointer) == made(Known.ENTRY, state.fp, 0)
    record: cython.longlong = moved(pointer, 0 if target == state.fp else 8)
    for i in range(state.slots):
        signature: cython.ulonglong = signature_of(state.saved[i], target)
        if signature and state.keys[i] & KIND_MASK == Known.CFA:
            offset: cython.longlong = state.keys[i] >> OFFSET_SHIFT
            if stack & KIND_MASK == Known.CFA and offset < stack >> OFFSET_SHIFT:
                continue  # it was taken off the stack
            if state.keys[i] == record if has_record else in_record(state, i, target):
                return part_by(AT_CFA, (signature - 1) | cython.cast(cython.ulonglong, offset + PART_BIAS))
            better: cython.bint = offset < best if state.fp == AARCH64_FP else offset > best
            if -PART_BIAS < offset < PART_BIAS and (better or not found):
                best = offset
                found = part_by(AT_CFA, (signature - 1) | cython.cast(cython.ulonglong, offset + PART_BIAS))
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def part_word(state: State, target: cython.int) -> cython.ulonglong:
    """Where the value is that a register had at the entry: in the frame, where it was saved, or in a register."""
    register: cython.int
    signature: cython.ulonglong
    found: cython.ulonglong = in_frame(state, target)
    if found:
        return found
    if target == state.fp:
        distance: cython.longlong = beside(state, state.values[target], made(Known.ENTRY, target, 0))
        if -PART_BIAS < distance < PART_BIAS:
            return part_by(AT_POINTER, cython.cast(cython.ulonglong, distance + PART_BIAS))
    if target < state.registers:
        signature = signature_of(state.values[target], target)
        if signature:
            return part_by(KEPT, signature - 1)
    for register in range(state.named):
        signature = signature_of(state.values[register], target)
        if signature:
            return part_by(IN_REGISTER, (signature - 1) | cython.cast(cython.ulonglong, register))
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rest_word(state: State) -> cython.ulonglong:
    """Where the return address and the caller's frame pointer are; 0 if one of them is lost."""
    ra: cython.ulonglong = part_word(state, state.ra)
    fp: cython.ulonglong = part_word(state, state.fp)
    return (ra << 32) | fp if ra and fp else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_saved(state: State, register: cython.int) -> cython.bint:
    """Whether the value that a register had at the entry is in the frame: from the stack pointer up to the CFA."""
    i: cython.int
    stack: cython.longlong = state.values[state.sp]
    for i in range(state.slots):
        if state.saved[i] != made(Known.ENTRY, register, 0) or is_callers(state.keys[i]):
            continue
        if (state.keys[i] ^ stack) & PLAIN_MASK or state.keys[i] >> OFFSET_SHIFT >= stack >> OFFSET_SHIFT:
            return True
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_callers(place: cython.longlong) -> cython.bint:
    """Whether a place on the stack is in the caller's frame, where no function saves registers."""
    return place & KIND_MASK == Known.CFA and place >> OFFSET_SHIFT >= 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def saves(state: State) -> cython.bint:
    """Whether a callee-saved register is saved, and has another value by now: it is no argument of a call."""
    register: cython.int
    for register in range(state.registers):
        changed: cython.bint = state.values[register] != made(Known.ENTRY, register, 0)
        if changed and (state.preserved >> register) & 1 and is_saved(state, register):
            return True
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def loses(state: State) -> cython.bint:
    """Whether a callee-saved register has surely another value than at the entry, which is not saved either."""
    register: cython.int
    for register in range(state.registers):
        value: cython.longlong = state.values[register]
        changed: cython.bint = value != made(Known.ENTRY, register, 0) and not is_vague(value & KIND_MASK)
        if changed and (state.preserved >> register) & 1 and register != state.sp and not is_saved(state, register):
            return True
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_passed(state: State, register: cython.int) -> cython.bint:
    """Whether calls keep a register that is no argument, and it has what it had at the entry."""
    if not 0 <= register < state.registers or register == state.sp:
        return False
    if state.sp == S390X_SP and register == S390X_ARGUMENT:
        return False
    return (state.preserved >> register) & 1 != 0 and state.values[register] == made(Known.ENTRY, register, 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def not_as_entered(state: State, registers: cython.ulonglong) -> cython.ulonglong:
    """Those of some callee-saved registers and that do not have their values of the entry."""
    register: cython.int
    registers &= state.preserved
    for register in range(state.registers):
        if state.values[register] == made(Known.ENTRY, register, 0):
            registers &= ~(cython.cast(cython.ulonglong, 1) << register)
    return registers


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_as_entered(state: State, machine: cython.int) -> cython.bint:
    """Whether the stack pointer and the return address are as a call leaves them."""
    if state.values[state.sp] != made(Known.CFA, 0, -state.entry_offset):
        return False
    if machine == AMD64:
        return state.load(made(Known.CFA, 0, RETURN)) == state.return_address
    return state.values[state.ra] == state.return_address
