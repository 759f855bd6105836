"""What a table claims, held against what the code did (compiled).

A set of claims is what holds in a row: for the CFA and for each callee-saved register, where its value is. Each is a
register or the CFA, and up to two loads from there, with an offset before the first load and behind each.
"""

import cython

from walkback.proof.sets import IN_REGISTER, IN_SLOT, NOTHING

if cython.compiled:
    from cython.cimports.walkback.proof._state import State
    from cython.cimports.walkback.proof.packed import made, moved
    from cython.cimports.walkback.proof.values import (
        CFA_BASE,
        CFA_TARGET,
        INEXPRESSIBLE,
        KEY_B,
        KIND_MASK,
        OFFSET_SHIFT,
        PLAIN_MASK,
        UNCHANGED,
        UNDEFINED,
        Known,
        Signature,
        Verdict,
        Why,
    )
else:
    from walkback.proof._state import State
    from walkback.proof.packed import made, moved
    from walkback.proof.values import (
        CFA_BASE,
        CFA_TARGET,
        INEXPRESSIBLE,
        KEY_B,
        KIND_MASK,
        OFFSET_SHIFT,
        PLAIN_MASK,
        UNCHANGED,
        UNDEFINED,
        Known,
        Signature,
        Verdict,
        Why,
    )

_REGISTER = cython.declare(cython.longlong, IN_REGISTER)
_SLOT = cython.declare(cython.longlong, IN_SLOT)
_NOTHING = cython.declare(cython.longlong, NOTHING)


