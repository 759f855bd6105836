"""The rules that the code itself shows, and how functions leave: what tables are made of (compiled)."""

from typing import NamedTuple

import cython
import numpy as np

from walkback.base.arrays import U16, U64
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import last
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.machines import AMD64, S390X
    from cython.cimports.walkback.proof._code import Code
    from cython.cimports.walkback.proof._state import State
    from cython.cimports.walkback.proof._walk import Walk
    from cython.cimports.walkback.proof.packed import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, PLAIN_MASK, made
    from cython.cimports.walkback.proof.stored import HEAD
    from cython.cimports.walkback.proof.values import (
        AT_CFA,
        AT_POINTER,
        AWAY,
        BY_B,
        CFA_SAVED,
        CFA_SHIFT,
        IN_REGISTER,
        KEPT,
        KEY_B,
        LEFT,
        PART_BIAS,
        PART_SHIFT,
        WITH_SIGNATURE,
        Known,
        Seen,
    )
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import last
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode
    from walkback.code.effects import Effect, Flow
    from walkback.code.machines import AMD64, S390X
    from walkback.proof._code import Code
    from walkback.proof._state import State
    from walkback.proof._walk import Walk
    from walkback.proof.packed import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, PLAIN_MASK, made
    from walkback.proof.stored import HEAD
    from walkback.proof.values import (
        AT_CFA,
        AT_POINTER,
        AWAY,
        BY_B,
        CFA_SAVED,
        CFA_SHIFT,
        IN_REGISTER,
        KEPT,
        KEY_B,
        LEFT,
        PART_BIAS,
        PART_SHIFT,
        WITH_SIGNATURE,
        Known,
        Seen,
    )

_PROLOGUE = cython.declare(cython.int, 6)
"""Instructions in which a function makes a frame."""
_ALIGNED = cython.declare(cython.ulonglong, 16)
"""Bytes that functions are aligned to."""
_AT_ONCE = 1 << 12
"""Units."""
_RETURN = cython.declare(cython.longlong, -8)
"""AMD64: the place of the return address, from the CFA."""
_RETURN_COLUMN = cython.declare(cython.int, 16)
"""AMD64: that of the return address."""
_ONE = cython.declare(cython.ulonglong, 1)
_UNKNOWN = cython.declare(cython.longlong, -1)
"""What the kernel is asked for, where no constant says so."""
_MOVE_BYTE = cython.declare(cython.int, 0xB0)
_PUSH_BYTE = cython.declare(cython.int, 0x6A)
"""AMD64: `mov` to %al and `push`, each of the byte that follows."""
_NOWHERE = cython.declare(cython.longlong, 1 << 40)
"""In place of an offset."""
_LONGEST_WAY = cython.declare(cython.int, 1 << 12)
"""Blocks."""


class Found(NamedTuple):
    """What the code of all ranges shows."""

    rows: U64
    """A range, an address, and two words of the rule that holds from there on, 0 for none.

    And the range from whose beginning control came there.
    """
    seen: U16
    """How each range leaves: bits of `Seen`."""
    tails: U64
    """A range, and an address to which it jumps with the stack as it was at its entry."""
    ends: U64
    """Where the code of each range ends, without the padding behind it."""


def found_rules(walk, ranges, unit_first, catching):
    """Walk through all units; what is `catching` is called only where exceptions go on."""
    seen, rows, tails = np.zeros(len(ranges.start), np.uint16), Growing(5), Growing(2)
    ends = ranges.start.copy()
    for first in range(0, len(unit_first) - 1, _AT_ONCE):  # signals are answered between the kernel's runs
        _found_rules(walk, unit_first[first : first + _AT_ONCE + 1], catching, seen, ends, rows, tails)
    return Found(rows.rows(), seen, tails.rows(), ends)


