"""What the proof knows at one place of the code (compiled).

Each register has a value, and so has each place on the stack where something was saved that the table may ask for.
Where two ways meet, `join` keeps what both agree on.
"""

import cython
import numpy as np

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.code.effects import NONE
    from cython.cimports.walkback.proof.packed import KIND_MASK, OFFSET_SHIFT, is_vague, joined, made
    from cython.cimports.walkback.proof.values import Known
else:
    from walkback.code.effects import NONE
    from walkback.proof.packed import KIND_MASK, OFFSET_SHIFT, is_vague, joined, made
    from walkback.proof.values import Known

_REGISTERS = cython.declare(cython.int, 48)
_SLOTS = cython.declare(cython.int, 64)
_SLOTS_FOR_ALL = cython.declare(cython.int, 48)
"""The rest of them is only for registers that are saved."""
_TABLES = cython.declare(cython.int, 1024)
_HEAD = cython.declare(cython.int, 4)
"""Words of a stored state before its values: the slots, whether something was lost, and the bound of an index."""
_RETURN = cython.declare(cython.int, 16)
"""AMD64: the column of the return address, which the call put on the stack."""
_ALL = cython.declare(cython.ulonglong, WORD)
_NO_BOUND = cython.declare(cython.longlong, -1)


@cython.final
@cython.cclass
class State:
    """Registers and saved values, at the place where the walk is."""

    def __init__(self, machine, preserved, watched):
        self.registers = 16 if machine.name == "AMD64" else 48 if machine.name == "AArch64" else 32
        self.sp, self.fp, self.ra = machine.sp, machine.fp, machine.ra
        self.entry_offset = machine.entry_sp_to_cfa
        self.preserved = preserved
        self.watched = watched
        self.values = memoryview(np.zeros(_REGISTERS, np.int64))
        self.keys = memoryview(np.zeros(_SLOTS, np.int64))
        self.saved = memoryview(np.zeros(_SLOTS, np.int64))
        self.tables = memoryview(np.zeros((_TABLES, 5), np.int64))
        self.table_count = 0
        self.enter()

    def enter(self) -> cython.int:
        """A function begins as the ABI says."""
        register: cython.int
        for register in range(self.registers):
            kept: cython.bint = (self.preserved >> register) & 1 or register == self.ra
            self.values[register] = (
                made(Known.ENTRY, register, 0) if kept else cython.cast(cython.longlong, Known.OTHER)
            )
        self.values[self.sp] = made(Known.CFA, 0, -self.entry_offset)
        self.slots = 0
        self.lost = False
        self.changed = True
        self.compared = 0
        self.bound_register = NONE
        self.bound = _NO_BOUND
        if self.ra == _RETURN:
            self.keys[0] = made(Known.CFA, 0, -8)
            self.saved[0] = made(Known.ENTRY, _RETURN, 0)
            self.slots = 1
        return 0

    def size(self) -> cython.int:
        """How many words the state takes when it is stored."""
        return _HEAD + self.registers + 2 * self.slots

    def write(self, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.int:
        """Store the state."""
        i: cython.int
        with cython.boundscheck(False):
            arena[at] = self.slots
            arena[at + 1] = self.lost
            arena[at + 2] = self.bound_register
            arena[at + 3] = self.bound
            at += _HEAD
            for i in range(self.registers):
                arena[at + i] = self.values[i]
            at += self.registers
            for i in range(self.slots):
                arena[at + 2 * i] = self.keys[i]
                arena[at + 2 * i + 1] = self.saved[i]
        return 0

    def read(self, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.int:
        """Go on from a stored state."""
        i: cython.int
        with cython.boundscheck(False):
            self.slots = cython.cast(cython.int, arena[at])
            self.lost = arena[at + 1] != 0
            self.bound_register = cython.cast(cython.int, arena[at + 2])
            self.bound = arena[at + 3]
            at += _HEAD
            for i in range(self.registers):
                self.values[i] = arena[at + i]
            at += self.registers
            for i in range(self.slots):
                self.keys[i] = arena[at + 2 * i]
                self.saved[i] = arena[at + 2 * i + 1]
        self.changed = True
        self.compared = 0
        return 0

    def join(self, arena: cython.longlong[::1], at: cython.Py_ssize_t) -> cython.bint:
        """Keep of a stored state what this one agrees with; returns whether that changed it."""
        i: cython.int
        j: cython.int = -1
        kept: cython.int = 0
        one: cython.longlong
        values: cython.Py_ssize_t = at + _HEAD
        places: cython.Py_ssize_t = values + self.registers
        differs: cython.bint = False
        with cython.boundscheck(False):
            for i in range(self.registers):
                one = arena[values + i]
                if one != self.values[i]:
                    one = joined(one, self.values[i])
                    if one != arena[values + i]:
                        arena[values + i] = one
                        differs = True
            for i in range(cython.cast(cython.int, arena[at])):
                for _ in range(self.slots):
                    j = j + 1 if j + 1 < self.slots else 0  # the next is mostly in the next slot
                    if self.keys[j] == arena[places + 2 * i]:
                        one = arena[places + 2 * i + 1]
                        if one != self.saved[j]:
                            one = joined(one, self.saved[j])
                            differs = differs or one != arena[places + 2 * i + 1]
                        arena[places + 2 * kept] = self.keys[j]
                        arena[places + 2 * kept + 1] = one
                        kept += 1
                        break
            if kept != arena[at]:
                arena[at] = kept
                differs = True
            if self.lost and not arena[at + 1]:
                arena[at + 1] = True
                differs = True
            if arena[at + 2] != self.bound_register or arena[at + 3] != self.bound:
                arena[at + 2] = NONE
                arena[at + 3] = _NO_BOUND
        return differs

    def set(self, register: cython.int, value: cython.longlong) -> cython.int:
        """Give a register a value."""
        if register == self.bound_register:
            self.bound_register = NONE
        if 0 <= register < self.registers:
            with cython.boundscheck(False):
                if self.values[register] != value:
                    self.values[register] = value
                    if (self.watched >> register) & 1:
                        self.changed = True
        return 0

    def get(self, register: cython.int) -> cython.longlong:
        """The value of a register; of none it is no value of the entry."""
        if 0 <= register < self.registers:
            with cython.boundscheck(False):
                return self.values[register]
        return Known.OTHER

    def load(self, place: cython.longlong) -> cython.longlong:
        """What is at a place."""
        i: cython.int
        kind: cython.int = place & KIND_MASK
        if kind == Known.CFA or kind == Known.ALIGNED:
            with cython.boundscheck(False):
                for i in range(self.slots):
                    if self.keys[i] == place:
                        return self.saved[i]
            return Known.ANY if self.lost else Known.OTHER
        if is_vague(kind):
            return Known.ANY
        return Known.OTHER

    def store(self, place: cython.longlong, width: cython.int, value: cython.longlong) -> cython.int:
        """Put a value at a place; kept is what was saved, and what leads back to the CFA."""
        kind: cython.int = place & KIND_MASK
        wanted: cython.int = value & KIND_MASK
        if kind == Known.CFA or kind == Known.ALIGNED:
            self.forget(place, width)
            kept: cython.bint = wanted >= Known.CFA and wanted <= Known.SIGNED and self.slots < _SLOTS
            if (wanted == Known.CONSTANT or wanted == Known.STACK) and self.slots < _SLOTS_FOR_ALL:
                kept = True
            if wanted >= Known.CFA and wanted <= Known.SIGNED and not kept:
                self.lost = True
            if kept and width >= 8:
                self.keys[self.slots] = place
                self.saved[self.slots] = value
                self.slots += 1
                self.changed = True
        elif is_vague(kind):
            if wanted == Known.ENTRY or wanted == Known.SIGNED:
                self.lost = True
        return 0

    def forget(self, place: cython.longlong, width: cython.int) -> cython.int:
        """Something else is stored over the bytes from a place on."""
        i: cython.int = 0
        distance: cython.longlong
        with cython.boundscheck(False):
            while i < self.slots:
                distance = (self.keys[i] >> OFFSET_SHIFT) - (place >> OFFSET_SHIFT)
                if -8 < distance < width and (self.keys[i] ^ place) & ((1 << OFFSET_SHIFT) - 1) == 0:
                    self.slots -= 1
                    self.keys[i] = self.keys[self.slots]
                    self.saved[i] = self.saved[self.slots]
                    self.changed = True
                else:
                    i += 1
        return 0

    def clobber(self, mask: cython.ulonglong) -> cython.int:
        """Registers get values that nothing is known of; a stack pointer is still one."""
        register: cython.int = 0
        if self.bound_register >= 0 and (mask >> self.bound_register) & 1:
            self.bound_register = NONE
        with cython.boundscheck(False):
            while mask and register < self.registers:
                if mask & 1 and self.values[register] != Known.OTHER:
                    self.values[register] = Known.STACK if register == self.sp else Known.OTHER
                    if (self.watched >> register) & 1:
                        self.changed = True
                mask >>= 1
                register += 1
        return 0

    def is_return_address(self, register: cython.int) -> cython.bint:
        """Whether a register has the return address of the function."""
        with cython.boundscheck(False):
            value: cython.longlong = self.values[register]
        return value == made(Known.ENTRY, self.ra, 0) or value == made(Known.SIGNED, self.ra, 0)

    def moved_return(self) -> cython.bint:
        """Whether the return address is in a register that calls need not keep."""
        register: cython.int
        for register in range(self.registers):
            if not (self.preserved >> register) & 1 and self.is_return_address(register):
                return True
        return False

    def call(self, changed: cython.ulonglong) -> cython.int:
        """A call came back: what it may change, by the ABI and by its code, is something else.

        Where its code is not known, it may keep the return address: only callers that know that leave it there.
        """
        register: cython.int
        with cython.boundscheck(False):
            for register in range(self.registers):
                if not (self.preserved >> register) & 1 and (changed >> register) & 1:
                    keeps: cython.bint = changed == _ALL and self.is_return_address(register)
                    self.set(register, Known.ANY if keeps else Known.OTHER)
        self.compared = 0
        return 0
