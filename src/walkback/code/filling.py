"""What decoders write into an instruction (a face: kernels compile these functions in)."""

import cython

from walkback.code._instruction import Instruction
from walkback.code.effects import NONE, Effect, Flow


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clear(out: Instruction) -> cython.int:
    """An instruction that does nothing and goes on; its length stays."""
    out.flow = Flow.NEXT
    out.effect = Effect.NOTHING
    out.condition = 0
    out.signed = False
    out.before = False
    out.first = out.second = out.base = out.index = NONE
    out.count = 1
    out.scale = 1
    out.width = 8
    out.target = 0
    out.offset = 0
    out.moved = 0
    out.clobbers = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clobber(register: cython.int, out: Instruction) -> cython.int:
    """A register gets a value that nothing is known of."""
    out.clobbers |= cython.cast(cython.ulonglong, 1) << register
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def make(effect: cython.int, first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    """An effect on one register, from another."""
    out.effect = effect
    out.first = first
    out.second = second
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def combine(effect: cython.int, first: cython.int, base: cython.int, index: cython.int, out: Instruction) -> cython.int:
    """An effect on one register, from one or two others."""
    out.effect = effect
    out.first = first
    out.base = base
    out.index = index
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def constant(first: cython.int, value: cython.longlong, out: Instruction) -> cython.int:
    """A register gets a number."""
    out.effect = Effect.CONSTANT
    out.first = first
    out.offset = value
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add(
    effect: cython.int, first: cython.int, base: cython.int, number: cython.longlong, out: Instruction
) -> cython.int:
    """A register gets another with a number added, or with it as a mask: `ADD` or `ALIGN`."""
    out.offset = number
    return combine(effect, first, base, NONE, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def load(first: cython.int, width: cython.int, out: Instruction) -> cython.int:
    """Something is loaded from the place that `out` has."""
    out.effect = Effect.LOAD
    out.first = first
    out.width = width
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def load_table(first: cython.int, width: cython.int, with_sign: cython.bint, out: Instruction) -> cython.int:
    """A number that may be shorter than the register is loaded from there."""
    out.effect = Effect.LOAD_TABLE
    out.first = first
    out.width = width
    out.signed = with_sign
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def store(first: cython.int, width: cython.int, out: Instruction) -> cython.int:
    """Something is stored there."""
    out.effect = Effect.STORE
    out.first = first
    out.width = width
    return 0
