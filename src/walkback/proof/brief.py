"""What most instructions do, in 16 bits, so that they are decoded only once (a face: kernels compile this in).

Such an instruction goes on behind itself and gives at most one register a value that the proof does not follow, if it
does not follow those of one or two registers, the sources, either. If it accesses memory, the source must be no place
on the stack. From the lowest bit on: the parity of the address, what it does, the source, the
register that changes, and the length. The stack pointer stands for none.

Comparisons without the stack pointer are noted, too. One that is skimmed over leaves an older comparison in the state;
that does no harm, as `Code.keeps` refuses a comparison if another instruction has changed the flags since. One with a
constant may be the bound of an index, and is decoded in full where the unit has jumps to addresses that it reads.
"""

import cython

from walkback.code._instruction import Instruction
from walkback.code.effects import NONE, Effect, Flow
from walkback.code.machines import AARCH64, AMD64, S390X
from walkback.proof._state import State
from walkback.proof.packed import is_on_stack, is_vague
from walkback.proof.values import KIND_MASK, Known

DOES_MASK = 6
COPIES = 2
"""A register, or its lower half: what was compared with a bound is so in both.

Where no register changes, it compares with a constant.
"""
READS = 4
"""The register that changes is a source as well."""
ACCESSES = 6
SOURCE_SHIFT = 3
SMALL = 256
"""Numbers below are no addresses, nor sizes that take a register."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def brief_at(briefs: cython.const[cython.ushort][::1], at: cython.Py_ssize_t) -> cython.uint:
    """The instruction in brief that begins at a place in the image; 0 if none does."""
    with cython.boundscheck(False):
        found: cython.uint = briefs[at >> 1]
    return 0 if (found ^ at) & 1 else found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def register_bits(machine: cython.int) -> cython.int:
    """How many bits have the number of a register."""
    return 4 if machine == AMD64 else 6 if machine == AARCH64 else 5


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def least_length(machine: cython.int) -> cython.int:
    """What lengths are multiples of."""
    return 1 if machine == AMD64 else 4 if machine == AARCH64 else 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def only_register(mask: cython.ulonglong, none: cython.int) -> cython.int:
    """The register whose bit is set; `none` where no bit is, and `NONE` where that of `none` or several are."""
    number: cython.int = 0
    if mask == 0:
        return none
    if mask & (mask - 1) or (mask >> none) & 1:
        return NONE
    while mask & 0xFF == 0:
        mask >>= 8
        number += 8
    while mask & 1 == 0:
        mask >>= 1
        number += 1
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def in_brief(one: Instruction, machine: cython.int, none: cython.int) -> cython.uint:
    """An instruction that is like that, without its parity; 0 for others."""
    effect: cython.int = one.effect
    changed: cython.int = one.first
    source: cython.int = NONE
    does: cython.uint = 0
    if one.flow != Flow.NEXT or one.target or (one.clobbers and effect != Effect.NOTHING):
        return 0
    if effect == Effect.NOTHING:
        changed = only_register(one.clobbers, none)
    elif effect == Effect.LOAD or effect == Effect.STORE:
        if one.count != 1 or one.moved or (effect == Effect.STORE and one.index > 0 and machine == S390X):
            return 0  # on s390x the index may be the place in a large frame
        if one.index < 0 or one.index == one.base:
            source = one.base
            does = ACCESSES
        if effect == Effect.STORE:
            changed = none
        elif one.width < 8:
            source = NONE
            does = 0
    elif effect == Effect.COPY or effect == Effect.EXTEND:
        source = one.second
        does = COPIES
        if source < 0:
            return 0
    elif effect == Effect.ADD or effect == Effect.ALIGN:
        source = one.base
    elif effect == Effect.ADD_REGISTERS or effect == Effect.SUBTRACT:
        source = one.index if one.first == one.base else one.base
        does = READS
        if one.first != one.base and one.first != one.index:
            return 0
    elif effect == Effect.CONSTANT:
        if one.offset >= SMALL or one.offset <= -SMALL:
            return 0
    elif effect == Effect.COMPARE or effect == Effect.COMPARE_CONSTANT:
        if one.first == none or one.second == none:
            return 0
        changed = none
        does = COPIES if effect == Effect.COMPARE_CONSTANT and not one.signed else 0
    elif effect != Effect.LOAD_TABLE or one.index >= 0 or one.second >= 0:
        return 0
    if machine == AMD64 and (changed > 15 or source > 15):
        return 0  # the registers of APX have larger numbers than there is room for
    if changed < 0 or source == none or (changed == none and one.changes()):
        return 0
    bits: cython.int = register_bits(machine)
    source = none if source < 0 else source
    found: cython.uint = does | (source << SOURCE_SHIFT) | (changed << (SOURCE_SHIFT + bits))
    return found | ((one.length // least_length(machine)) << (SOURCE_SHIFT + 2 * bits))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def value_of(state: State, register: cython.int) -> cython.longlong:
    """The value of a register; of one that is not followed it is no value of the entry."""
    with cython.boundscheck(False):
        return state.values[register] if register < state.registers else cython.cast(cython.longlong, Known.OTHER)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def accessed(state: State, brief: cython.uint, machine: cython.int) -> cython.int:
    """The register through which an instruction in brief accesses memory; `NONE` if it does not."""
    if brief & DOES_MASK != ACCESSES:
        return NONE
    source: cython.int = (brief >> SOURCE_SHIFT) & ((1 << register_bits(machine)) - 1)
    return NONE if source == state.sp else source


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def changes(brief: cython.uint, machine: cython.int) -> cython.ulonglong:
    """A bit for the register that an instruction in brief changes, that of the stack pointer for none."""
    bits: cython.int = register_bits(machine)
    return cython.cast(cython.ulonglong, 1) << ((brief >> (SOURCE_SHIFT + bits)) & ((1 << bits) - 1))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def length_of(brief: cython.uint, machine: cython.int) -> cython.int:
    """How many bytes an instruction in brief has."""
    return (brief >> (SOURCE_SHIFT + 2 * register_bits(machine))) * least_length(machine)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_idle(brief: cython.uint, machine: cython.int, none: cython.int) -> cython.bint:
    """Whether an instruction in brief gives no register a value, copies and accesses nothing: it may be padding."""
    return brief & DOES_MASK == 0 and changes(brief, machine) == cython.cast(cython.ulonglong, 1) << none


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def skim(state: State, brief: cython.uint, machine: cython.int) -> cython.int:
    """Let an instruction in brief happen; returns its length, or 0 if all of it has to be known."""
    bits: cython.int = register_bits(machine)
    does: cython.uint = brief & DOES_MASK
    source: cython.int = (brief >> SOURCE_SHIFT) & ((1 << bits) - 1)
    changed: cython.int = (brief >> (SOURCE_SHIFT + bits)) & ((1 << bits) - 1)
    value: cython.longlong = Known.OTHER
    if source != state.sp:
        value = value_of(state, source)
    if does == ACCESSES:
        if is_on_stack(value & KIND_MASK) or is_vague(value & KIND_MASK):
            return 0
    elif value != Known.OTHER or (does == READS and value_of(state, changed) != Known.OTHER):
        return 0
    if does == COPIES:
        if changed != state.sp:
            state.give(changed, source, value)
        elif state.leaps:
            return 0
    elif changed != state.sp:
        state.set(changed, Known.OTHER)
    return length_of(brief, machine)
