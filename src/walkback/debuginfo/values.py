"""What the attributes of entries can be, and where texts are (a face: kernels compile this in)."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Of a value."""

    NOTHING = 0
    NUMBER = 1
    ADDRESS = 2
    ADDRESS_INDEX = 3
    TEXT = 4
    TEXT_INDEX = 5
    ENTRY = 6
    """The offset of another entry in the same section."""
    ALTERNATE_ENTRY = 7
    """In the file that dwz moved it to."""
    LIST_INDEX = 8


class Place(IntEnum):
    """Where a text is."""

    INFO = 1
    STR = 2
    LINE_STR = 3
    ALTERNATE_STR = 4
    LINE = 5


PLACE_SHIFT = 56
"""A text is the number of its section, and its offset there; 0 is none."""
OFFSET_MASK = (1 << PLACE_SHIFT) - 1
