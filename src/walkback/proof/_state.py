"""What the proof knows at one place of the code (compiled).

Each register has a value, and so has each place on the stack where something was saved that the table may ask for.
`stored` keeps states, and joins them where two ways meet.
"""

import cython
import numpy as np

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.proof._registers import Registers
    from cython.cimports.walkback.proof.packed import is_vague, made
    from cython.cimports.walkback.proof.values import (
        ID_MASK,
        ID_SHIFT,
        KIND_MASK,
        OFFSET_SHIFT,
        PLAIN_MASK,
        SLOTS,
        Known,
    )
else:
    from walkback.proof._registers import Registers
    from walkback.proof.packed import is_vague, made
    from walkback.proof.values import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, PLAIN_MASK, SLOTS, Known

_SLOTS_FOR_ALL = cython.declare(cython.int, 48)
"""The rest of them is only for registers that are saved."""
_RESERVED = cython.declare(cython.longlong, 16)
"""Bytes of a frame of s390x that functions that are called leave alone."""
_NODE = cython.declare(cython.longlong, 32)
"""Bytes of the links of a node, as those of `std::map` have them."""
_PASSES = {"AMD64": 0b111_0011_0110, "AArch64": 0b1_1111_1111, "s390x": 0b111_1101}
"""The registers that pass pointers, as bits: those of arguments, of results in memory, and of outer functions."""
_PASSED = cython.declare(cython.int, 11)
"""All of these have lower numbers."""
_ALL = cython.declare(cython.ulonglong, WORD)
_ONE = cython.declare(cython.ulonglong, 1)


