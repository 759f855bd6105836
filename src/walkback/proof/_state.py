"""What the proof knows at one place of the code, and what an instruction makes of it (compiled).

Each register has a value, and so has each place on the stack where something was saved that the table may ask for.
Where two ways meet, `join` keeps what both agree on.
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Condition, Effect
    from cython.cimports.walkback.proof.packed import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, made, moved
    from cython.cimports.walkback.proof.values import Known
else:
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Condition, Effect
    from walkback.proof.packed import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, made, moved
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
_SMALL = cython.declare(cython.longlong, 256)
"""Numbers below are no addresses, nor sizes that take a register."""
_NO_BOUND = cython.declare(cython.longlong, -1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _joined(one: cython.longlong, other: cython.longlong) -> cython.longlong:
    """What holds whichever of two different values it is."""
    kind: cython.int = one & KIND_MASK
    other_kind: cython.int = other & KIND_MASK
    if kind == Known.ANY or other_kind == Known.ANY:
        return Known.ANY
    if _is_lost(kind) and _is_lost(other_kind):
        return Known.OTHER
    if kind == Known.STACK or other_kind == Known.STACK:
        return Known.STACK if _on_stack(kind) and _on_stack(other_kind) else Known.CONFLICT
    return Known.CONFLICT


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_lost(kind: cython.int) -> cython.bint:
    """Whether this is certainly no value of the entry and no place on the stack."""
    return kind == Known.OTHER or (kind >= Known.CONSTANT and kind != Known.STACK)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _on_stack(kind: cython.int) -> cython.bint:
    return kind == Known.CFA or kind == Known.ALIGNED or kind == Known.STACK


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
        j: cython.int
        kept: cython.int = 0
        one: cython.longlong
        values: cython.Py_ssize_t = at + _HEAD
        places: cython.Py_ssize_t = values + self.registers
        differs: cython.bint = False
        with cython.boundscheck(False):
            for i in range(self.registers):
                one = arena[values + i]
                if one != self.values[i]:
                    one = _joined(one, self.values[i])
                    if one != arena[values + i]:
                        arena[values + i] = one
                        differs = True
            for i in range(cython.cast(cython.int, arena[at])):
                for j in range(self.slots):
                    if self.keys[j] == arena[places + 2 * i]:
                        one = arena[places + 2 * i + 1]
                        if one != self.saved[j]:
                            one = _joined(one, self.saved[j])
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
        if kind == Known.ANY or kind == Known.STACK or kind == Known.CONFLICT:
            return Known.ANY
        return Known.OTHER

    def store(self, place: cython.longlong, width: cython.int, value: cython.longlong) -> cython.int:
        """Put a value at a place; kept is what was saved, and what leads back to the CFA."""
        kind: cython.int = place & KIND_MASK
        wanted: cython.int = value & KIND_MASK
        if kind == Known.CFA or kind == Known.ALIGNED:
            self.forget(place, width)
            kept: cython.bint = wanted >= Known.CFA and wanted <= Known.SIGNED and self.slots < _SLOTS
            if wanted == Known.CONSTANT and self.slots < _SLOTS_FOR_ALL:
                kept = True
            if kept and width >= 8:
                self.keys[self.slots] = place
                self.saved[self.slots] = value
                self.slots += 1
                self.changed = True
        elif kind == Known.ANY or kind == Known.STACK or kind == Known.CONFLICT:
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

    def call(self, changed: cython.ulonglong) -> cython.int:
        """A call came back: what it may change, by the ABI and by its code, is something else."""
        register: cython.int
        with cython.boundscheck(False):
            for register in range(self.registers):
                if not (self.preserved >> register) & 1 and (changed >> register) & 1:
                    self.set(register, Known.OTHER)
        self.compared = 0
        return 0

    def apply(self, one: Instruction, address: cython.ulonglong) -> cython.int:
        """What an instruction does."""
        effect: cython.int = one.effect
        value: cython.longlong
        if one.clobbers and effect != Effect.STORE and effect != Effect.LOAD:
            self.clobber(one.clobbers)
        if effect == Effect.NOTHING:
            return 0
        if effect == Effect.LOAD or effect == Effect.STORE:
            return self.access(one)
        if effect == Effect.COPY:
            return self.copy(one, self.get(one.second))
        if effect == Effect.ADD:
            return self.set(one.first, moved(self.get(one.base), one.offset))
        if effect == Effect.ADD_REGISTERS:
            return self.set(one.first, self.sum(one))
        if effect == Effect.SUBTRACT:
            value = self.get(one.index)
            if value & KIND_MASK == Known.CONSTANT:
                return self.set(one.first, moved(self.get(one.base), -(value >> OFFSET_SHIFT)))
            value = self.get(one.base)
            return self.set(one.first, Known.STACK if _on_stack(value & KIND_MASK) else Known.OTHER)
        if effect == Effect.CONSTANT:
            wide: cython.bint = one.offset >= _SMALL or one.offset <= -_SMALL
            return self.set(
                one.first,
                made(Known.CONSTANT, 0, one.offset) if wide else cython.cast(cython.longlong, Known.OTHER),
            )
        if effect == Effect.ALIGN:
            value = self.get(one.base)
            if _on_stack(value & KIND_MASK):
                value = made(Known.ALIGNED, cython.cast(cython.int, (address ^ (address >> 12)) & ID_MASK), 0)
            return self.set(one.first, value if value & KIND_MASK == Known.ALIGNED else Known.OTHER)
        if effect == Effect.EXTEND:
            value = self.get(one.second)
            if value & KIND_MASK == Known.CONSTANT and (value < 0 or value >> (OFFSET_SHIFT + 31)):
                value = Known.OTHER
            keeps: cython.bint = value & KIND_MASK == Known.CONSTANT or value & KIND_MASK == Known.ENTRY_OF_TABLE
            return self.copy(one, value if keeps else Known.OTHER)
        if effect == Effect.LEAVE:
            value = self.get(one.base)
            self.set(one.base, self.load(value))
            return self.set(one.first, moved(value, 8))
        if effect == Effect.EXCHANGE:
            value = self.get(one.first)
            self.set(one.first, self.get(one.second))
            return self.set(one.second, value)
        if effect == Effect.LOAD_TABLE:
            return self.set(one.first, self.table_value(one))
        if effect == Effect.SIGN or effect == Effect.AUTHENTICATE:
            value = self.get(one.first)
            if value == made(Known.ENTRY if effect == Effect.SIGN else Known.SIGNED, one.first, 0):
                return self.set(one.first, made(Known.SIGNED if effect == Effect.SIGN else Known.ENTRY, one.first, 0))
            return self.set(one.first, Known.ANY if value & KIND_MASK == Known.ANY else Known.OTHER)
        return self.compare(one)

    def copy(self, one: Instruction, value: cython.longlong) -> cython.int:
        """Give a register the value of another, or its lower half; what was found out of the other is true of it."""
        bounded: cython.bint = self.bound_register == one.second
        self.set(one.first, value)
        if bounded:
            self.bound_register = one.first
        return 0

    def access(self, one: Instruction) -> cython.int:
        """Load or store registers."""
        base: cython.longlong = self.get(one.base)
        place: cython.longlong = moved(base, one.offset) if one.base >= 0 else cython.cast(cython.longlong, Known.OTHER)
        i: cython.int
        number: cython.int
        if one.index >= 0:
            place = Known.OTHER
            if one.effect == Effect.STORE:
                # What is stored behind an index goes into an array, and not over what was saved.
                self.clobber(one.clobbers)
                return 0
        if one.before:
            place = moved(place, one.moved)
        if one.effect == Effect.STORE and one.first == NONE:
            if one.target == 0:  # else its length is in a register, and it keeps to what it is for
                self.store(place, one.width, Known.OTHER)
        else:
            for i in range(one.count):
                number = one.first
                if one.count > 2:
                    number = (one.first + i) & 15
                elif i:
                    number = one.second
                if one.effect == Effect.STORE or number != one.base or one.moved == 0:
                    self.access_one(one, number, moved(place, i * one.width))
        if one.moved:
            self.set(one.base, moved(base, one.moved))
            if one.effect == Effect.LOAD and one.first == one.base:
                self.access_one(one, one.first, place)
        self.clobber(one.clobbers)
        return 0

    def access_one(self, one: Instruction, number: cython.int, place: cython.longlong) -> cython.int:
        if one.effect == Effect.STORE:
            return self.store(place, one.width, self.get(number))
        return self.set(number, self.load(place) if one.width >= 8 else cython.cast(cython.longlong, Known.OTHER))

    def sum(self, one: Instruction) -> cython.longlong:
        """Add base, index * scale and offset."""
        base: cython.longlong = self.get(one.base)
        index: cython.longlong = self.get(one.index)
        kind: cython.int = base & KIND_MASK
        other: cython.int = index & KIND_MASK
        if other == Known.CONSTANT and kind != Known.ENTRY_OF_TABLE:
            return moved(base, (index >> OFFSET_SHIFT) * one.scale + one.offset)
        if kind == Known.CONSTANT and one.scale == 1 and other != Known.ENTRY_OF_TABLE:
            return moved(index, (base >> OFFSET_SHIFT) + one.offset)
        if kind == Known.ENTRY_OF_TABLE and other == Known.CONSTANT and one.scale == 1:
            kind, other = other, kind
            base, index = index, base
        if kind == Known.CONSTANT and other == Known.ENTRY_OF_TABLE:
            number: cython.int = (index >> ID_SHIFT) & ID_MASK
            self.tables[number, 3] = (base >> OFFSET_SHIFT) + one.offset
            self.tables[number, 4] = one.scale
            return made(Known.PLACE_OF_TABLE, number, 0)
        if _on_stack(kind) or _on_stack(other):
            return Known.STACK
        return Known.ANY if kind == Known.ANY or other == Known.ANY else Known.OTHER

    def table_value(self, one: Instruction) -> cython.longlong:
        """What is loaded from base + index * scale + offset: an entry, if one of the two has the address of a table."""
        address: cython.longlong = one.offset
        base: cython.longlong = self.get(one.base)
        index: cython.longlong = self.get(one.index)
        register: cython.int = one.index
        is_table: cython.bint = one.base == NONE and one.index != NONE and one.offset != 0
        if one.index == NONE:
            return Known.OTHER
        if base & KIND_MASK == Known.CONSTANT:
            address += base >> OFFSET_SHIFT
            is_table = True
        elif index & KIND_MASK == Known.CONSTANT and one.scale == 1:
            address += index >> OFFSET_SHIFT
            register = one.base
            is_table = True
        if not is_table:
            return Known.OTHER
        number: cython.int = self.table(address, one.width, one.signed)
        if number < 0:
            return Known.OTHER
        with cython.boundscheck(False):
            if self.bound_register == register and self.bound > self.tables[number, 2]:
                self.tables[number, 2] = self.bound
        return made(Known.ENTRY_OF_TABLE, number, 0)

    def table(self, address: cython.longlong, width: cython.int, signed: cython.bint) -> cython.int:
        """The number of a table: its address, its width with the sign, its bound, what counts from, and the scale."""
        i: cython.int
        shape: cython.longlong = -width if signed else width
        for i in range(self.table_count):
            if self.tables[i, 0] == address and self.tables[i, 1] == shape:
                return i
        if self.table_count == _TABLES:
            return -1
        i = self.table_count
        self.tables[i, 0] = address
        self.tables[i, 1] = shape
        self.tables[i, 2] = _NO_BOUND
        self.tables[i, 3] = 0
        self.tables[i, 4] = 1
        self.table_count += 1
        return i

    def compare(self, one: Instruction) -> cython.int:
        """Remember what was compared."""
        self.compared = 0 if one.signed and one.effect == Effect.COMPARE_CONSTANT else one.effect
        self.compared_first = one.first
        self.compared_second = one.second
        self.compared_number = one.offset
        return 0

    def assume(self, condition: cython.int) -> cython.bint:
        """What a condition says of what was compared; returns False if it cannot hold."""
        one: cython.longlong
        other: cython.longlong
        if self.compared == Effect.COMPARE_CONSTANT:
            if condition == Condition.BELOW_EQUAL or condition == Condition.BELOW:
                self.bound_register = self.compared_first
                self.bound = self.compared_number + (condition == Condition.BELOW_EQUAL)
        elif self.compared == Effect.COMPARE and condition == Condition.EQUAL:
            # The loop that touches each page of a large frame ends when the stack pointer is where it has to be.
            one = self.get(self.compared_first)
            other = self.get(self.compared_second)
            if self.compared_first == self.sp:
                one, other = other, one
            if (self.compared_first == self.sp or self.compared_second == self.sp) and one & KIND_MASK == Known.CFA:
                if other & KIND_MASK == Known.CFA and other != one:
                    return False
                self.set(self.sp, one)
        return True
