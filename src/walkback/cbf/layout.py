"""The bytes of the Compact Backtrace Format, version 0, in the words of its document.

An information byte, and then instructions. Where an instruction has an operand, that is stored most significant byte
first, which the document does not say and Swift does.
"""

from __future__ import annotations

from enum import IntEnum

VERSION = 0
WORDS = {0: 16, 1: 32, 2: 64}
"""Bits of a machine word, by the `size` field of the information byte."""
SIZES = {bits: size for size, bits in WORDS.items()}

END = 0x00
TRUNC = 0x01
FIRST_ADDRESS = 0x10
"""The opcode of an address instruction is its `Kind`, shifted by 4; from here on up to `OMIT`."""
ABSOLUTE = 0x08
ADDRESS_COUNT = 0x07
OMIT = 0x40
OMIT_EXTERNAL = 0x20
OMIT_COUNT = 0x1F
REP = 0x80
REP_EXTERNAL = 0x08
REP_COUNT = 0x07
FIRST_RESERVED = 0x90

SWIFT_MOST_REPEATS = 1 << 20
"""Swift writes no repeat of more, and its reader takes none of more than this and one."""


class Kind(IntEnum):
    """What a frame of a backtrace is."""

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


class Fault(IntEnum):
    """What can be wrong with a backtrace; of several the first counts."""

    NONE = 0
    EMPTY = 1
    VERSION = 2
    SIZE = 3
    RESERVED = 4
    SHORT = 5
    REPEAT = 6
    WIDE = 7
    TRAILING = 8


FAULTS = {
    Fault.EMPTY: ("no-data", "there is no information byte"),
    Fault.VERSION: ("version", "this is not version 0 of the format"),
    Fault.SIZE: ("word-size", "the size of machine words is the reserved one"),
    Fault.RESERVED: ("reserved", "this instruction is reserved"),
    Fault.SHORT: ("cut", "the data ends inside of an instruction"),
    Fault.REPEAT: ("nothing-to-repeat", "this repeats the previous frame, and there is none"),
    Fault.WIDE: ("wide-operand", "the operand is wider than the machine word"),
    Fault.TRAILING: ("trailing", "there are bytes behind the end of the backtrace"),
}
"""The rule that each breaks, and the words for it."""