@takes_views
def _found_rules(
    walk: Walk,
    unit_first: cython.const[cython.longlong][::1],
    catching: cython.const[cython.ulonglong][::1],
    seen: cython.ushort[::1],
    ends: cython.ulonglong[::1],
    rows: Growing,
    tails: Growing,
):
    group: cython.Py_ssize_t
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for group in range(unit_first.shape[0] - 1):
            first = cython.cast(cython.Py_ssize_t, unit_first[group])
            end = cython.cast(cython.Py_ssize_t, unit_first[group + 1])
            if walk.follow(first, end):
                for i in range(end - first):
                    _follow_range(walk, i, catching, seen, ends, rows, tails)
            else:
                for i in range(first, end):
                    seen[walk.unit.members[i]] |= Seen.COMPLEX
                    ends[walk.unit.members[i]] += cython.cast(cython.ulonglong, walk.unit.size[walk.unit.members[i]])


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _follow_range(
    walk: Walk,
    member: cython.Py_ssize_t,
    catching: cython.const[cython.ulonglong][::1],
    seen: cython.ushort[::1],
    ends: cython.ulonglong[::1],
    rows: Growing,
    tails: Growing,
) -> cython.int:
    """The rules of one range, in the order of its code."""
    number: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, walk.unit.members[walk.unit.first + member])
    place: cython.longlong = walk.unit.base[member]
    end: cython.longlong = walk.unit.base[member + 1]
    away: cython.ulonglong = walk.unit.start[number] - cython.cast(cython.ulonglong, place)
    block: cython.Py_ssize_t = -1
    root: cython.Py_ssize_t = number
    former_root: cython.Py_ssize_t = number
    expected: cython.longlong = -1
    cfa: cython.ulonglong = 0
    rest: cython.ulonglong = 0
    former_cfa: cython.ulonglong = 0
    former_rest: cython.ulonglong = 0
    reached: cython.longlong = place
    size: cython.int
    code_at: cython.longlong = walk.unit.pos[number] - place
    is_first: cython.bint = walk.unit.owner[place] != 0
    asked: cython.longlong = _UNKNOWN
    may_fork: cython.bint = False
    lost: cython.ulonglong
    asks: cython.ulonglong = _ONE << _number_register(walk.code.machine)
    if walk.unit.switched[member] == AWAY | LEFT:
        seen[number] |= Seen.SWITCHES
    while place < end:
        if not walk.unit.owner[place]:
            size = walk.code.filling(
                cython.cast(cython.Py_ssize_t, code_at + place), cython.cast(cython.Py_ssize_t, code_at + end)
            )
            if not size and former_cfa:
                rows.add(number, away + reached, 0, 0, number)
                former_cfa = former_rest = 0
            place += max(size, 1)
            if not size:
                ends[number] = away + place
            continue
        if walk.unit.owner[place] - 1 != block or place != expected:
            block = walk.unit.owner[place] - 1
            walk.unit.take_up(block)
            walk.go_on(walk.unit.block_place[block], place)
            root = _root(walk, block)
        else:
            walk.read(place)
        cfa = _cfa_word(walk.state)
        rest = _rest_word(walk.state) if cfa and walk.edges.one.flow != Flow.BAD else 0
        if not rest:
            cfa = 0
        if cfa != former_cfa or rest != former_rest or (cfa and root != former_root):
            rows.add(number, away + place, cfa, rest, root)
            former_cfa, former_rest, former_root = cfa, rest, root
        may_fork = may_fork or _loads_fork(walk)
        if walk.edges.one.effect == Effect.CONSTANT and walk.edges.one.changes() == asks:
            if not _forks(walk.code.machine, asked) or asked == _UNKNOWN:
                asked = walk.edges.one.offset  # else the other way may be the one that leads here
        elif (walk.edges.one.changes() | walk.edges.one.clobbers) & asks:
            asked = _UNKNOWN
        if is_first and _saves(walk.state):
            seen[number] |= Seen.SAVES
        if walk.edges.one.flow != Flow.NEXT:
            is_first = False
            if walk.edges.one.flow == Flow.CALL and holds(catching, walk.edges.one.target):
                seen[number] |= Seen.CATCHES
            _note_leaving(walk, block, asked if may_fork else 0, seen, tails)
        expected = place + max(walk.unit.length[place], 1)
        lost = _not_as_entered(walk.state, walk.edges.one.changes()) if walk.edges.one.effect == Effect.LOAD else 0
        walk.edges.step()
        if lost and lost != _not_as_entered(walk.state, lost):
            seen[root] |= Seen.RESTORES
        place = reached = min(expected, end)
        ends[number] = away + place
    if former_cfa:
        rows.add(number, away + reached, 0, 0, number)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _cfa_word(state: State) -> cython.ulonglong:
    """Where the CFA is: by a frame pointer that leads to the caller's, else by the stack pointer, else by another.

    Where the stack was aligned it is saved beside the frame pointer, or in some register before that is done.
    """
    register: cython.int
    offset: cython.longlong
    pointer: cython.longlong = state.values[state.fp]
    if pointer & KIND_MASK == Known.CFA and state.load(pointer) == made(Known.ENTRY, state.fp, 0):
        return _cfa_by(state, state.fp)
    if state.values[state.sp] & KIND_MASK == Known.CFA:
        return _cfa_by(state, state.sp)
    if pointer & KIND_MASK == Known.CFA:
        return _cfa_by(state, state.fp)
    offset = _beside(state, pointer, made(Known.CFA, 0, 0))
    if -PART_BIAS < offset < PART_BIAS:
        return CFA_SAVED | _based(state.fp, offset)
    for register in range(state.registers):
        if (state.preserved >> register) & 1 and state.values[register] & KIND_MASK == Known.CFA:
            return _cfa_by(state, register)
    for register in range(state.registers):
        if state.values[register] & KIND_MASK == Known.CFA:
            return _cfa_by(state, register)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _beside(state: State, pointer: cython.longlong, value: cython.longlong) -> cython.longlong:
    """How far from a pointer into an aligned frame a value is saved."""
    i: cython.int
    if pointer & KIND_MASK == Known.ALIGNED:
        for i in range(state.slots):
            if state.saved[i] == value and (state.keys[i] ^ pointer) & PLAIN_MASK == 0:
                return (state.keys[i] >> OFFSET_SHIFT) - (pointer >> OFFSET_SHIFT)
    return _NOWHERE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _cfa_by(state: State, register: cython.int) -> cython.ulonglong:
    """The CFA as a register and an offset."""
    return _based(register, -(state.values[register] >> OFFSET_SHIFT))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _based(register: cython.int, offset: cython.longlong) -> cython.ulonglong:
    """The word of a register and an offset; 0 if that is too large."""
    if not -PART_BIAS < offset < PART_BIAS:
        return 0
    return (cython.cast(cython.ulonglong, register) << CFA_SHIFT) | cython.cast(cython.ulonglong, offset + PART_BIAS)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rest_word(state: State) -> cython.ulonglong:
    """Where the return address and the caller's frame pointer are; 0 if one of them is lost."""
    ra: cython.ulonglong = _part(state, state.ra)
    fp: cython.ulonglong = _part(state, state.fp)
    return (ra << 32) | fp if ra and fp else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _part(state: State, target: cython.int) -> cython.ulonglong:
    """Where the value is that a register had at the entry: in the frame, where it was saved, or in a register."""
    i: cython.int
    signature: cython.ulonglong
    found: cython.ulonglong = 0
    best: cython.longlong = 0
    register: cython.int
    stack: cython.longlong = state.values[state.sp]
    for i in range(state.slots):
        signature = _has(state.saved[i], target)
        if signature and state.keys[i] & KIND_MASK == Known.CFA:
            offset: cython.longlong = state.keys[i] >> OFFSET_SHIFT
            if stack & KIND_MASK == Known.CFA and offset < stack >> OFFSET_SHIFT:
                continue  # it was taken off the stack
            # Functions of AMD64 push registers one below the other, and those of others save them from below.
            better: cython.bint = offset > best if state.ra == _RETURN_COLUMN else offset < best
            if -PART_BIAS < offset < PART_BIAS and (better or not found):
                best = offset
                found = (signature - 1) | cython.cast(cython.ulonglong, offset + PART_BIAS)
    if found:
        return found | (cython.cast(cython.ulonglong, AT_CFA) << PART_SHIFT)
    if target == state.fp:
        beside: cython.longlong = _beside(state, state.values[target], made(Known.ENTRY, target, 0))
        if -PART_BIAS < beside < PART_BIAS:
            return (cython.cast(cython.ulonglong, AT_POINTER) << PART_SHIFT) | cython.cast(
                cython.ulonglong, beside + PART_BIAS
            )
    if target < state.registers:
        signature = _has(state.values[target], target)
        if signature:
            return (signature - 1) | (cython.cast(cython.ulonglong, KEPT) << PART_SHIFT)
    for register in range(state.registers):
        signature = _has(state.values[register], target)
        if signature:
            return (
                (signature - 1)
                | (cython.cast(cython.ulonglong, IN_REGISTER) << PART_SHIFT)
                | cython.cast(cython.ulonglong, register)
            )
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has(value: cython.longlong, target: cython.int) -> cython.ulonglong:
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
@cython.nogil
@cython.exceptval(-1, check=False)
def _note_leaving(
    walk: Walk, block: cython.Py_ssize_t, asked: cython.longlong, seen: cython.ushort[::1], tails: Growing
) -> cython.int:
    """Note how control leaves at an instruction that does not just go on: of the range whose entry led there.

    `asked` is the number that the kernel would be asked for.
    """
    flow: cython.int = walk.edges.one.flow
    root: cython.Py_ssize_t = _root(walk, block)
    jumps: cython.bint = flow == Flow.JUMP or flow == Flow.BRANCH
    if flow == Flow.JUMP_INDIRECT:
        # With less on the stack than a call leaves there it was entered with more.
        stack: cython.longlong = walk.state.values[walk.state.sp]
        if stack & KIND_MASK == Known.CFA and stack >> OFFSET_SHIFT > walk.state.highest:
            seen[root] |= Seen.ASTRAY
        elif _is_as_entered(walk.state, walk.code.machine):
            seen[root] |= Seen.JUMPS
        return 0
    if flow != Flow.RETURN and flow != Flow.SYSTEM and not jumps:
        return 0
    at_entry: cython.bint = _is_as_entered(walk.state, walk.code.machine)
    place: cython.longlong = walk.unit.place_of(walk.edges.one.target) if jumps else -1
    if place >= 0 and not _differs(walk, place, block):
        if at_entry and walk.unit.member_of(place) != walk.unit.member:
            tails.add(root, walk.edges.one.target)
        return 0
    if flow == Flow.SYSTEM:
        if walk.code.machine == S390X and walk.code.data[walk.edges.pos + 1]:
            asked = walk.code.data[walk.edges.pos + 1]
        if _forks(walk.code.machine, asked):
            seen[root] |= Seen.FORKS
    elif not at_entry or place >= 0:
        seen[root] |= Seen.ASTRAY
    elif flow == Flow.RETURN:
        seen[root] |= Seen.RETURNS
    else:
        tails.add(root, walk.edges.one.target)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def holds(addresses: cython.const[cython.ulonglong][::1], address: cython.ulonglong) -> cython.bint:
    """Whether an address is one of these, sorted."""
    i: cython.Py_ssize_t = last(addresses, addresses.shape[0], address)
    return i >= 0 and addresses[i] == address


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _differs(walk: Walk, place: cython.longlong, here: cython.Py_ssize_t) -> cython.bint:
    """Whether the stack pointer is surely another one than on the ways that led to a place.

    A function with a frame pointer may have more on the stack on one of two ways.
    """
    block: cython.Py_ssize_t = walk.unit.head[place] - 1
    if block < 0:
        return False
    if walk.state.values[walk.state.fp] & KIND_MASK == Known.CFA and _root(walk, block) == _root(walk, here):
        return False
    at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, walk.unit.block_state[block])
    there: cython.longlong = walk.unit.arena[at + HEAD + walk.state.sp]
    stack: cython.longlong = walk.state.values[walk.state.sp]
    return there != stack and there & KIND_MASK == Known.CFA and stack & KIND_MASK == Known.CFA


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _root(walk: Walk, block: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The range from whose beginning control came to a block for the first time."""
    i: cython.int
    source: cython.longlong = walk.unit.block_source[block]
    for i in range(_LONGEST_WAY):
        if source < 0:
            break
        block = walk.unit.owner[source] - 1
        source = walk.unit.block_source[block]
    return cython.cast(
        cython.Py_ssize_t, walk.unit.members[walk.unit.first + walk.unit.member_of(walk.unit.block_place[block])]
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _saves(state: State) -> cython.bint:
    """Whether the value that a kept register had at the entry is in the frame."""
    i: cython.int
    for i in range(state.slots):
        register: cython.int = (state.saved[i] >> ID_SHIFT) & ID_MASK
        if state.saved[i] & KIND_MASK == Known.ENTRY and register < 64 and (state.preserved >> register) & 1:
            return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _not_as_entered(state: State, registers: cython.ulonglong) -> cython.ulonglong:
    """Those of some registers, of which calls keep all, that do not have the values of the entry."""
    register: cython.int
    found: cython.ulonglong = 0
    registers &= state.preserved
    for register in range(state.registers):
        if registers >> register & 1 and state.values[register] != made(Known.ENTRY, register, 0):
            found |= _ONE << register
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_as_entered(state: State, machine: cython.int) -> cython.bint:
    """Whether the stack pointer and the return address are as a call leaves them."""
    if state.values[state.sp] != made(Known.CFA, 0, -state.entry_offset):
        return False
    if machine == AMD64:
        return state.load(made(Known.CFA, 0, _RETURN)) == state.return_address
    return state.values[state.ra] == state.return_address


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number_register(machine: cython.int) -> cython.int:
    """The register with the number of what the kernel is asked for."""
    return 0 if machine == AMD64 else 1 if machine == S390X else 8


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _loads_fork(walk: Walk) -> cython.bint:
    """Whether an instruction loads a number that may ask for a thread: into any register, or a byte of one."""
    byte: cython.int
    if walk.edges.one.effect == Effect.CONSTANT:
        return _forks(walk.code.machine, walk.edges.one.offset)
    if walk.code.machine != AMD64 or walk.edges.one.length != 2:
        return False
    byte = walk.code.data[walk.edges.pos]
    return (byte == _MOVE_BYTE or byte == _PUSH_BYTE) and _forks(AMD64, walk.code.data[walk.edges.pos + 1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _forks(machine: cython.int, asked: cython.longlong) -> cython.bint:
    """Whether the kernel may be asked for a thread or process, which goes on here with another stack."""
    if asked == _UNKNOWN or asked == 435:  # clone3, everywhere
        return True
    if machine == AMD64:
        return asked == 56 or asked == 57 or asked == 58  # clone, fork, vfork
    if machine == S390X:
        return asked == 120 or asked == 2 or asked == 190
    return asked == 220


def beginnings(code, ranges, sp, ra, kept, last, back):
    """Rows of an address where code begins, and whether that is surely no code behind a call that comes back.

    It begins with a range, and behind an instruction that does not go on; or behind a call, which may not come back,
    if padding follows or the next place is where compilers let functions begin. It surely does not if what is called
    is `last` in functions, or if registers are saved there as functions do, and nothing jumps there; wherever it is,
    if the return address is. Calls of those that come `back` always do; both are sorted.
    """
    found = Growing(2)
    _beginnings(code, ranges.start, ranges.size, ranges.pos, sp, ra, kept, last, back, found)
    return found.rows()


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def jumped_to(code: Code, place: cython.Py_ssize_t) -> cython.bint:
    """Whether something jumps to a place in the image."""
    return code.targets[place >> 3] >> (place & 7) & 1


@takes_views
def _beginnings(
    code: Code,
    start: cython.const[cython.ulonglong][::1],
    size: cython.const[cython.longlong][::1],
    pos: cython.const[cython.longlong][::1],
    sp: cython.int,
    ra: cython.int,
    kept: cython.ulonglong,
    final: cython.const[cython.ulonglong][::1],
    back: cython.const[cython.ulonglong][::1],
    found: Growing,
):
    i: cython.Py_ssize_t
    one: Instruction = Instruction()
    with cython.nogil, cython.boundscheck(False):
        for i in range(start.shape[0]):
            place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, pos[i])
            end: cython.Py_ssize_t = place + cython.cast(cython.Py_ssize_t, size[i])
            away: cython.ulonglong = start[i] - cython.cast(cython.ulonglong, place)
            goes_on: cython.bint = False
            called: cython.bint = False
            ends: cython.bint = False
            looks: cython.int = 0
            aligned: cython.bint = False
            candidate: cython.ulonglong = 0
            while place < end:
                if not goes_on or (called and ((away + place) % _ALIGNED == 0 or code.filling(place, end))):
                    while place < end and code.filling(place, end):
                        place += code.filling(place, end)
                    if place >= end:
                        break
                    aligned = called and (away + place) % _ALIGNED == 0 and not jumped_to(code, place)
                    found.add(away + place, aligned and ends)
                    looks = _PROLOGUE if aligned else 0
                elif called and not jumped_to(code, place):
                    candidate, aligned, looks = away + place, False, _PROLOGUE
                decode(code.machine, code.bytes, place, end, away + place, one)
                if looks:
                    looks = looks - 1 if one.flow == Flow.NEXT else 0
                    if one.effect == Effect.STORE and one.base == sp and (one.moved < 0 or one.count > 2):
                        if aligned and one.keeps() & kept:
                            found.numbers[found.used - 1] = 1
                        elif one.keeps() >> ra & 1:
                            found.add(candidate, 1)
                        looks = 0
                    elif code.machine == AMD64 and one.effect == Effect.ADD and one.first == sp:
                        looks = 0  # arguments are pushed behind it, and registers before
                called = one.flow == Flow.CALL_INDIRECT or (one.flow == Flow.CALL and not holds(back, one.target))
                ends = one.flow == Flow.CALL and holds(final, one.target)
                goes_on = not (
                    one.flow == Flow.JUMP
                    or one.flow == Flow.RETURN
                    or one.flow == Flow.JUMP_INDIRECT
                    or one.flow == Flow.TRAP
                )
                place += one.length
