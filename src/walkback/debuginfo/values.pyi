from enum import IntEnum

class Kind(IntEnum):
    NOTHING = 0
    NUMBER = 1
    ADDRESS = 2
    ADDRESS_INDEX = 3
    TEXT = 4
    TEXT_INDEX = 5
    ENTRY = 6
    ALTERNATE_ENTRY = 7
    LIST_INDEX = 8

class Place(IntEnum):
    INFO = 1
    STR = 2
    LINE_STR = 3
    ALTERNATE_STR = 4
    LINE = 5

PLACE_SHIFT: int
OFFSET_MASK: int

def text_at(place: int, offset: int) -> int: ...
