"""The bytes of the Compact Backtrace Format, version 0, in the words of its document.

An information byte, and then instructions. Where an instruction has an operand, that is stored most significant byte
first, which the document does not say and Swift does.
"""

from __future__ import annotations

from enum import IntEnum

from walkback.base.findings import ByteFinding, Fault

FORMAT_VERSION = 0
WORDS = {0: 16, 1: 32, 2: 64}
"""Bits of a machine word, by the `size` field of the information byte."""
SIZE_MASK = 0x03
RESERVED_SIZE = 3
VERSION_SHIFT = 2
SIZES = {bits: size for size, bits in WORDS.items()}
SMALLEST_WORD = 16
LARGEST_WORD = 64
WORD_SHIFT = 5
"""The `size` field is the bits of a word shifted by this, and the bits are `SMALLEST_WORD` shifted by it."""

OP_END = 0x00
OP_TRUNC = 0x01
FIRST_ADDRESS = 0x10
"""The opcode of an address instruction is its `FrameCode`, shifted by `KIND_SHIFT`; from here on up to `OP_OMIT`."""
KIND_SHIFT = 4
ABSOLUTE = 0x08
ADDRESS_COUNT = 0x07
OP_OMIT = 0x40
OMIT_EXTERNAL = 0x20
OMIT_COUNT = 0x1F
OP_REP = 0x80
REP_EXTERNAL = 0x08
REP_COUNT = 0x07
FIRST_RESERVED = 0x90

SWIFT_MOST_REPEATS = 1 << 20
"""Swift writes no repeat of more, and its reader takes none of more than this and one."""


class FrameCode(IntEnum):
    """What a frame of a backtrace is.

    >>> [code.name for code in walkback.cbf.FrameCode]
    ['PC', 'RA', 'ASYNC', 'OMIT']
    """

    PC = 1
    """A program counter: the next instruction."""
    RA = 2
    """A return address: the call is before it."""
    ASYNC = 3
    """Where an async function goes on."""
    OMIT = 4
    """No frame but a number of frames that were left out."""


class Ended(IntEnum):
    """How the bytes of a backtrace end."""

    DATA = 0
    """Where the data ends, or something that cannot be read is."""
    END = 1
    TRUNC = 2


class BacktraceFault(Fault):
    """What can be wrong with a backtrace; of several the first counts."""

    NONE = 0
    EMPTY = 1, "there is no information byte", "no-data"
    VERSION = 2, "this is not version 0 of the format", "version"
    SIZE = 3, "the size of machine words is the reserved one", "word-size"
    RESERVED = 4, "this instruction is reserved", "reserved"
    SHORT = 5, "the data ends inside of an instruction", "cut"
    REPEAT = 6, "this repeats the previous frame, and there is none", "nothing-to-repeat"
    WIDE = 7, "the operand is wider than the machine word", "wide-operand"
    TRAILING = 8, "there are bytes behind the end of the backtrace", "trailing"

    def at(self, offset: int) -> ByteFinding:
        """The finding of this at a byte."""
        return ByteFinding(offset, self.rule, self.words)
