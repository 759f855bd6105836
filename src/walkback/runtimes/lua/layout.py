"""Where Lua 5.4 keeps what a chain of calls is made of.

The offsets were measured with each release's own headers; they are the same on all 64-bit machines.
"""

from __future__ import annotations

from walkback.base.dataclass import dataclass

FIRST, LAST = (5, 4, 2), (5, 4, 8)
"""The releases whose layout is known."""
OPCODES = 83
"""Instructions of the virtual machine, and so entries of the evaluator's table."""

# What an object begins with is the same for all kinds.
KIND_AT = 8
THREAD, CLOSURE, PROTOTYPE, SHORT_STRING, LONG_STRING = 8, 6, 10, 4, 20
COLLECTABLE = 64
"""In the kind of a value: it is the address of an object."""

GLOBAL_FIRST = 264
"""The state that was there first."""
JUMP_PREVIOUS = 0
"""In what each protected call has on the C stack: that of the protected call around it."""

CALL = "Q8xQ8xQ22xH"
"""Of a call: where the stack of Lua has its function, the call before, the next instruction, the status."""
STATE = "8xB1xB13xQQ"
"""Of a state, after its order of bytes: its kind, its status, what all states share, the newest call."""
STATE_SIZE = 40
OF_C, FIRST_OF_EVALUATOR, HOOKED, TAIL_CALL, FINALIZER = 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 7
"""Bits of the status of a call."""

VALUE_SIZE = 16
CLOSURE_PROTOTYPE, CLOSURE_SIZE = 24, 32

PROTOTYPE_SIZE = 120
"""Without the last word, which the garbage collector has."""
PROTOTYPE_MARK = 10
"""From here on nothing of a prototype changes."""
UPVALUES_COUNT, CONSTANTS_COUNT, CODE_COUNT, LINES_COUNT, LOCALS_COUNT, KNOWN_LINES_COUNT = 16, 20, 24, 28, 36, 40
FIRST_LINE = 44
CONSTANTS, CODE, UPVALUES, LINES, KNOWN_LINES, LOCALS, SOURCE = 56, 64, 80, 88, 96, 104, 112
NO_STEP = -128
"""In the steps from line to line: the line is among those that are known."""
UPVALUE_SIZE = LOCAL_SIZE = 16

STRING_SHORT_LENGTH, STRING_LENGTH, STRING_TEXT = 11, 16, 24


@dataclass(frozen=True, slots=True)
class Layout:
    """What differs between releases."""

    state_jump: int
    """In a state: the innermost protected call, by what that has on the C stack."""
    state_base: int
    """The call that no function made."""


def layout_of(release: tuple[int, int, int]) -> Layout | None:
    """The layout of a release; None if it is not known."""
    if not FIRST <= release <= LAST:
        return None
    return Layout(80, 88) if release == FIRST else Layout(88, 96)
