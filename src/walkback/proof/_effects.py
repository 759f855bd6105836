"""What an instruction makes of a state, and what a branch says of it (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Condition, Effect
    from cython.cimports.walkback.proof._state import State
    from cython.cimports.walkback.proof.brief import SMALL
    from cython.cimports.walkback.proof.packed import is_in_steps, is_lost, is_on_stack, is_vague, made, moved
    from cython.cimports.walkback.proof.values import (
        ID_MASK,
        ID_SHIFT,
        KEY_B,
        KIND_MASK,
        NO_BOUND,
        OFFSET_SHIFT,
        OTHER_MODIFIER,
        Known,
    )
else:
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Condition, Effect
    from walkback.proof._state import State
    from walkback.proof.brief import SMALL
    from walkback.proof.packed import is_in_steps, is_lost, is_on_stack, is_vague, made, moved
    from walkback.proof.values import ID_MASK, ID_SHIFT, KEY_B, KIND_MASK, NO_BOUND, OFFSET_SHIFT, OTHER_MODIFIER, Known

_ALIGNMENT = cython.declare(cython.longlong, 16)
"""Of the CFA, by the ABI of AMD64 and of AArch64."""
_S390X_SP = cython.declare(cython.int, 15)


def apply(state: State, one: Instruction, address: cython.ulonglong) -> cython.int:
    """What an instruction does."""
    effect: cython.int = one.effect
    value: cython.longlong
    if one.clobbers and effect != Effect.STORE and effect != Effect.LOAD:
        state.clobber(one.clobbers)
    if effect == Effect.NOTHING:
        return 0
    if effect == Effect.LOAD or effect == Effect.STORE:
        return _access(state, one)
    if effect == Effect.COPY:
        return state.give(one.first, one.second, state.get(one.second))
    if effect == Effect.ADD:
        return state.set(one.first, moved(state.get(one.base), one.offset))
    if effect == Effect.ADD_REGISTERS:
        return state.set(one.first, added(state, one))
    if effect == Effect.SUBTRACT:
        value = state.get(one.index)
        if value & KIND_MASK == Known.CONSTANT:
            return state.set(one.first, moved(state.get(one.base), -(value >> OFFSET_SHIFT) * one.scale))
        kind: cython.int = state.get(one.base) & KIND_MASK
        # A loop that touches pages or allocates leaves it open how far the stack pointer went; it is one still.
        if is_on_stack(kind) or (one.first == state.sp and is_vague(kind)):
            return state.set(one.first, Known.STACK)
        return state.set(one.first, Known.CONFLICT if kind == Known.CONFLICT else Known.OTHER)
    if effect == Effect.CONSTANT:
        wide: cython.bint = one.offset >= SMALL or one.offset <= -SMALL
        return state.set(
            one.first,
            made(Known.CONSTANT, 0, one.offset) if wide else cython.cast(cython.longlong, Known.OTHER),
        )
    if effect == Effect.ALIGN:
        value = state.get(one.base)
        is_aligned: cython.bint = state.aligned and -_ALIGNMENT <= one.offset < 0 and state.sp != _S390X_SP
        if value & KIND_MASK == Known.CFA and is_aligned:
            return state.set(one.first, made(Known.CFA, 0, (value >> OFFSET_SHIFT) & one.offset))
        if is_on_stack(value & KIND_MASK):
            value = state.aligned_by(address)
        return state.set(one.first, value if is_on_stack(value & KIND_MASK) else Known.OTHER)
    if effect == Effect.EXTEND:
        value = state.get(one.second)
        if value & KIND_MASK == Known.CONSTANT and (value < 0 or value >> (OFFSET_SHIFT - 1 + 8 * min(one.width, 4))):
            value = Known.OTHER
        keeps: cython.bint = value & KIND_MASK == Known.CONSTANT or value & KIND_MASK == Known.ENTRY_OF_TABLE
        return state.give(one.first, one.second, value if keeps else Known.OTHER)
    if effect == Effect.LEAVE:
        value = state.get(one.base)
        state.set(one.base, state.load(value))
        return state.set(one.first, moved(value, 8))
    if effect == Effect.EXCHANGE:
        value = state.get(one.first)
        state.set(one.first, state.get(one.second))
        return state.set(one.second, value)
    if effect == Effect.LOAD_TABLE:
        if one.second == NONE:
            return state.set(one.first, table_entry(state, one))
        value = state.get(one.second)
        is_table: cython.bint = value & KIND_MASK == Known.CONSTANT
        entry: cython.longlong = table_entry(state, one) if is_table else cython.cast(cython.longlong, Known.OTHER)
        return state.set(one.first, with_entry(state, value, entry, 1))
    if effect == Effect.SIGN or effect == Effect.AUTHENTICATE:
        value = state.get(one.first)
        signature: cython.int = KEY_B if one.signed else 0
        modifier: cython.longlong = state.get(one.base)
        if is_vague(modifier & KIND_MASK):
            return state.set(one.first, Known.OTHER if is_lost(value & KIND_MASK) else Known.ANY)
        if modifier != made(Known.CFA, 0, 0):
            signature |= OTHER_MODIFIER
        plain: cython.longlong = made(Known.ENTRY, one.first, 0)
        signed: cython.longlong = made(Known.SIGNED, one.first, signature)
        if value == (plain if effect == Effect.SIGN else signed):
            return state.set(one.first, signed if effect == Effect.SIGN else plain)
        return state.set(one.first, Known.ANY if value & KIND_MASK == Known.ANY else Known.OTHER)
    return _compare(state, one)


_WORD = cython.declare(cython.int, 8)
_WIDEST = cython.declare(cython.int, 16)
"""Bytes that instructions store of one register, which may also save what others have."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _access(state: State, one: Instruction) -> cython.int:
    """Load or store registers."""
    base: cython.longlong = state.get(one.base)
    place: cython.longlong = moved(base, one.offset)
    i: cython.int
    number: cython.int
    if one.index >= 0:
        # With an offset in lengths of vectors the index is the base: then it is somewhere on the same stack.
        place = Known.STACK if one.index == one.base and is_on_stack(base & KIND_MASK) else Known.OTHER
        index: cython.longlong = state.get(one.index)
        if state.sp == _S390X_SP and one.index > 0 and index & KIND_MASK == Known.CONSTANT:
            # A place in a frame that is too large for an offset.
            place = moved(base, one.offset + (index >> OFFSET_SHIFT))
        if one.effect == Effect.STORE and place == Known.OTHER:
            # What is stored behind an index goes into an array, and not over what was saved.
            state.clobber(one.clobbers)
            return 0
    if one.before:
        place = moved(place, one.moved)
    if one.effect == Effect.STORE and one.first == NONE and one.count == 1:
        if one.target == 0:  # else its length is in a register
            state.store(place, one.width, Known.OTHER, _is_pointer(state, one))
    else:
        for i in range(one.count):
            number = one.first
            if one.count > 2:
                number = (one.first + i) & 15
            elif i:
                number = one.second
            if one.effect == Effect.STORE or number != one.base or one.moved == 0:
                _access_one(state, one, number, moved(place, i * one.width))
    if one.moved:
        state.set(one.base, moved(base, one.moved))
        if one.effect == Effect.LOAD and one.first == one.base:
            _access_one(state, one, one.first, place)
    state.clobber(one.clobbers)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _access_one(state: State, one: Instruction, number: cython.int, place: cython.longlong) -> cython.int:
    if one.effect == Effect.STORE:
        return state.store(place, one.width, state.get(number), _is_pointer(state, one))
    value: cython.longlong = state.load(place) if one.width >= _WORD else cython.cast(cython.longlong, Known.OTHER)
    if one.width > _WORD and not is_lost(value & KIND_MASK) and value != made(Known.ENTRY, number, 0):
        value = Known.ANY  # data, unless the vector register was saved there itself
    return state.set(number, value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_pointer(state: State, one: Instruction) -> cython.bint:
    """Whether it stores more than a register has, and not by the stack pointer: so arrays are filled."""
    return one.base != state.sp and one.width > _WIDEST


def added(state: State, one: Instruction) -> cython.longlong:
    """Add base, index * scale and offset."""
    base: cython.longlong = state.get(one.base)
    index: cython.longlong = state.get(one.index)
    kind: cython.int = base & KIND_MASK
    other: cython.int = index & KIND_MASK
    if other == Known.CONSTANT and kind != Known.ENTRY_OF_TABLE:
        return moved(base, (index >> OFFSET_SHIFT) * one.scale + one.offset)
    if kind == Known.CONSTANT and one.scale == 1 and other != Known.ENTRY_OF_TABLE:
        return moved(index, (base >> OFFSET_SHIFT) + one.offset)
    if kind == Known.ENTRY_OF_TABLE and other == Known.CONSTANT and one.scale == 1:
        kind, other = other, kind
        base, index = index, base
    value: cython.longlong = with_entry(state, moved(base, one.offset), index, one.scale)
    if value & KIND_MASK == Known.PLACE_OF_TABLE and one.signed:
        # The entry was loaded without its sign, and is extended where it is added.
        number: cython.int = (value >> ID_SHIFT) & ID_MASK
        width: cython.longlong = state.tables[number, 1]
        if width > 0 and one.width <= width:
            return _of_table(
                state, Known.PLACE_OF_TABLE, number, -width, state.tables[number, 3], state.tables[number, 4]
            )
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def with_entry(state: State, base: cython.longlong, index: cython.longlong, scale: cython.longlong) -> cython.longlong:
    """The sum of a constant and a scaled entry of a jump table; of others only whether it is on the stack."""
    kind: cython.int = base & KIND_MASK
    other: cython.int = index & KIND_MASK
    if kind == Known.CONSTANT and other == Known.ENTRY_OF_TABLE:
        number: cython.int = (index >> ID_SHIFT) & ID_MASK
        return _of_table(state, Known.PLACE_OF_TABLE, number, state.tables[number, 1], base >> OFFSET_SHIFT, scale)
    if is_on_stack(kind) or is_on_stack(other):
        return Known.STACK
    return Known.ANY if kind == Known.ANY or other == Known.ANY else Known.OTHER


def table_entry(state: State, one: Instruction) -> cython.longlong:
    """What is loaded from base + index * scale + offset: an entry, if one of the two has the address of a table."""
    address: cython.longlong = one.offset
    base: cython.longlong = state.get(one.base)
    index: cython.longlong = state.get(one.index)
    register: cython.int = one.index
    is_table: cython.bint = one.base == NONE and one.index != NONE and one.offset != 0
    if one.index == NONE or one.scale > one.width:  # or between its entries there is something else
        return Known.OTHER
    if base & KIND_MASK == Known.CONSTANT:
        address += base >> OFFSET_SHIFT
        is_table = True
    elif index & KIND_MASK == Known.CONSTANT and one.scale == 1 and one.base != NONE:
        address += index >> OFFSET_SHIFT
        register = one.base
        is_table = True
    if not is_table:
        return Known.OTHER
    width: cython.longlong = -one.width if one.signed else one.width
    # Otherwise the index counts something else than entries.
    bound: cython.longlong = state.bound if one.scale == one.width and state.is_bounded(register) else NO_BOUND
    number: cython.int = _table(state, address, width, bound, 0, 1)
    return made(Known.ENTRY_OF_TABLE, number, 0) if number >= 0 else Known.OTHER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _of_table(
    state: State,
    kind: cython.int,
    number: cython.int,
    width: cython.longlong,
    base: cython.longlong,
    scale: cython.longlong,
) -> cython.longlong:
    """A value of a table that is used with another width, base or scale."""
    other: cython.int = _table(state, state.tables[number, 0], width, state.tables[number, 2], base, scale)
    return made(kind, other, 0) if other >= 0 else Known.OTHER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _table(
    state: State,
    address: cython.longlong,
    width: cython.longlong,
    bound: cython.longlong,
    base: cython.longlong,
    scale: cython.longlong,
) -> cython.int:
    """The number of a use of a table: its address, the width of entries with the sign, the bound, the base, the scale.

    It is -1 if there are too many.
    """
    i: cython.int
    with cython.boundscheck(False):
        for i in range(state.table_count):
            if (
                state.tables[i, 0] == address
                and state.tables[i, 1] == width
                and state.tables[i, 2] == bound
                and state.tables[i, 3] == base
                and state.tables[i, 4] == scale
            ):
                return i
        if state.table_count == state.tables.shape[0]:
            return -1
        i = state.table_count
        state.tables[i, 0] = address
        state.tables[i, 1] = width
        state.tables[i, 2] = bound
        state.tables[i, 3] = base
        state.tables[i, 4] = scale
        state.table_count += 1
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare(state: State, one: Instruction) -> cython.int:
    """Remember what was compared."""
    is_of_stack: cython.bint = (one.first == state.sp or one.second == state.sp) and one.width == _WORD
    is_kept: cython.bint = is_of_stack if one.effect == Effect.COMPARE else not one.signed
    state.compared = one.effect if is_kept else 0
    state.compared_first = one.first
    state.compared_second = one.second
    state.compared_number = one.offset
    return 0


def assume(state: State, condition: cython.int) -> cython.bint:
    """What a condition says of what was compared; returns False if it cannot hold."""
    if state.compared == Effect.COMPARE_CONSTANT:
        if condition == Condition.BELOW_EQUAL or condition == Condition.BELOW:
            state.bound_register = state.compared_first
            state.bound = state.compared_number + (condition == Condition.BELOW_EQUAL)
    elif state.compared == Effect.COMPARE and state.compared_first == state.sp:
        return _stopped(state, state.compared_second, condition == Condition.EQUAL, condition == Condition.BELOW_EQUAL)
    elif state.compared == Effect.COMPARE and state.compared_second == state.sp:
        return _stopped(state, state.compared_first, condition == Condition.EQUAL, condition == Condition.ABOVE_EQUAL)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _stopped(state: State, register: cython.int, is_equal: cython.bint, is_below: cython.bint) -> cython.bint:
    """The loop that touches each page of a large frame ends when the stack pointer is where the register has it.

    If it ends there or below, its steps must lead there.
    """
    end: cython.longlong = state.get(register)
    place: cython.longlong = state.get(state.sp)
    if not (is_equal or is_below) or end & KIND_MASK != Known.CFA:
        return True
    if place & KIND_MASK == Known.CFA:
        return place == end or (is_below and place < end)
    if is_equal or is_in_steps(place, end):
        state.set(state.sp, end)
    return True