@cython.final
@cython.cclass
class Claims:
    """All sets of claims of a table."""

    def __init__(self, sets, machine, denies_ends=False):
        """If it `denies_ends`, functions that return have a caller; Go ends stacks in functions that its own calls."""
        self.first = memoryview(sets.first)
        self.target = memoryview(sets.target)
        self.base = memoryview(sets.base)
        self.depth = memoryview(sets.depth)
        self.offset = memoryview(sets.offset)
        self.signed = memoryview(sets.signed)
        self.usual = memoryview(sets.usual(machine))
        self.needed = memoryview(sets.needed(machine))
        self.sp, self.denies_ends = machine.sp, denies_ends
        self.sp_from_cfa = machine.sp_from_cfa
        self.verdict = self.what = self.why = 0

    @cython.boundscheck(False)  # sets and their entries are numbered by ourselves
    def judge(self, state: State, number: cython.Py_ssize_t) -> cython.int:
        """The verdict on a set: wrong if one claim is wrong, unknown if one cannot be known, else proved."""
        entry: cython.Py_ssize_t
        verdict: cython.int
        self.verdict = Verdict.PROVED
        self.what = CFA_TARGET
        self.why = Why.NONE
        if self.first[number] == self.first[number + 1]:
            self.verdict = Verdict.UNKNOWN
            self.why = Why.NO_RULE
            return self.verdict
        for entry in range(self.first[number], self.first[number + 1]):
            if self.holds(state, entry):
                continue
            if self.target[entry] == CFA_TARGET:
                verdict = self.judge_cfa(state, entry)
            else:
                verdict = self.judge_register(state, entry)
            if verdict == Verdict.PROVED:
                continue
            if verdict == Verdict.WRONG:
                self.verdict = verdict
                self.what = self.target[entry]
                self.why = Why.NONE
                self.by_call = self.is_lost_by_calls(state, entry)
                return verdict
            if self.verdict == Verdict.PROVED:
                self.verdict = verdict
                self.what = self.target[entry]
                self.why = verdict >> 8
        self.verdict &= 0xFF
        return self.verdict

    @cython.boundscheck(False)
    def needs(
        self, number: cython.Py_ssize_t, linked: cython.ulonglong, overwritten: cython.ulonglong, ra: cython.int
    ) -> cython.bint:
        """Whether a claim of a set is about one of these registers, or counts from it; what it claims is in `what`.

        That the return address is in another one than its own, `ra`, matters only for those that are `linked`.
        """
        entry: cython.Py_ssize_t
        if not (self.needed[number, 0] & (linked | overwritten)) | (self.needed[number, 1] & linked):
            return False
        for entry in range(self.first[number], self.first[number + 1]):
            register: cython.int = self.target[entry] if self.base[entry] == UNCHANGED else self.base[entry]
            lost: cython.ulonglong = linked
            if self.target[entry] != ra or register == ra:
                lost |= overwritten
            if 0 <= register < 64 and (lost >> register) & 1:
                self.what = self.target[entry]
                return True
        return False

    @cython.boundscheck(False)
    def ends_here(self, state: State, number: cython.Py_ssize_t) -> cython.bint:
        """Whether a set claims that there is no caller, where that can be wrong."""
        entry: cython.Py_ssize_t
        if not self.denies_ends:
            return False
        for entry in range(self.first[number], self.first[number + 1]):
            if self.target[entry] == state.ra:
                return self.base[entry] == UNDEFINED
        return False

    @cython.boundscheck(False)
    def is_lost_by_calls(self, state: State, entry: cython.Py_ssize_t) -> cython.bint:
        """Whether a claim needs a register that each call overwrites; no compiler has one behind a call."""
        register: cython.int = self.target[entry] if self.base[entry] == UNCHANGED else self.base[entry]
        return 0 <= register < state.registers and not (state.preserved >> register) & 1

    @cython.boundscheck(False)
    def holds(self, state: State, entry: cython.Py_ssize_t) -> cython.bint:
        """Whether a claim of one of the usual forms holds."""
        i: cython.int
        form: cython.longlong = self.usual[entry, 0]
        place: cython.longlong = self.usual[entry, 1]
        if form == _REGISTER:
            return state.values[place] == self.usual[entry, 2]
        if form == _SLOT:
            i = cython.cast(cython.int, self.usual[entry, 3])
            if i < state.slots and state.keys[i] == place:
                return state.saved[i] == self.usual[entry, 2]
            for i in range(state.slots):
                if state.keys[i] == place:
                    self.usual[entry, 3] = i
                    return state.saved[i] == self.usual[entry, 2]
        return form == _NOTHING

    @cython.boundscheck(False)
    def value(self, state: State, entry: cython.Py_ssize_t) -> cython.longlong:
        """What a claim comes to."""
        i: cython.int
        value: cython.longlong
        if self.base[entry] == CFA_BASE:
            value = made(Known.CFA, 0, 0)
        elif self.base[entry] == UNCHANGED:
            return state.get(self.target[entry])
        else:
            value = state.get(self.base[entry])
        value = moved(value, self.offset[entry, 0])
        for i in range(self.depth[entry]):
            value = moved(state.load(value), self.offset[entry, i + 1])
        return value

    @cython.boundscheck(False)
    def judge_cfa(self, state: State, entry: cython.Py_ssize_t) -> cython.int:
        """The verdict on the CFA; above it the reason why it is unknown."""
        value: cython.longlong
        kind: cython.int
        if self.base[entry] == INEXPRESSIBLE:
            return Verdict.UNKNOWN | (cython.cast(cython.int, self.offset[entry, 0]) << 8)
        value = self.value(state, entry)
        kind = value & KIND_MASK
        if kind == Known.CFA:
            return Verdict.PROVED if value >> OFFSET_SHIFT == 0 else Verdict.WRONG
        if kind == Known.ANY or kind == Known.STACK:
            return Verdict.UNKNOWN | (Why.CFA_VALUE << 8)
        if kind == Known.OTHER and self.base[entry] == state.sp and not self.depth[entry]:
            return Verdict.UNKNOWN | (Why.CFA_VALUE << 8)
        return Verdict.WRONG

    @cython.boundscheck(False)
    def judge_register(self, state: State, entry: cython.Py_ssize_t) -> cython.int:
        """The verdict on a register, with the reason above it."""
        value: cython.longlong
        target: cython.int = self.target[entry]
        if self.base[entry] == INEXPRESSIBLE:
            return Verdict.UNKNOWN | (cython.cast(cython.int, self.offset[entry, 0]) << 8)
        value = self.value(state, entry)
        if target == state.sp:
            if value == made(Known.CFA, 0, self.sp_from_cfa):
                return Verdict.PROVED
        elif self.signed[entry] == Signature.EITHER:
            if value == made(Known.ENTRY, target, 0) or value & PLAIN_MASK == made(Known.SIGNED, target, 0):
                return Verdict.PROVED
        elif value == self.wanted(entry):
            return Verdict.PROVED
        if value & KIND_MASK == Known.ANY:
            return Verdict.UNKNOWN | ((Why.SLOT_VALUE if self.depth[entry] else Why.REGISTER_VALUE) << 8)
        return Verdict.WRONG

    @cython.boundscheck(False)
    def wanted(self, entry: cython.Py_ssize_t) -> cython.longlong:
        """What a register has to have for its claim to hold."""
        target: cython.int = self.target[entry]
        if self.signed[entry] == Signature.YES or self.signed[entry] == Signature.YES_BY_B:
            return made(Known.SIGNED, target, KEY_B if self.signed[entry] == Signature.YES_BY_B else 0)
        return made(Known.ENTRY, target, 0)

    def suppose(self, state: State, number: cython.Py_ssize_t) -> cython.int:
        """Make the state one in which all claims hold; 0 if that cannot be done."""
        entry: cython.Py_ssize_t
        register: cython.int
        first: cython.Py_ssize_t = self.first[number]
        if first == self.first[number + 1]:
            return 0
        base: cython.int = self.base[first]
        if self.target[first] != CFA_TARGET or base < 0 or self.depth[first]:
            return 0
        state.enter()
        state.slots = 0
        for register in range(state.registers):
            if register != state.ra and not (state.preserved >> register) & 1:
                state.set(register, Known.OTHER)
        state.set(state.sp, Known.STACK)
        state.set(base, made(Known.CFA, 0, -self.offset[first, 0]))
        for entry in range(first + 1, self.first[number + 1]):
            self.suppose_one(state, entry)
        return 1

    def suppose_one(self, state: State, entry: cython.Py_ssize_t) -> cython.int:
        """Let one register be where its claim says."""
        target: cython.int = self.target[entry]
        wanted: cython.longlong = self.wanted(entry)
        place: cython.longlong
        if target == state.sp:
            wanted = made(Known.CFA, 0, self.sp_from_cfa)
        if self.base[entry] == UNCHANGED:
            return state.set(target, wanted)
        if self.base[entry] < CFA_BASE:
            return 0
        state.may_have_moved = state.may_have_moved or target == state.ra
        if state.get(target) & KIND_MASK != Known.CFA:
            state.set(target, Known.OTHER)
        if self.depth[entry] == 0 and self.base[entry] >= 0:
            return state.set(self.base[entry], wanted)
        if self.depth[entry] == 1:
            place = made(Known.CFA, 0, 0) if self.base[entry] == CFA_BASE else state.get(self.base[entry])
            state.store(moved(place, self.offset[entry, 0]), 8, wanted, False)
        return 0
