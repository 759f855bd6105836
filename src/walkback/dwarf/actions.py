"""What the instructions of call frame information come to, for the kernels that run them."""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """What is to be done after an instruction was read; from `WRONG` on the program cannot go on."""

    NOTHING = 0
    ADVANCE = 1
    RULE = 2
    RESTORE = 3
    REMEMBER = 4
    RECALL = 5
    SET_CFA = 6
    CFA_REGISTER = 7
    CFA_OFFSET = 8
    CFA_EXPRESSION = 9
    SIGN = 10
    SIGN_WITH_PC = 11
    WRONG = 12
    INDIRECT = 13
    """The location is set by an indirect pointer."""
