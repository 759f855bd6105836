"""The opcode maps of s390x: what an instruction does, which of its register fields it writes, and what it stores.

The z/Architecture Principles of Operation, appendix B and the chapters on each group of instructions. An opcode of two
bytes has a page: its second half stands in the second byte, in that byte's lower half, or in the sixth byte.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from walkback.base.arrays import U8, U32

# A kind is what the decoder knows of an opcode: the lowest byte is one of `Does`, the rest are these bits.
R1 = 1 << 8
"""The general register in the first field is written."""
PAIR1 = 1 << 9
"""So is the next one."""
R2 = 1 << 10
"""The general register in the second field is written."""
PAIR2 = 1 << 11
F1 = 1 << 12
"""The floating point register in the first field is written."""
X1 = 1 << 13
"""So is the second next one: a number of 128 bits."""
V1 = 1 << 14
"""The vector register in the first field is written."""
INDEX = 1 << 15
"""The address has an index register in the second field."""
NUMBER = 16
"""A number stands in the 8 bits from here on; mostly it is how many bytes are stored or loaded."""
AT_2 = 1 << 24
"""The first field stands in the third byte."""
AT_4 = 1 << 25
"""And in the fifth."""
LONG = 1 << 26
"""The displacement has 20 bits."""
GR0 = 1 << 27
"""Register 0 is written, wherever the fields point."""
GR1 = 1 << 28
GR2 = 1 << 29
SIGNED = 1 << 30
"""Numbers are compared or loaded with their sign."""
WRITES = R1 | R2 | F1 | V1 | GR0 | GR1 | GR2
"""Whether any register changes that no `Does` has to find."""

LAST_WITH_FIELDS_BEHIND = 3
"""Pages from 1 to this one have their register fields in the fourth byte, all others in the second."""
SECOND_BYTE = 8
"""Pages below this have the second half of their opcodes in the second byte."""
SIXTH_BYTE = 16
"""Those from here on have it in the sixth, those between in the lower half of the second."""
B2, B3, B9, X01, E5 = range(1, 6)
A5, A7, C0, C2, C4, C6, C8, CC = range(8, 16)
E3, E6, E7, EB, EC, ED = range(16, 22)
PAGES = dict(zip((0xB2, 0xB3, 0xB9, 0x01, 0xE5), range(B2, E5 + 1), strict=True))
PAGES |= dict(zip((0xA5, 0xA7, 0xC0, 0xC2, 0xC4, 0xC6, 0xC8, 0xCC), range(A5, CC + 1), strict=True))
PAGES |= dict(zip((0xE3, 0xE6, 0xE7, 0xEB, 0xEC, 0xED), range(E3, ED + 1), strict=True))
"""The page of each first byte that has one."""


class Does(IntEnum):
    """What the decoder has to look at; the upper half of the number is the group."""

    NOTHING = 0
    # Between registers.
    COPY = 0x10
    COPY_FLOAT = 0x11
    TO_FLOAT = 0x12
    FROM_FLOAT = 0x13
    TEST = 0x14
    """Load and test."""
    EXTEND = 0x15
    ADD_REGISTERS = 0x16
    SUBTRACT = 0x17
    ADD_THREE = 0x18
    """The operands are the second and the third field."""
    SUBTRACT_THREE = 0x19
    SHIFT_LEFT = 0x1A
    CLEAR = 0x1B
    """xgr, which clears where both fields are the same."""
    # With a number, of 16 bits unless it says so.
    ADD = 0x20
    ADD_TO = 0x21
    """From the second field."""
    ADD_32 = 0x22
    ADD_UNSIGNED = 0x23
    SUBTRACT_UNSIGNED = 0x24
    CONSTANT = 0x25
    CONSTANT_32 = 0x26
    CONSTANT_UNSIGNED = 0x27
    """Moved to the left by `NUMBER`."""
    CONSTANT_UNSIGNED_32 = 0x28
    AND = 0x29
    AND_32 = 0x2A
    ADDRESS = 0x2B
    """larl"""
    LOAD_ADDRESS = 0x2C
    """la"""
    ROTATE = 0x2D
    """Rotate, then insert the bits between two places."""
    ROTATE_OR_TEST = 0x2E
    # Comparisons.
    COMPARE = 0x30
    COMPARE_RR = 0x31
    COMPARE_16 = 0x32
    COMPARE_32 = 0x33
    COMPARE_BRANCH = 0x34
    COMPARE_NUMBER_BRANCH = 0x35
    COMPARE_BRANCH_TO = 0x36
    """To an address in a register."""
    COMPARE_NUMBER_BRANCH_TO = 0x37
    # Loads.
    LOAD = 0x40
    LOAD_FLOAT = 0x41
    LOAD_SEVERAL = 0x42
    LOAD_LOW = 0x43
    """Several, whose other half stays."""
    LOAD_TABLE = 0x44
    LOAD_RELATIVE = 0x45
    LOAD_VECTORS = 0x46
    LOAD_ELEMENT = 0x47
    """One of a vector; `NUMBER` says how many there are in the half that is a floating point register."""
    SET_ELEMENT = 0x48
    LOAD_MASKED = 0x49
    """Each bit of the second field stands for a byte."""
    # Stores.
    STORE = 0x50
    STORE_WHOLE = 0x51
    STORE_FLOAT = 0x52
    STORE_SEVERAL = 0x53
    STORE_PART = 0x54
    """Several, of each as many bytes as the number says."""
    STORE_LENGTH = 0x55
    """As many bytes as the second byte says, and one."""
    STORE_SHORT = 0x56
    """As its upper half says."""
    STORE_MASKED = 0x57
    STORE_VECTORS = 0x58
    STORE_RELATIVE = 0x59
    STORE_WHOLE_RELATIVE = 0x5A
    STORE_SOMEWHERE = 0x5B
    """At an address in a register, mostly of a length in another."""
    STORE_UPTO = 0x5C
    """Bytes that only a register knows the number of."""
    # Control.
    BRANCH_16 = 0x60
    BRANCH_32 = 0x61
    CALL_16 = 0x62
    CALL_32 = 0x63
    COUNT_16 = 0x64
    """Changes a register and branches."""
    COUNT_32 = 0x65
    COUNT_TO = 0x66
    """To an address in a register."""
    COUNT_REGISTER = 0x67
    BRANCH_REGISTER = 0x68
    BRANCH_TO = 0x69
    CALL_REGISTER = 0x6A
    CALL_TO = 0x6B
    JUMP_MEMORY = 0x6C
    RETURN = 0x6D
    TRAP = 0x6E
    EXECUTE = 0x6F
    # What changes registers that no field alone names.
    RANGE_READ = 0x70
    """From the first field to the second."""
    DIVIDE_TO_INTEGER = 0x71
    UPDATE_TREE = 0x72
    FORMAT = 0x73
    """pfpo"""
    SWITCH = 0x74
    """Changes the size of addresses and jumps."""
    CALL_SWITCH = 0x75
    FORM_CODEWORD = 0x76
    THIRD = 0x77
    """A field in the third byte too."""
    THIRD_PAIR = 0x78


def pages() -> U8:
    """The page of each first byte, 0 where it is the whole opcode."""
    return np.array([PAGES.get(byte, 0) for byte in range(256)], np.uint8)


def kinds() -> U32:
    """The kind of each opcode: 256 for each page, by the byte where the second half stands."""
    map_ = [0] * (256 * (max(PAGES.values()) + 1))
    for put in (_one_byte, _b2, _b3, _b9, _immediates, _e3, _e5, _vectors, _eb, _ec, _ed):
        put(map_)
    for page in range(SECOND_BYTE, SIXTH_BYTE):
        start = 256 * page
        map_[start : start + 256] = map_[start : start + 16] * 16
    return np.array(map_, np.uint32)


def _put(map_: list[int], page: int, opcodes: str, kind: int) -> None:
    """Give opcodes, in hexadecimal digits, a kind; two of them with a line between are a range."""
    for word in opcodes.split():
        first, _, last = word.partition("-")
        for opcode in range(int(first, 16), int(last or first, 16) + 1):
            map_[256 * page + opcode] = kind


def _bytes(number: int) -> int:
    return number << NUMBER


def _one_byte(map_: list[int]) -> None:
    for opcodes, kind in (
        ("00", Does.TRAP),
        ("05 0D", Does.CALL_REGISTER),
        ("06", Does.COUNT_REGISTER),
        ("07", Does.BRANCH_REGISTER),
        ("0A", GR2),
        ("0B", Does.SWITCH),
        ("0C", Does.CALL_SWITCH),
        ("0E A8", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2 | PAIR2),
        ("0F A9", R1 | PAIR1 | R2 | PAIR2),
        ("10 11 13 14 16 17 18 1A 1B 1E 1F", R1),
        ("12", Does.TEST | _bytes(4)),
        ("15", Does.COMPARE_RR | _bytes(4)),
        ("19", Does.COMPARE_RR | _bytes(4) | SIGNED),
        ("1C 1D 5C 5D 8C-8F", R1 | PAIR1),
        ("20-25 2A-35 38 3A-3F 69-6F 78 7A-7F", F1),
        ("26 27 36 37 67", F1 | X1),
        ("28", Does.COPY_FLOAT),
        ("29 39 69 79", 0),
        ("40", Does.STORE | INDEX | _bytes(2)),
        ("41", Does.LOAD_ADDRESS),
        ("42", Does.STORE | INDEX | _bytes(1)),
        ("43 48 4A-4C 4F 51 54 56-58 5A 5B 5E 5F 71 88-8B AE B1", R1),
        ("44", Does.EXECUTE),
        ("45 4D", Does.CALL_TO),
        ("46 86 87", Does.COUNT_TO),
        ("47", Does.BRANCH_TO),
        ("4E", Does.STORE | INDEX | _bytes(8)),
        ("50 70", Does.STORE | INDEX | _bytes(4)),
        ("60", Does.STORE_FLOAT | INDEX),
        ("68", Does.LOAD_FLOAT | INDEX),
        ("82", Does.RETURN),
        ("83", R1 | R2),
        ("84 85", Does.COUNT_16),
        ("90 9B B6", Does.STORE_PART | _bytes(4)),
        ("92-94 96 97 AC AD", Does.STORE | _bytes(1)),
        ("98", Does.LOAD_LOW),
        ("BA", Does.STORE | R1 | _bytes(4)),
        ("BB", Does.STORE | R1 | PAIR1 | _bytes(8)),
        ("BE", Does.STORE_MASKED),
        ("BF", Does.LOAD_MASKED),
        ("D0 DD", GR1 | GR2),
        ("D1-D4 D6 D7 DC DE E2 E8 EA", Does.STORE_LENGTH),
        ("D9-DB", Does.STORE_UPTO),
        ("DF", Does.STORE_LENGTH | GR1),
        ("E1 E9", Does.STORE | _bytes(16)),
        ("EE", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2 | PAIR2),
        ("EF", Does.LOAD_LOW),
        ("F0-F3 F8 FA-FD", Does.STORE_SHORT),
    ):
        _put(map_, 0, opcodes, kind)
    _put(map_, X01, "01", Does.RETURN)
    _put(map_, X01, "02", Does.UPDATE_TREE)
    _put(map_, X01, "04", Does.STORE_SOMEWHERE)
    _put(map_, X01, "0A", Does.FORMAT)


def _b2(map_: list[int]) -> None:
    for opcodes, kind in (
        ("01 02 05 07 09 7C", Does.STORE | _bytes(8)),
        ("0B", GR2),
        ("11 7D 9C B1", Does.STORE | _bytes(4)),
        ("12", Does.STORE | _bytes(2)),
        ("1A", Does.FORM_CODEWORD),
        ("22-24 26 27 29 2B 4B 4F 52 E4 E5 EC ED", R1),
        ("2D", F1 | X1),
        ("34", Does.STORE | _bytes(52)),
        ("41", R1 | R2 | PAIR2),
        ("44 45", F1),
        ("46 54", Does.STORE_SOMEWHERE),
        ("49", Does.RANGE_READ),
        ("4A", R1 | PAIR1),
        ("50", Does.STORE_SOMEWHERE | R1),
        ("55", Does.STORE_SOMEWHERE | R1 | R2),
        ("57", R1 | PAIR1 | R2 | PAIR2),
        ("5D 5E", R1 | R2),
        ("A5", Does.STORE_SOMEWHERE | R1 | PAIR1),
        ("A6 A7", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2 | PAIR2),
        ("63", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2 | PAIR2 | GR1),
        ("78", Does.STORE | _bytes(16)),
        ("B0", Does.STORE_UPTO | GR0),
        ("B2", Does.RETURN),
    ):
        _put(map_, B2, opcodes, kind)


def _b3(map_: list[int]) -> None:
    for opcodes, kind in (
        ("00-07 0A-0D 10-17 1A-1D 24-26 36 37", F1),
        ("0E 0F 1E 1F 2E 2F 38-3A 3C-3F", F1 | AT_2),
        ("3B", F1 | X1 | AT_2),
        ("44-46 50 51 57-59 5F 66 70-75 77 7F 90 91 94 95 A0 A1 A4 A5 B4 B5 C4 C5", F1),
        ("D0-D7 F1-F3 F5-F7", F1),
        ("05-07 16 25 26 36 40-43 47 4A-4D 60-63 65 67 76 92 96 A2 A6 B6 C6", F1 | X1),
        ("D8-DC DE DF F9-FB FD-FF", F1 | X1),
        ("DD", F1),
        ("53 5B", Does.DIVIDE_TO_INTEGER),
        ("8C 98-9A 9C-9E A8-AA AC-AE B8-BA C8-CA E1-E3 E5 E7 E9 ED EF", R1),
        ("C1", Does.TO_FLOAT),
        ("CD", Does.FROM_FLOAT),
        ("EA EB", R1 | PAIR1),
    ):
        _put(map_, B3, opcodes, kind)


def _b9(map_: list[int]) -> None:
    for opcodes, kind in (
        ("00 01 03 05-07 0C 0F-11 13 17-1C 1F 26 27", R1),
        ("02", Does.TEST | _bytes(8)),
        ("04", Does.COPY),
        ("08 0A", Does.ADD_REGISTERS),
        ("09 0B", Does.SUBTRACT),
        ("0D 1D 86 87 96 97 83 EC", R1 | PAIR1),
        ("0E", Does.RANGE_READ),
        ("12 14 16", Does.EXTEND),
        ("1E 3A 3E", Does.STORE_SOMEWHERE | R2 | PAIR2),
        ("20", Does.COMPARE | _bytes(8) | SIGNED),
        ("21", Does.COMPARE | _bytes(8)),
        ("29", Does.THIRD_PAIR | R1 | R2 | PAIR2 | GR0),
        ("25 2C", Does.STORE_SOMEWHERE),
        ("2A 2B 2E 2F", Does.STORE_SOMEWHERE | R1 | R2 | PAIR2),
        ("2D", Does.THIRD | R1 | R2 | PAIR2),
        ("38 39 3C 3F B0-B3", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2 | PAIR2),
        ("41-43 49-4B 64-69 6C 6D 74-77", R1),
        ("46", Does.COUNT_REGISTER),
        ("51-53", F1),
        ("59-5B", F1 | X1),
        ("80 81 84 85 88 89 94 95 98-9B 9D A2 AA AC AE", R1),
        ("82", Does.CLEAR),
        ("8D", R1 | R2),
        ("8A", Does.STORE_SOMEWHERE | R1),
        ("90-93", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2),
        ("BD BF", R1 | PAIR1 | R2),
        ("AF", R2),
        ("BE", R1 | R2),
        ("C0 C8-CB D8-DB E0-E7 ED F0 F2 F4-FB FD", R1),
        ("E8 EA", Does.ADD_THREE),
        ("E9 EB", Does.SUBTRACT_THREE),
    ):
        _put(map_, B9, opcodes, kind)


def _immediates(map_: list[int]) -> None:
    """What has a number of 16 or 32 bits in it."""
    for page, opcodes, kind in (
        (A5, "0-6 8-B", R1),
        (A5, "7", Does.AND),
        (A5, "C", Does.CONSTANT_UNSIGNED | _bytes(48)),
        (A5, "D", Does.CONSTANT_UNSIGNED | _bytes(32)),
        (A5, "E", Does.CONSTANT_UNSIGNED | _bytes(16)),
        (A5, "F", Does.CONSTANT_UNSIGNED),
        (A7, "4", Does.BRANCH_16),
        (A7, "5", Does.CALL_16),
        (A7, "6 7", Does.COUNT_16),
        (A7, "8 A C D", R1),
        (A7, "9", Does.CONSTANT),
        (A7, "B", Does.ADD),
        (A7, "E", Does.COMPARE_16 | _bytes(4) | SIGNED),
        (A7, "F", Does.COMPARE_16 | _bytes(8) | SIGNED),
        (C0, "0", Does.ADDRESS),
        (C0, "1", Does.CONSTANT_32),
        (C0, "4", Does.BRANCH_32),
        (C0, "5", Does.CALL_32),
        (C0, "6-A C D", R1),
        (C0, "B", Does.AND_32),
        (C0, "E", Does.CONSTANT_UNSIGNED_32 | _bytes(32)),
        (C0, "F", Does.CONSTANT_UNSIGNED_32),
        (C2, "0 1 5 9 B", R1),
        (C2, "4", Does.SUBTRACT_UNSIGNED),
        (C2, "8", Does.ADD_32),
        (C2, "A", Does.ADD_UNSIGNED),
        (C2, "C", Does.COMPARE_32 | _bytes(8) | SIGNED),
        (C2, "D", Does.COMPARE_32 | _bytes(4) | SIGNED),
        (C2, "E", Does.COMPARE_32 | _bytes(8)),
        (C2, "F", Does.COMPARE_32 | _bytes(4)),
        (C4, "2 5 D", R1),
        (C4, "4", Does.LOAD_RELATIVE | _bytes(2) | SIGNED),
        (C4, "6", Does.LOAD_RELATIVE | _bytes(2)),
        (C4, "7", Does.STORE_RELATIVE | _bytes(2)),
        (C4, "8", Does.LOAD_RELATIVE | _bytes(8)),
        (C4, "B", Does.STORE_WHOLE_RELATIVE),
        (C4, "C", Does.LOAD_RELATIVE | _bytes(4) | SIGNED),
        (C4, "E", Does.LOAD_RELATIVE | _bytes(4)),
        (C4, "F", Does.STORE_RELATIVE | _bytes(4)),
        (C6, "0", Does.EXECUTE),
        (C8, "0", Does.STORE_UPTO),
        (C8, "1", R1 | GR0 | GR1),
        (C8, "2", Does.STORE_SOMEWHERE | R1),
        (C8, "4 5", R1 | PAIR1),
        (C8, "6 7 F", R1),
        (CC, "6", Does.COUNT_32),
        (CC, "8 A B", R1),
    ):
        _put(map_, page, opcodes, kind)


def _e3(map_: list[int]) -> None:
    memory = INDEX | LONG
    for opcodes, kind in (
        ("03 06 08-0C 0E 0F 12 13 17-1C 1E 1F 2A 38-3C 48 4C 51 53 54 56-58 5A 5B 5E 5F-69 73 75 76 78", R1),
        ("7A-7C 80-83 85 88 89 94 95 98 99 9C 9D 9F C0 C2 C4 C6 C8 CA", R1),
        ("0D 1D 5C 84 86 87 8F 96 97", R1 | PAIR1),
        ("02 04", Does.LOAD | memory),
        ("14 32", Does.LOAD_TABLE | memory | _bytes(4) | SIGNED),
        ("15", Does.LOAD_TABLE | memory | _bytes(2) | SIGNED),
        ("16", Does.LOAD_TABLE | memory | _bytes(4)),
        ("77", Does.LOAD_TABLE | memory | _bytes(1) | SIGNED),
        ("90", Does.LOAD_TABLE | memory | _bytes(1)),
        ("91", Does.LOAD_TABLE | memory | _bytes(2)),
        ("24 25", Does.STORE_WHOLE | memory),
        ("26 2F", Does.STORE | memory | _bytes(8)),
        ("2E 8E", Does.STORE | memory | _bytes(16)),
        ("3E 50 CB", Does.STORE | memory | _bytes(4)),
        ("3F 70 C7", Does.STORE | memory | _bytes(2)),
        ("49", Does.STORE | memory | _bytes(24)),
        ("72 C3", Does.STORE | memory | _bytes(1)),
        ("46", Does.COUNT_TO),
        ("47", Does.JUMP_MEMORY | memory),
        ("71", Does.LOAD_ADDRESS | LONG),
    ):
        _put(map_, E3, opcodes, kind)


def _e5(map_: list[int]) -> None:
    _put(map_, E5, "02 48", Does.STORE | _bytes(8))
    _put(map_, E5, "0A 0E 0F", Does.STORE_UPTO)
    _put(map_, E5, "44", Does.STORE | _bytes(2))
    _put(map_, E5, "4C", Does.STORE | _bytes(4))


def _vectors(map_: list[int]) -> None:
    for page, opcodes, kind in (
        (E6, "04-07 49 4A 4E 51 54-56 58-5E 70-76 78-7E", V1),
        (E6, "01", Does.LOAD_ELEMENT | _bytes(4)),
        (E6, "02", Does.LOAD_ELEMENT | _bytes(1)),
        (E6, "03", Does.LOAD_ELEMENT | _bytes(2)),
        (E6, "09", Does.STORE | INDEX | _bytes(2)),
        (E6, "0A", Does.STORE | INDEX | _bytes(8)),
        (E6, "0B", Does.STORE | INDEX | _bytes(4)),
        (E6, "0E 0F", Does.STORE | INDEX | _bytes(16)),
        (E6, "34 35 37", V1 | AT_4),
        (E6, "3C 3D", Does.STORE_LENGTH),
        (E6, "3F", Does.STORE | _bytes(16)),
        (E6, "50 52", R1),
        (E7, "04-07 37 44-4D 50-C7 CC CE D4-D7 DE-FF", V1),
        (E7, "00 40", Does.LOAD_ELEMENT | _bytes(8)),
        (E7, "01 41", Does.LOAD_ELEMENT | _bytes(4)),
        (E7, "02 12 42", Does.LOAD_ELEMENT | _bytes(1)),
        (E7, "03 13 43", Does.LOAD_ELEMENT | _bytes(2)),
        (E7, "08", Does.STORE | INDEX | _bytes(1)),
        (E7, "09", Does.STORE | INDEX | _bytes(2)),
        (E7, "0A", Does.STORE | INDEX | _bytes(8)),
        (E7, "0B", Does.STORE | INDEX | _bytes(4)),
        (E7, "0E", Does.STORE | INDEX | _bytes(16)),
        (E7, "1A 1B", Does.STORE_SOMEWHERE),
        (E7, "21 27", R1),
        (E7, "22", Does.SET_ELEMENT),
        (E7, "30 33 38 3A", V1),
        (E7, "36", Does.LOAD_VECTORS),
        (E7, "3E", Does.STORE_VECTORS),
        (E7, "3F", Does.STORE | _bytes(16)),
    ):
        _put(map_, page, opcodes, kind)


def _eb(map_: list[int]) -> None:
    for opcodes, kind in (
        ("04", Does.LOAD_SEVERAL | LONG),
        ("0A-0C 1C 1D 4C DC-DF E0 E2 F2", R1),
        ("0D", Does.SHIFT_LEFT),
        ("14", Does.STORE | LONG | R1 | _bytes(4)),
        ("16", Does.STORE_SOMEWHERE | R1 | R2),
        ("17", Does.STORE_SOMEWHERE),
        ("24", Does.STORE_SEVERAL | LONG),
        ("25", Does.STORE_PART | LONG | _bytes(8)),
        ("26 90 9B", Does.STORE_PART | LONG | _bytes(4)),
        ("2C 2D", Does.STORE_MASKED | LONG),
        ("30 E4 E6-E8 EA", Does.STORE | LONG | R1 | _bytes(8)),
        ("31", Does.STORE | LONG | R1 | PAIR1 | _bytes(8)),
        ("3E", Does.STORE | LONG | R1 | PAIR1 | _bytes(16)),
        ("44 45", Does.COUNT_TO),
        ("52 54 56 57", Does.STORE | LONG | _bytes(1)),
        ("6A 6E E1 F3", Does.STORE | LONG | _bytes(4)),
        ("7A 7E E3", Does.STORE | LONG | _bytes(8)),
        ("71", Does.RETURN),
        ("80 81", Does.LOAD_MASKED),
        ("8E", Does.STORE_SOMEWHERE | R1 | PAIR1 | R2 | PAIR2),
        ("8F", R1 | PAIR1 | R2 | PAIR2),
        ("96 98", Does.LOAD_LOW),
        ("F4 F6-F8 FA", Does.STORE | LONG | R1 | _bytes(4)),
    ):
        _put(map_, EB, opcodes, kind)


def _ec(map_: list[int]) -> None:
    for opcodes, kind in (
        ("42 46 4E 51 5D D8 DA", R1),
        ("44 45", Does.COUNT_16),
        ("54 56 57", Does.ROTATE_OR_TEST),
        ("55 59", Does.ROTATE),
        ("64", Does.COMPARE_BRANCH | _bytes(8) | SIGNED),
        ("65", Does.COMPARE_BRANCH | _bytes(8)),
        ("76", Does.COMPARE_BRANCH | _bytes(4) | SIGNED),
        ("77", Does.COMPARE_BRANCH | _bytes(4)),
        ("7C", Does.COMPARE_NUMBER_BRANCH | _bytes(8) | SIGNED),
        ("7D", Does.COMPARE_NUMBER_BRANCH | _bytes(8)),
        ("7E", Does.COMPARE_NUMBER_BRANCH | _bytes(4) | SIGNED),
        ("7F", Does.COMPARE_NUMBER_BRANCH | _bytes(4)),
        ("D9 DB", Does.ADD_TO),
        ("E4", Does.COMPARE_BRANCH_TO | _bytes(8) | SIGNED),
        ("E5", Does.COMPARE_BRANCH_TO | _bytes(8)),
        ("F6", Does.COMPARE_BRANCH_TO | _bytes(4) | SIGNED),
        ("F7", Does.COMPARE_BRANCH_TO | _bytes(4)),
        ("FC", Does.COMPARE_NUMBER_BRANCH_TO | _bytes(8) | SIGNED),
        ("FD", Does.COMPARE_NUMBER_BRANCH_TO | _bytes(8)),
        ("FE", Does.COMPARE_NUMBER_BRANCH_TO | _bytes(4) | SIGNED),
        ("FF", Does.COMPARE_NUMBER_BRANCH_TO | _bytes(4)),
    ):
        _put(map_, EC, opcodes, kind)


def _ed(map_: list[int]) -> None:
    for opcodes, kind in (
        ("04 0A-0D 14 15 17 1A-1D 24 34 35 37 64", F1),
        ("05-07 25 26", F1 | X1),
        ("0E 0F 1E 1F 2E 2F 38-3A 3C-3F 40 41 AA AE", F1 | AT_4),
        ("3B 48 49 AB AF", F1 | X1 | AT_4),
        ("65", Does.LOAD_FLOAT | INDEX | LONG),
        ("66", Does.STORE | INDEX | LONG | _bytes(4)),
        ("67", Does.STORE_FLOAT | INDEX | LONG),
        ("A8 A9 AC AD", Does.STORE_LENGTH),
    ):
        _put(map_, ED, opcodes, kind)
