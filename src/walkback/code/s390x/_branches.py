"""Comparisons, branches, calls and returns of s390x (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Condition, Effect, Flow
    from cython.cimports.walkback.code.filling import clobber, combine, constant
    from cython.cimports.walkback.code.s390x import kinds as shape
    from cython.cimports.walkback.code.s390x.fields import (
        ALWAYS,
        FIFTH,
        LINK,
        SECOND,
        THIRD,
        away,
        behind,
        field,
        known_operand,
        number_16,
        number_32,
        unsigned_32,
    )
    from cython.cimports.walkback.code.s390x.kinds import Does
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Condition, Effect, Flow
    from walkback.code.filling import clobber, combine, constant
    from walkback.code.s390x import kinds as shape
    from walkback.code.s390x.fields import (
        ALWAYS,
        FIFTH,
        LINK,
        SECOND,
        THIRD,
        away,
        behind,
        field,
        known_operand,
        number_16,
        number_32,
        unsigned_32,
    )
    from walkback.code.s390x.kinds import Does

if cython.compiled:
    _CONDITIONS = cython.declare(cython.const[cython.uchar][::1])
_CONDITIONS = memoryview(bytes([0, 0, 3, 0, 5, 0, 2, 2, 1, 0, 4, 4, 6, 6, 0, 0]))
"""The `Condition` of each mask."""


def comparison(
    kind: cython.uint, word: cython.ulonglong, place: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """Comparisons, and branches that compare."""
    does: cython.uint = kind & 0xFF
    out.width = (kind >> shape.NUMBER) & 0xFF
    out.signed = kind & shape.SIGNED != 0
    out.first = field(word, place)
    out.effect = Effect.COMPARE_CONSTANT
    if does == Does.COMPARE_16:
        out.offset = number_16(word)
        return 0
    if does == Does.COMPARE_32:
        out.offset = number_32(word) if out.signed else unsigned_32(word)
        return 0
    if does == Does.COMPARE_NUMBER_BRANCH or does == Does.COMPARE_NUMBER_BRANCH_TO:
        out.offset = cython.cast(cython.longlong, (word >> 8) & 0xFF)
        if out.signed and out.offset & 0x80:
            out.offset -= 0x100
        return _compared_branch(does, field(word, SECOND - 4), word, address, out)
    out.effect = Effect.COMPARE
    out.second = field(word, place - 4)
    if does == Does.COMPARE_BRANCH or does == Does.COMPARE_BRANCH_TO:
        return _compared_branch(does, field(word, FIFTH), word, address, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compared_branch(
    does: cython.uint, mask: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """Where it goes after the comparison, which never gives the fourth condition code."""
    mask &= 14
    if mask == 14:
        mask = ALWAYS
    if does == Does.COMPARE_BRANCH or does == Does.COMPARE_NUMBER_BRANCH:
        _branch(mask, away(address, number_16(word)), out)
    else:
        _branch_to(mask, word, address, out)
    if out.flow != Flow.BRANCH:
        out.effect = Effect.NOTHING
        out.offset = 0
        out.width = 8
        out.signed = False
        out.second = NONE
        if out.flow == Flow.NEXT or out.flow == Flow.JUMP:
            out.first = NONE
    elif out.signed and out.condition != Condition.EQUAL and out.condition != Condition.NOT_EQUAL:
        out.condition = Condition.OTHER
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _branch(mask: cython.uint, target: cython.ulonglong, out: Instruction) -> cython.int:
    """A branch that a mask guards."""
    if mask:
        out.flow = Flow.JUMP if mask == ALWAYS else Flow.BRANCH
        out.condition = _CONDITIONS[mask]
        out.target = target
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch_to(mask: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """A branch to the address of an operand, which a mask guards."""
    if mask != ALWAYS:
        return _branch(mask, behind(address, out), out)
    base: cython.int = field(word, THIRD)
    out.flow = Flow.JUMP_INDIRECT
    out.first = NONE
    if base and word & 0xFFF0000 == 0 and (out.length == 6 or field(word, SECOND - 4) == 0):
        out.first = base
        if base == LINK:
            out.flow = Flow.RETURN
    elif out.length == 4:
        index: cython.int = field(word, SECOND - 4)
        out.offset = cython.cast(cython.longlong, (word >> 16) & 0xFFF)
        return combine(Effect.ADD_REGISTERS, NONE, base if base else NONE, index if index else NONE, out)
    else:
        out.index = 0
    return 0


def control(
    kind: cython.uint, word: cython.ulonglong, place: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """Branches, calls and returns."""
    does: cython.uint = kind & 0xFF
    one: cython.int = field(word, SECOND)
    if does == Does.BRANCH_16:
        return _jump(one, number_16(word), address, out)
    if does == Does.BRANCH_32:
        return _jump(one, number_32(word), address, out)
    if does == Does.CALL_16 or does == Does.CALL_32:
        out.flow = Flow.CALL
        out.target = away(address, number_16(word) if does == Does.CALL_16 else number_32(word))
        if does == Does.CALL_16 and one != LINK:  # a jump over numbers or a pattern, whose address it gives
            out.flow = Flow.JUMP
            return constant(one, as_signed(behind(address, out)), out)
        return clobber(one, out)
    if does == Does.COUNT_16 or does == Does.COUNT_32:
        out.flow = Flow.BRANCH
        out.target = away(address, number_16(word) if does == Does.COUNT_16 else number_32(word))
        return clobber(one, out)
    if does == Does.COUNT_TO or does == Does.COUNT_REGISTER:
        if does == Does.COUNT_TO or field(word, place - 4):
            out.flow = Flow.BRANCH
            out.target = behind(address, out)
        return clobber(field(word, place), out)
    if does == Does.BRANCH_REGISTER:
        return _branch_register(one, field(word, SECOND - 4), address, out)
    if does == Does.BRANCH_TO:
        return _branch_to(one, word, address, out)
    if does == Does.CALL_REGISTER or does == Does.CALL_TO:
        return _call(does, one, word, address, out)
    if does == Does.JUMP_MEMORY:
        return _jump_memory(kind, one, word, address, out)
    if does == Does.RETURN:
        out.flow = Flow.RETURN
    elif does == Does.TRAP:
        out.flow = Flow.TRAP
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _jump(mask: cython.uint, halfwords: cython.longlong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """For brc and brcl; into its own second half, which is no instruction, a jump is a trap and a branch may be one."""
    if halfwords == 1:
        if mask == ALWAYS:
            out.flow = Flow.TRAP
        return 0
    return _branch(mask, away(address, halfwords), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch_register(
    mask: cython.uint, register: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """bcr, which does nothing for the register 0."""
    if register == 0:
        return 0
    if mask != ALWAYS:
        return _branch(mask, behind(address, out), out)
    out.first = register
    out.flow = Flow.RETURN if register == LINK else Flow.JUMP_INDIRECT
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _call(
    does: cython.uint, one: cython.int, word: cython.ulonglong, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """basr, balr, bas and bal; the first two get the address of the next instruction where the second field is 0."""
    two: cython.int = field(word, SECOND - 4)
    if does == Does.CALL_REGISTER:
        if two == 0:
            return constant(one, as_signed(behind(address, out)), out)
        out.first = two
    elif two == 0 and (word >> 16) & 0xFFF == 0 and field(word, THIRD):
        out.first = field(word, THIRD)
    else:
        out.index = 0
    out.flow = Flow.CALL_INDIRECT
    return clobber(one, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _jump_memory(
    kind: cython.uint, mask: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """bic, which finds its target in memory."""
    if mask != ALWAYS:
        return _branch(mask, behind(address, out), out)
    out.flow = Flow.JUMP_INDIRECT
    return known_operand(kind, word, out)
