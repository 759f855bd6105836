"""What the proof knows of registers at one place of the code (compiled).

Each has a value. Of an index it knows the bound that it was compared with, and of the last register that was copied
where the copy is.
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.code.amd64.registers import BEHIND
    from cython.cimports.walkback.code.effects import NONE
    from cython.cimports.walkback.proof.packed import made
    from cython.cimports.walkback.proof.values import NO_BOUND, PLAIN_MASK, REGISTERS, Known
else:
    from walkback.code.amd64.registers import BEHIND
    from walkback.code.effects import NONE
    from walkback.proof.packed import made
    from walkback.proof.values import NO_BOUND, PLAIN_MASK, REGISTERS, Known

_TABLES = cython.declare(cython.int, 1024)
_ALIGNMENTS = cython.declare(cython.int, 64)
"""Instructions of a unit that align the stack, and have numbers of their own."""
_SHADOW = cython.declare(cython.int, 18)
"""AArch64: the stack pointer of the shadow call stack, if there is one; functions put their return addresses there."""


@cython.cclass
class Registers:
    """Those of a machine, at the place where the walk is."""

    def __init__(self, machine, preserved, watched, saved, aligned):
        self.aligned = aligned
        self.leaps = True
        self.registers = 16 if machine.name == "AMD64" else 48 if machine.name == "AArch64" else 32
        self.named = min(self.registers, 32)
        self.sp, self.fp, self.ra = machine.sp, machine.fp, machine.ra
        self.entry_offset = machine.entry_sp_to_cfa
        self.calls_push = machine.name == "AMD64"
        self.return_address = made(Known.ENTRY, self.ra, 0)
        self.signed_return = made(Known.SIGNED, self.ra, 0)
        self.preserved, self.watched = preserved, watched
        self.entered = preserved | saved
        self.shadow = _SHADOW if machine.name == "AArch64" else NONE
        self.values = memoryview(np.zeros(REGISTERS, np.int64))
        self.tables = memoryview(np.zeros((_TABLES, 5), np.int64))
        self.alignments = memoryview(np.zeros(_ALIGNMENTS, np.uint64))

    def follow(self, highest: cython.int) -> cython.int:
        """Follow the registers of APX too, if the code uses registers that are so high."""
        if self.calls_push and highest >= BEHIND:
            self.registers = BEHIND + 16
            self.enter()
        return 0

    def begin(self) -> cython.int:
        """Begin with another unit."""
        self.table_count = self.alignment_count = 0
        self.may_have_moved = not self.calls_push
        return 0

    def enter(self) -> cython.int:
        """A function begins as the ABI says."""
        register: cython.int
        for register in range(self.registers):
            kept: cython.bint = (self.entered >> register) & 1 or register == self.ra or register == self.shadow
            self.values[register] = (
                made(Known.ENTRY, register, 0) if kept else cython.cast(cython.longlong, Known.OTHER)
            )
        self.values[self.sp] = self.entry_stack()
        self.changed = self.stirred = True
        self.compared = 0
        self.compared_at = 0
        self.bound_register = self.copied = self.copy = NONE
        self.bound = NO_BOUND
        return 0

    def aligned_by(self, address: cython.ulonglong) -> cython.longlong:
        """A place on the stack that the instruction at an address aligned down."""
        number: cython.int = 0
        with cython.boundscheck(False):
            while number < self.alignment_count and self.alignments[number] != address:
                number += 1
            if number == _ALIGNMENTS:
                return Known.STACK
            if number == self.alignment_count:
                self.alignments[number] = address
                self.alignment_count += 1
        return made(Known.ALIGNED, number, 0)

    def entry_stack(self) -> cython.longlong:
        """The stack pointer as it is at the entry."""
        return made(Known.CFA, 0, -self.entry_offset)

    def set(self, register: cython.int, value: cython.longlong) -> cython.int:
        """Give a register a value."""
        if register == self.bound_register:
            self.bound_register = NONE
        if register == self.copied or register == self.copy:
            self.copied = self.copy = NONE
        if 0 <= register < self.registers:
            with cython.boundscheck(False):
                if self.values[register] != value:
                    self.values[register] = value
                    if (self.watched >> register) & 1:
                        self.changed = self.stirred = True
        return 0

    def get(self, register: cython.int) -> cython.longlong:
        """The value of a register; of none it is no value of the entry."""
        if 0 <= register < self.registers:
            with cython.boundscheck(False):
                return self.values[register]
        return Known.OTHER

    def give(self, register: cython.int, other: cython.int, value: cython.longlong) -> cython.int:
        """Give a register what another has, or its lower half; what was found out of the other is true of it."""
        bounded: cython.bint = self.bound_register == other
        self.set(register, value)
        if bounded:
            self.bound_register = register
        self.copied, self.copy = other, register
        return 0

    def is_bounded(self, register: cython.int) -> cython.bint:
        """Whether it was compared with the bound, or is the copy of a register that was, or was copied to it."""
        if self.bound_register == register:
            return True
        other: cython.int = self.copied if register == self.copy else self.copy
        return other >= 0 and self.bound_register == other and (register == self.copy or register == self.copied)

    def forget_registers(self, mask: cython.ulonglong) -> cython.int:
        """Forget what is known of the bounds and copies of registers."""
        if self.bound_register >= 0 and (mask >> self.bound_register) & 1:
            self.bound_register = NONE
        if self.copied >= 0 and ((mask >> self.copied) | (mask >> self.copy)) & 1:
            self.copied = self.copy = NONE
        return 0

    def clobber(self, mask: cython.ulonglong) -> cython.int:
        """Registers get values that nothing is known of; a stack pointer is still one."""
        register: cython.int = 0
        self.forget_registers(mask)
        with cython.boundscheck(False):
            while mask and register < self.registers:
                if mask & 1 and self.values[register] != Known.OTHER:
                    self.values[register] = Known.STACK if register == self.sp else Known.OTHER
                    if (self.watched >> register) & 1:
                        self.changed = self.stirred = True
                mask >>= 1
                register += 1
        return 0

    def is_return_address(self, register: cython.int) -> cython.bint:
        """Whether a register has the return address of the function."""
        with cython.boundscheck(False):
            value: cython.longlong = self.values[register]
        return value == self.return_address or value & PLAIN_MASK == self.signed_return

    def moved_return(self) -> cython.bint:
        """Whether the return address is in a register that calls need not keep."""
        register: cython.int
        if not self.may_have_moved:
            return False
        for register in range(self.registers):
            if not (self.preserved >> register) & 1 and self.is_return_address(register):
                return True
        return False
