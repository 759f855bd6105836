"""The instructions of Lua 5.4, as far as they say what a function calls; they are the same in all its releases."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import Numbers

OPCODE = 0x7F
_FARTHEST = 1 << 16
"""How many instructions before a call are looked at."""
MOVE, LOADK, LOADNIL, GETUPVAL, GETTABUP, GETTABLE, GETFIELD, SELF = 0, 3, 8, 9, 11, 12, 14, 20
JMP, CALL, TAILCALL, TFORCALL = 56, 68, 69, 76
MMBIN = range(46, 49)

_SETS_A = np.zeros(OPCODE + 1, np.bool_)
"""Which change the register A; calls and `LOADNIL` change more."""
for _first, _last in ((0, 7), (9, 9), (11, 14), (19, 45), (49, 53), (67, 67), (73, 74), (77, 77), (79, 81)):
    _SETS_A[_first : _last + 1] = True

_NAMES = (
    *("index", "newindex", "gc", "mode", "len", "eq", "add", "sub", "mul", "mod", "pow", "div", "idiv", "band", "bor"),
    *("bxor", "shl", "shr", "unm", "bnot", "lt", "le", "concat", "call", "close"),
)
EVENTS = tuple(f"__{one}" for one in _NAMES)
"""Metamethods, by the numbers that instructions have for them."""
EVENT_OF = {
    **dict.fromkeys((11, 12, 13, 14, 20), "__index"),
    **dict.fromkeys((15, 16, 17, 18), "__newindex"),
    49: "__unm",
    50: "__bnot",
    52: "__len",
    53: "__concat",
    57: "__eq",
    **dict.fromkeys((58, 62, 64), "__lt"),
    **dict.fromkeys((59, 63, 65), "__le"),
    **dict.fromkeys((54, 70), "__close"),
    TFORCALL: "for iterator",
}
"""What an instruction calls that is no call."""


def a(word: int) -> int:
    """The register that an instruction is about."""
    return word >> 7 & 0xFF


def k(word: int) -> int:
    """Whether C is the number of a constant."""
    return word >> 15 & 1


def b(word: int) -> int:
    """Its first argument."""
    return word >> 16 & 0xFF


def c(word: int) -> int:
    """Its second argument."""
    return word >> 24 & 0xFF


def bx(word: int) -> int:
    """Its argument where it has one."""
    return word >> 15


def setter(code: Numbers, place: int, register: int) -> int | None:
    """The number of the instruction that set a register before another one; None if that depends on a jump."""
    begin = max(place - _FARTHEST, 0)
    before = code[begin:place].astype(np.int64)
    number, first = before & OPCODE, before >> 7 & 0xFF
    last = np.where(number == LOADNIL, first + (before >> 16 & 0xFF), first)
    last[(number == CALL) | (number == TAILCALL) | (number == TFORCALL)] = 0x100
    first = np.where(number == TFORCALL, first + 2, first)
    sets = (_SETS_A[number] | (number == LOADNIL) | (last == 0x100)) & (first <= register) & (register <= last)
    rows = np.flatnonzero(sets)
    if not len(rows):
        return None
    found = int(rows[-1])
    target = np.arange(1, len(before) + 1) + (before >> 7) - 0xFFFFFF
    jumps = (number == JMP) & (target > found) & (target <= len(before))
    return None if jumps[:found].any() else begin + found
