"""Branches, exceptions and what concerns the system, of AArch64 (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64.fields import (
        LR,
        SP,
        ZERO,
        away,
        bad,
        clobber_general,
        or_none,
        sign,
        signed_low,
    )
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
    from cython.cimports.walkback.code.filling import clobber
else:
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64.fields import LR, SP, ZERO, away, bad, clobber_general, or_none, sign, signed_low
    from walkback.code.effects import NONE, Effect, Flow
    from walkback.code.filling import clobber

_ALL_VECTORS = cython.declare(cython.ulonglong, 0xFFFFFFFF00000000)
if cython.compiled:
    _CONDITIONS = cython.declare(cython.const[cython.uchar][::1])
_CONDITIONS = memoryview(bytes([1, 2, 4, 5, 0, 0, 0, 0, 3, 6, 0, 0, 0, 0, 0, 0]))
"""The `Condition` of each condition code."""


def branch(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Branches, exceptions and what concerns the system."""
    kind: cython.uint = word >> 29
    if kind == 0:
        return jump(word, address, out)
    if kind == 4:
        return call(word, address, out)
    if kind & 3 == 1:
        if word & 0x02000000:
            return branch_if_bit(word, address, out)
        return branch_if_zero(word, address, out)
    if kind & 3 == 3:
        return _compare_and_branch(word, address, out)
    if kind == 2:
        return conditional(word, address, out)
    if word & 0x02000000:
        return _branch_to_register(word, out)
    if word & (1 << 24):
        return _system(word, out)
    return _exception(word, out)


def jump(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Branch: b."""
    out.flow = Flow.JUMP
    out.target = away(address, signed_low(word, 26) * 4)
    return 0


def call(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Branch with a link: bl."""
    out.flow = Flow.CALL
    out.target = away(address, signed_low(word, 26) * 4)
    return clobber(LR, out)


def branch_if_zero(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """cbz, cbnz."""
    out.flow = Flow.BRANCH
    out.target = away(address, signed_low(word >> 5, 19) * 4)
    return 0


def branch_if_bit(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """tbz, tbnz."""
    out.flow = Flow.BRANCH
    out.target = away(address, signed_low(word >> 5, 14) * 4)
    return 0


def conditional(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """b.cond and bc.cond; retaasppc and retabsppc with a number."""
    if word & 0x02000000:
        return bad(out)
    if word & (1 << 24):
        if word & 0x00C0001F != 0x1F:
            return bad(out)
        out.flow = Flow.RETURN
        return sign(Effect.AUTHENTICATE, word & (1 << 21) != 0, NONE, out)
    out.flow = Flow.JUMP if word & 14 == 14 else Flow.BRANCH
    out.condition = _CONDITIONS[word & 15]
    out.target = away(address, signed_low(word >> 5, 19) * 4)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_and_branch(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Comparison and branch in one."""
    operation: cython.uint = (word >> 21) & 7
    if word & 0x02000000:
        return bad(out)
    if word & (1 << 24):
        if word & (1 << 14) or operation == 4 or operation == 5:
            return bad(out)
    elif word & 0xC000 == 0x4000 or (word >> 31 and word & (1 << 15)) or operation == 4 or operation == 5:
        return bad(out)
    out.flow = Flow.BRANCH
    out.target = away(address, signed_low(word >> 5, 9) * 4)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch_to_register(word: cython.uint, out: Instruction) -> cython.int:
    """br, blr, ret and their kind; those that authenticate have the lowest bit of bits 15 to 10 for the key."""
    operation: cython.uint = (word >> 21) & 15
    base: cython.int = (word >> 5) & 31
    authenticates: cython.bint = word & 0xF800 == 0x0800
    if word & 0x1F0000 != 0x1F0000 or (not authenticates and word & 0xFC1F):
        return bad(out)
    if operation & 7 > 1 and (operation > 5 or operation == 3 or (operation > 3 and base != ZERO)):
        return bad(out)
    if operation & 7 < 2:
        if operation & 8 and not authenticates:
            return bad(out)
        out.flow = Flow.JUMP_INDIRECT if operation & 1 == 0 else Flow.CALL_INDIRECT
        out.first = or_none(base)
        if operation & 1:
            clobber(LR, out)
        return 0
    out.flow = Flow.RETURN
    if operation == 2:
        if authenticates:
            sign(Effect.AUTHENTICATE, word & (1 << 10) != 0, SP, out)
        else:
            out.first = or_none(base)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _exception(word: cython.uint, out: Instruction) -> cython.int:
    """svc, hvc, smc, brk, hlt, tcancel and dcps."""
    operation: cython.uint = (word >> 21) & 7
    level: cython.uint = word & 31
    if operation == 0 and 1 <= level <= 3:
        out.clobbers = 1 if level == 1 else 15
        out.flow = Flow.SYSTEM if level == 1 else Flow.NEXT
        return 0
    if (0 < operation < 4 and level == 0) or (operation == 5 and 1 <= level <= 3):
        out.flow = Flow.TRAP
        return 0
    return bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _system(word: cython.uint, out: Instruction) -> cython.int:
    """Hints, barriers, and instructions on registers of the system."""
    if word & (1 << 23):  # tchangef, tchangeb
        return bad(out) if word & 0x00600000 else clobber_general(word, out)
    if word & 0x7FFFF01F == 0x5503201F:
        return _hint((word >> 5) & 127, out)
    if word & 0x58F000 == 0x2000:  # hints yet to be given out
        return 0
    if word & (1 << 21):  # mrs, sysl, tstart, ttest
        clobber_general(word, out)
        if word & (1 << 22):  # mrrs
            clobber_general(word + 1, out)
    elif word & 0x7FFFFBFF == 0x5503437F or word & 0x7FFFFFE0 == 0x551B4240:
        # smstart, and SVCR: the vector registers become zero. smstop does so only where smstart was before.
        out.clobbers |= _ALL_VECTORS
    elif word & 0x7FFFFFE0 == 0x550B7420 or word & 0x7FFFFFE0 == 0x550B7480:
        out.effect = Effect.STORE  # dc zva, dc gzva: how much they clear depends on the machine
        out.index = or_none(word & 31)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hint(number: cython.uint, out: Instruction) -> cython.int:
    if number >= 24 and number < 28:  # paciaz, paciasp, pacibz, pacibsp
        return sign(Effect.SIGN, number & 2 != 0, SP if number & 1 else NONE, out)
    if number >= 28 and number < 32:  # autiaz, autiasp, autibz, autibsp
        return sign(Effect.AUTHENTICATE, number & 2 != 0, SP if number & 1 else NONE, out)
    if number == 7:  # xpaclri
        return clobber(LR, out)
    if number >= 8 and number < 16 and number & 1 == 0:  # pacia1716 and the like
        return clobber(17, out)
    if number == 40:  # chkfeat
        return clobber(16, out)
    return 0
