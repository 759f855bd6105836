"""What an instruction can do, as far as stacks are concerned: the numbers that decoders give and the proof reads."""

from __future__ import annotations

from enum import IntEnum

NONE = -1
"""In the place of a register: there is none."""


class Flow(IntEnum):
    """Where control goes."""

    NEXT = 0
    JUMP = 1
    """To the target."""
    BRANCH = 2
    """To the target or on."""
    CALL = 3
    """To the target, and back if it returns."""
    CALL_INDIRECT = 4
    JUMP_INDIRECT = 5
    """To what the first register has; where that is `NONE`, to what is at base + index * scale + offset.

    With the effect ADD_REGISTERS, to that sum itself.
    """
    RETURN = 6
    TRAP = 7
    """Nowhere: an exception that does not come back."""
    BAD = 8
    """This is no instruction."""
    SYSTEM = 9
    """To the kernel, and back if that comes back."""


class Effect(IntEnum):
    """What becomes of registers and memory; the registers in `clobbers` get values that nothing is known of."""

    NOTHING = 0
    COPY = 1
    """first = second"""
    ADD = 2
    """first = base + offset"""
    ADD_REGISTERS = 3
    """first = base + index * scale + offset"""
    SUBTRACT = 4
    """first = base - index * scale; without an index something unknown is subtracted."""
    ALIGN = 5
    """first = base & offset"""
    CONSTANT = 6
    """first = offset"""
    LOAD = 7
    """Registers from memory at base + offset: `count` of them, `width` bytes apart and each."""
    STORE = 8
    """The same to memory; where first is `NONE`, `width` bytes of an unknown value."""
    EXCHANGE = 9
    """first and second change places."""
    COMPARE = 10
    """The conditions are those of first - second."""
    COMPARE_CONSTANT = 11
    """The conditions are those of first - offset."""
    LOAD_TABLE = 12
    """first = `width` bytes at base + index * scale + offset, with their sign where `signed`, and second, if any."""
    SIGN = 13
    """The return address in first gets a signature by key A, or by key B where `signed`, with base as its modifier.

    The base is `NONE` for another modifier: zero, or one with the program counter.
    """
    AUTHENTICATE = 14
    """And loses it, if it has that of this key and modifier."""
    LEAVE = 15
    """first = base, and then base is loaded from there, which moves first: `leave`."""
    EXTEND = 16
    """first = the lower half of second, with zeros or its sign above it."""


class Condition(IntEnum):
    """When a branch is taken, after a comparison of unsigned numbers."""

    OTHER = 0
    EQUAL = 1
    NOT_EQUAL = 2
    ABOVE = 3
    ABOVE_EQUAL = 4
    BELOW = 5
    BELOW_EQUAL = 6
