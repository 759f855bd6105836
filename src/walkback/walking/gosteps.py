"""The steps of functions of Go that others do not describe: from one stack to another, and those that nobody calls."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AMD64
from walkback.dwarf import layout as dw
from walkback.gopclntab.crossings import Crossing, Way
from walkback.stacks.stacks import How
from walkback.table.rule import PartKind
from walkback.walking.abi import Flag, Op, Save, Step
from walkback.walking.points import NO_STEP, Points, empty_blocks
from walkback.walking.samples import BEYOND, PC, SYSTEM_STACK, THREAD
from walkback.walking.steps import Steps, steps_of

_DEREF, _MINUS, _DUP, _BRA, _DROP = (
    bytes((code,)) for code in (dw.DW_OP_DEREF, dw.DW_OP_MINUS, dw.DW_OP_DUP, dw.DW_OP_BRA, dw.DW_OP_DROP)
)


def _register(number: int) -> bytes:
    """Its value; the number is in LEB128 of three bytes, and the offset 0."""
    return bytes((dw.DW_OP_BREGX, number & 127 | 128, number >> 7 & 127 | 128, number >> 14, 0))


def _plus(number: int) -> bytes:
    return bytes((dw.DW_OP_CONST8S,)) + number.to_bytes(8, "little", signed=True) + bytes((dw.DW_OP_PLUS,))


def _word(offset: int) -> bytes:
    """The word behind the address on top."""
    return _plus(offset) + _DEREF


def _stack_pointer(way: Way, numbers: tuple[int, ...]) -> bytes:
    """The expression of the stack pointer that a function goes back to."""
    if way == Way.REGISTER:
        return _register(numbers[0])
    if way == Way.STORED:
        return _register(AMD64.sp) + _word(numbers[0])
    if way == Way.DEPTH:
        goroutine, high, depth = numbers
        end = _register(AMD64.sp) + _word(goroutine) + _word(high)
        return end + _register(AMD64.sp) + _word(depth) + _MINUS
    now, thread, other, stack_pointer = numbers
    found = _register(BEYOND + THREAD) + _word(now) + _word(thread) + _word(other) + _word(stack_pointer)
    if way == Way.GOROUTINE:
        return found
    # While a call of C has called Go, which has called C, the outer place is where the inner one was put in its place.
    found = _DROP + found
    return _register(BEYOND + SYSTEM_STACK) + _DUP + _BRA + len(found).to_bytes(2, "little") + found


def crossing_steps(crossings: list[Crossing]) -> tuple[Points, Steps]:
    """The steps of calls on another stack, each for as long as its instruction is, and of what is before them."""
    steps: list[tuple[Step, How]] = []
    expressions: list[bytes] = []
    for one in crossings:
        if one.way == Way.SIGNAL:
            # Where trampolines are found these go before it.
            steps.append((Step((Op.BAD, 0, 0), (), Flag.SIGNAL), How.SIGNAL))
            continue
        saves: list[Save] = [(PC, Op.AT_CFA, 0, -8)]
        kept = one.frame_pointer
        is_saved = kept.kind == PartKind.AT_CFA
        saves.append((AMD64.fp, Op.AT_CFA if is_saved else Op.SAME, 0, kept.offset if is_saved else 0))
        if one.way == Way.SYSTEM:
            # At the bottom of its frame it keeps what was there before.
            saves.append((SYSTEM_STACK, Op.AT_CFA, 0, -one.cfa))
        if one.way == Way.NONE:
            steps.append((Step((Op.REGISTER, AMD64.sp, one.cfa), tuple(saves)), How.GO))
        else:
            steps.append((Step((Op.EXPRESSION, 0, len(expressions)), tuple(saves), Flag.SWITCHES), How.GO))
            expressions.append(_stack_pointer(one.way, one.numbers) + _plus(one.cfa))
    start: list[int] = []
    step: list[int] = []
    for number, one in enumerate(crossings):
        if start and start[-1] == one.start:
            del start[-1], step[-1]
        start += [one.start, one.end]
        step += [number, int(NO_STEP)]
    return Points(np.array(start, np.uint64), np.array(step, np.uint32), empty_blocks()), steps_of(steps, expressions)