@cython.final
@cython.cclass
class State(Registers):
    """Registers and saved values, at the place where the walk is."""

    def __init__(self, machine, preserved, watched, saved=0, aligned=True):
        Registers.__init__(self, machine, preserved, watched, saved, aligned)
        self.highest = 0 if self.calls_push else -self.entry_offset
        is_saved: cython.bint = machine.sp_from_cfa != 0
        self.saved_stack = made(Known.CFA, 0, machine.sp_from_cfa) if is_saved else cython.cast(cython.longlong, -1)
        self.passed = _PASSES[machine.name]
        self.keys = memoryview(np.zeros(SLOTS, np.int64))
        self.saved = memoryview(np.zeros(SLOTS, np.int64))
        self.begin()
        self.enter()

    def begin(self) -> cython.int:
        """Begin with another unit."""
        self.destroyed = 0
        self.proved = self.slots_at = -1
        return Registers.begin(self)

    def enter(self) -> cython.int:
        """A function begins as the ABI says."""
        Registers.enter(self)
        self.slots = 0
        self.slots_at = -1
        self.lost = False
        self.may_link = True
        if self.calls_push:
            self.keys[0] = made(Known.CFA, 0, -8)
            self.saved[0] = self.return_address
            self.slots = 1
        return 0

    def is_followed(self, place: cython.longlong) -> cython.bint:
        """Whether values are kept that are stored at a place: on the stack, or on the shadow stack."""
        kind: cython.int = place & KIND_MASK
        if kind == Known.ENTRY:
            return (place >> ID_SHIFT) & ID_MASK == self.shadow
        return kind == Known.CFA or kind == Known.ALIGNED

    def load(self, place: cython.longlong) -> cython.longlong:
        """What is at a place."""
        i: cython.int
        kind: cython.int = place & KIND_MASK
        if self.is_followed(place):
            with cython.boundscheck(False):
                for i in range(self.slots):
                    if self.keys[i] == place:
                        self.may_have_moved = self.may_have_moved or self.saved[i] == self.return_address
                        return self.saved[i]
            return Known.ANY if self.lost or kind == Known.ENTRY else Known.OTHER
        if is_vague(kind):
            return Known.ANY
        return Known.OTHER

    def store(
        self, place: cython.longlong, width: cython.int, value: cython.longlong, through: cython.bint
    ) -> cython.int:
        """Put a value at a place, perhaps through a pointer; kept is what was saved, or may be, and what leads back."""
        kind: cython.int = place & KIND_MASK
        wanted: cython.int = value & KIND_MASK
        if self.is_followed(place):
            if width == 8 and wanted == Known.ENTRY and self.load(place) == value:
                return 0  # it is there already
            self.forget(place, width, through and (wanted < Known.CFA or wanted > Known.SIGNED))
            saves: cython.bint = wanted == Known.ANY or (wanted >= Known.CFA and wanted <= Known.SIGNED)
            kept: cython.bint = saves and self.slots < SLOTS
            if (wanted == Known.CONSTANT or wanted == Known.STACK) and self.slots < _SLOTS_FOR_ALL:
                kept = True
            if saves and not kept:
                self.lost = self.stirred = True
            if kept and width >= 8:
                self.keys[self.slots] = place
                self.saved[self.slots] = value
                self.may_link = self.may_link or wanted == Known.CFA
                self.slots += 1
                self.note_slots()
        elif is_vague(kind):
            if wanted == Known.ENTRY or wanted == Known.SIGNED:
                self.lost = self.stirred = True
        return 0

    def forget(self, place: cython.longlong, width: cython.int, is_array: cython.bint) -> cython.int:
        """Something else is stored over the bytes from a place on; elements of arrays do not go over what was saved."""
        i: cython.int = 0
        kind: cython.int
        distance: cython.longlong
        with cython.boundscheck(False):
            while i < self.slots:
                distance = (self.keys[i] >> OFFSET_SHIFT) - (place >> OFFSET_SHIFT)
                kind = self.saved[i] & KIND_MASK
                if is_array and (kind == Known.ENTRY or kind == Known.SIGNED or self.saved[i] == self.saved_stack):
                    i += 1
                elif -8 < distance < width and (self.keys[i] ^ place) & ((1 << OFFSET_SHIFT) - 1) == 0:
                    i += self.overwrite(i, 0 <= distance <= width - 8, distance == 0 and width == 8)
                else:
                    i += 1
        return 0

    def overwrite(self, slot: cython.int, wholly: cython.bint, exactly: cython.bint) -> cython.bint:
        """Something else is stored over a slot; returns whether the slot stays."""
        value: cython.longlong = self.saved[slot]
        is_moved: cython.bint = wholly and value == self.return_address
        if is_moved:
            # A function puts another address there, at which it will go on when it returns.
            self.saved[slot] = Known.ANY
            self.note_slots()
        else:
            self.drop(slot)
        if not exactly:
            self.note_destroyed(value)
        return is_moved

    def note_destroyed(self, value: cython.longlong) -> cython.int:
        """Note a register for the caller, or the return address, if a slot had the only copy of it."""
        i: cython.int
        register: cython.longlong = (value >> ID_SHIFT) & ID_MASK
        is_return: cython.bint = value == self.return_address or value & PLAIN_MASK == self.signed_return
        is_kept: cython.bint = (self.preserved >> register) & 1 and value == made(
            Known.ENTRY, cython.cast(cython.int, register), 0
        )
        if not is_return and not is_kept:
            return 0
        with cython.boundscheck(False):
            for i in range(self.registers):
                if self.values[i] == value or (is_return and self.is_return_address(i)):
                    return 0
            for i in range(self.slots):
                if self.saved[i] == value:
                    return 0
        self.destroyed |= _ONE << register
        return 0

    def let_call_write(self, kept: cython.longlong) -> cython.int:
        """What is called writes below the stack pointer, where AMD64 puts the return address; on s390x also above it.

        There it may save registers in the last 144 of 160 bytes. The first `kept` bytes below are the caller's. It may
        also write through the pointers that it is passed.
        """
        i: cython.int = 0
        stack: cython.longlong = self.values[self.sp]
        kind: cython.int = stack & KIND_MASK
        if self.may_link:
            self.drop_rings()
        if kind != Known.CFA and kind != Known.ALIGNED:
            return 0
        own: cython.longlong = 0 if self.calls_push else self.entry_offset
        distance: cython.longlong
        with cython.boundscheck(False):
            while i < self.slots:
                distance = (self.keys[i] >> OFFSET_SHIFT) - (stack >> OFFSET_SHIFT)
                same: cython.bint = (self.keys[i] ^ stack) & ((1 << OFFSET_SHIFT) - 1) == 0
                if same and distance < own and (distance < -kept or distance >= _RESERVED):
                    self.drop(i)
                elif self.saved[i] & KIND_MASK == Known.CFA and self.may_be_written(i):
                    self.saved[i] = Known.ANY
                    self.note_slots()
                    i += 1
                else:
                    i += 1
        return 0

    def may_be_written(self, slot: cython.int) -> cython.bint:
        """Whether a call may be passed a pointer to a slot, which has no place of the caller and no stack pointer."""
        register: cython.int
        if self.saved[slot] == self.saved_stack or self.saved[slot] >> OFFSET_SHIFT >= 0:
            return False
        with cython.boundscheck(False):
            for register in range(_PASSED):
                if (self.passed >> register) & 1 and self.values[register] == self.keys[slot]:
                    return True
        return False

    def drop_rings(self) -> cython.int:
        """Forget the links of a node that leads to itself twice: the head of an empty list or tree.

        What is called may link other nodes to it.
        """
        i: cython.int = 0
        j: cython.int
        self.may_link = False
        with cython.boundscheck(False):
            while i < self.slots:
                node: cython.longlong = self.saved[i]
                links: cython.int = 0
                if node & KIND_MASK == Known.CFA and self.is_link(i, node):
                    for j in range(self.slots):
                        links += self.is_link(j, node)
                if links > 1:
                    j = 0
                    while j < self.slots:
                        if self.is_link(j, node):
                            self.drop(j)
                        else:
                            j += 1
                else:
                    i += 1
        return 0

    def is_link(self, slot: cython.int, node: cython.longlong) -> cython.bint:
        """Whether a place is in a node, and leads to it."""
        place: cython.longlong = self.keys[slot]
        away: cython.longlong = (place >> OFFSET_SHIFT) - (node >> OFFSET_SHIFT)
        return self.saved[slot] == node and place & KIND_MASK == Known.CFA and 0 <= away < _NODE

    def drop_below(self) -> cython.int:
        """Forget what is below the stack pointer: a function that is jumped to next may save its own there."""
        i: cython.int = 0
        stack: cython.longlong = self.values[self.sp]
        with cython.boundscheck(False):
            while i < self.slots:
                same: cython.bint = (self.keys[i] ^ stack) & ((1 << OFFSET_SHIFT) - 1) == 0
                if same and self.keys[i] >> OFFSET_SHIFT < stack >> OFFSET_SHIFT:
                    self.drop(i)
                else:
                    i += 1
        return 0

    def drop(self, slot: cython.int) -> cython.int:
        """Forget a slot; the last one takes its place."""
        self.slots -= 1
        with cython.boundscheck(False):
            self.keys[slot] = self.keys[self.slots]
            self.saved[slot] = self.saved[self.slots]
        return self.note_slots()

    def note_slots(self) -> cython.int:
        """Note that slots are others from now on."""
        self.slots_at = -1
        self.changed = self.stirred = True
        return 0

    def call(self, changed: cython.ulonglong, broken: cython.ulonglong, is_odd: cython.bint) -> cython.int:
        """A call came back: what it may change, by the ABI and by its code, is something else.

        Where its code is not known, it may keep the return address: only callers that know that leave it there. The
        same goes for the CFA where the code is `is_odd`, as the helpers of assembly are.
        What has to be kept and is `broken` nevertheless was set up or put back for the caller: a part of its
        prologue or epilogue was outlined.
        """
        register: cython.int = 0
        left: cython.ulonglong = changed & ~self.preserved
        broken &= self.preserved & ~(_ONE << self.sp)
        if broken:
            self.lost = self.stirred = True
        left |= broken
        if self.shadow >= 0:
            left &= ~(_ONE << self.shadow)
        self.forget_registers(left)
        with cython.boundscheck(False):
            while left and register < self.registers:
                if left & 1 and (self.values[register] != Known.OTHER or (broken >> register) & 1):
                    kind: cython.int = self.values[register] & KIND_MASK
                    keeps: cython.bint = changed == _ALL and (
                        self.is_return_address(register) or (is_odd and (kind == Known.CFA or kind == Known.ANY))
                    )
                    self.set(register, Known.ANY if keeps or (broken >> register) & 1 else Known.OTHER)
                left >>= 1
                register += 1
        self.compared = 0
        return 0
