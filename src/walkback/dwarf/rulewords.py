"""The words of a rule, as `_program` writes them into `Frames.rule_words`.

A rule is five words: CFA, return address, frame pointer, stack pointer, flags. A word is a `RuleKind` in the lowest
bits, a register and a signed offset; of an expression the offset is its position.
"""

from __future__ import annotations

from enum import IntEnum

WORDS = 5

KIND_MASK = 0xF
REGISTER_SHIFT = 4
REGISTER_MASK = 0xFFFF
OFFSET_SHIFT = 20
LARGEST_OFFSET = 2**43 - 1

# The word of flags
FLAG_SIGNED = 1
FLAG_SIGNED_WITH_PC = 2
RA_COLUMN_SHIFT = 8
NO_COLUMN = 0xFFFF
"""What stands for columns beyond all use."""


class RuleKind(IntEnum):
    """The kinds that the words of `Frames.rule_words` have."""

    UNSPECIFIED = 0
    UNDEFINED = 1
    SAME_VALUE = 2
    REGISTER = 3
    AT_CFA = 4
    CFA = 5
    AT_EXPRESSION = 6
    EXPRESSION = 7
    TOO_LARGE = 8
