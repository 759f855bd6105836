"""The opcode maps of s390x: what an instruction does, which of its register fields it writes, and what it stores.

The z/Architecture Principles of Operation, appendix B and the chapters on each group of instructions. An opcode of two
bytes has a page: its second half stands in the second byte, in that byte's lower half, or in the sixth byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import U8, U32
from walkback.code.s390x.kinds import (
    AT_2,
    AT_4,
    F1,
    GR0,
    GR1,
    GR2,
    INDEX,
    LONG,
    NUMBER,
    PAIR1,
    PAIR2,
    R1,
    R2,
    SECOND_BYTE,
    SIGNED,
    SIXTH_BYTE,
    V1,
    X1,
    Does,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = {first: page for page, first in enumerate((0xB2, 0xB3, 0xB9, 0x01, 0xE5), 1)}
PAGES |= {first: page for page, first in enumerate((0xA5, 0xA7, 0xC0, 0xC2, 0xC4, 0xC6, 0xC8, 0xCC), SECOND_BYTE)}
PAGES |= {first: page for page, first in enumerate((0xE3, 0xE6, 0xE7, 0xEB, 0xEC, 0xED), SIXTH_BYTE)}
"""The page of each first byte that has one."""
WHOLE = 0
"""In the place of a first byte: the page of those that are whole opcodes."""

PAIRS = R1 | PAIR1 | R2 | PAIR2


def _bytes(number: int) -> int:
    return number << NUMBER


# For each first byte the second halves of opcodes, in hexadecimal digits, and their kind. A line between two makes a
# range; where an opcode stands twice, the later kind counts.
_OPCODES: dict[int, tuple[tuple[str, int], ...]] = {
    WHOLE: (
        ("00", Does.TRAP),
        ("05 0D", Does.CALL_REGISTER),
        ("06", Does.COUNT_REGISTER),
        ("07", Does.BRANCH_REGISTER),
        ("0A", Does.SYSTEM | GR2),
        ("0B", Does.SWITCH),
        ("0C", Does.CALL_SWITCH),
        ("0E A8", Does.STORE_SOMEWHERE | PAIRS),
        ("0F A9", PAIRS),
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
        ("EE", Does.STORE_SOMEWHERE | PAIRS),
        ("EF", Does.LOAD_LOW),
        ("F0-F3 F8 FA-FD", Does.STORE_SHORT),
    ),
    0x01: (
        ("01", Does.RETURN),
        ("02", Does.UPDATE_TREE),
        ("04", Does.STORE_SOMEWHERE),
        ("0A", Does.FORMAT),
    ),
    0xB2: (
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
        ("57", PAIRS),
        ("5D 5E", R1 | R2),
        ("A5", Does.STORE_SOMEWHERE | R1 | PAIR1),
        ("A6 A7", Does.STORE_SOMEWHERE | PAIRS),
        ("63", Does.STORE_SOMEWHERE | PAIRS | GR1),
        ("78", Does.STORE | _bytes(16)),
        ("B0", Does.STORE_UPTO | GR0),
        ("B2", Does.RETURN),
    ),
    0xB3: (
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
    ),
    0xB9: (
        ("00 01 03 05-07 0C 0F-11 13 17 18 1A 1C 1F 26 27", R1),
        ("02", Does.TEST | _bytes(8)),
        ("04", Does.COPY),
        ("08 0A", Does.ADD_REGISTERS),
        ("09 0B", Does.SUBTRACT),
        ("19 1B", Does.SUBTRACT_HALF),
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
        ("38 39 3C 3F B0-B3", Does.STORE_SOMEWHERE | PAIRS),
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
    ),
    0xA5: (
        ("0-6 8-B", R1),
        ("7", Does.AND),
        ("C", Does.CONSTANT_UNSIGNED | _bytes(48)),
        ("D", Does.CONSTANT_UNSIGNED | _bytes(32)),
        ("E", Does.CONSTANT_UNSIGNED | _bytes(16)),
        ("F", Does.CONSTANT_UNSIGNED),
    ),
    0xA7: (
        ("4", Does.BRANCH_16),
        ("5", Does.CALL_16),
        ("6 7", Does.COUNT_16),
        ("8 A C D", R1),
        ("9", Does.CONSTANT),
        ("B", Does.ADD),
        ("E", Does.COMPARE_16 | _bytes(4) | SIGNED),
        ("F", Does.COMPARE_16 | _bytes(8) | SIGNED),
    ),
    0xC0: (
        ("0", Does.ADDRESS),
        ("1", Does.CONSTANT_32),
        ("4", Does.BRANCH_32),
        ("5", Does.CALL_32),
        ("6-A C D", R1),
        ("B", Does.AND_32),
        ("E", Does.CONSTANT_UNSIGNED_32 | _bytes(32)),
        ("F", Does.CONSTANT_UNSIGNED_32),
    ),
    0xC2: (
        ("0 1 5 9 B", R1),
        ("4", Does.SUBTRACT_UNSIGNED),
        ("8", Does.ADD_32),
        ("A", Does.ADD_UNSIGNED),
        ("C", Does.COMPARE_32 | _bytes(8) | SIGNED),
        ("D", Does.COMPARE_32 | _bytes(4) | SIGNED),
        ("E", Does.COMPARE_32 | _bytes(8)),
        ("F", Does.COMPARE_32 | _bytes(4)),
    ),
    0xC4: (
        ("2 5 D", R1),
        ("4", Does.LOAD_RELATIVE | _bytes(2) | SIGNED),
        ("6", Does.LOAD_RELATIVE | _bytes(2)),
        ("7", Does.STORE_RELATIVE | _bytes(2)),
        ("8", Does.LOAD_RELATIVE | _bytes(8)),
        ("B", Does.STORE_WHOLE_RELATIVE),
        ("C", Does.LOAD_RELATIVE | _bytes(4) | SIGNED),
        ("E", Does.LOAD_RELATIVE | _bytes(4)),
        ("F", Does.STORE_RELATIVE | _bytes(4)),
    ),
    0xC6: (("0", Does.EXECUTE),),
    0xC8: (
        ("0", Does.STORE_UPTO),
        ("1", R1 | GR0 | GR1),
        ("2", Does.STORE_SOMEWHERE | R1),
        ("4 5", R1 | PAIR1),
        ("6 7 F", R1),
    ),
    0xCC: (
        ("6", Does.COUNT_32),
        ("8 A B", R1),
    ),
    0xE3: (
        ("03 06 08-0C 0E 0F 12 13 17 19-1C 1E 1F 2A 38-3C 48 4C 51 53 54 56-58 5A 5B 5E 5F-69 73 75 76 78", R1),
        ("7A-7C 80-83 85 88 89 94 95 98 99 9C 9D 9F C0 C2 C4 C6 C8 CA", R1),
        ("0D 1D 5C 84 86 87 8F 96 97", R1 | PAIR1),
        ("02 04", Does.LOAD | INDEX | LONG),
        ("14 32", Does.LOAD_TABLE | INDEX | LONG | _bytes(4) | SIGNED),
        ("15", Does.LOAD_TABLE | INDEX | LONG | _bytes(2) | SIGNED),
        ("16", Does.LOAD_TABLE | INDEX | LONG | _bytes(4)),
        ("18", Does.ADD_TABLE | INDEX | LONG | _bytes(4) | SIGNED),
        ("77", Does.LOAD_TABLE | INDEX | LONG | _bytes(1) | SIGNED),
        ("90", Does.LOAD_TABLE | INDEX | LONG | _bytes(1)),
        ("91", Does.LOAD_TABLE | INDEX | LONG | _bytes(2)),
        ("24 25", Does.STORE_WHOLE | INDEX | LONG),
        ("26 2F", Does.STORE | INDEX | LONG | _bytes(8)),
        ("2E 8E", Does.STORE | INDEX | LONG | _bytes(16)),
        ("3E 50 CB", Does.STORE | INDEX | LONG | _bytes(4)),
        ("3F 70 C7", Does.STORE | INDEX | LONG | _bytes(2)),
        ("49", Does.STORE | INDEX | LONG | _bytes(24)),
        ("72 C3", Does.STORE | INDEX | LONG | _bytes(1)),
        ("46", Does.COUNT_TO),
        ("47", Does.JUMP_MEMORY | INDEX | LONG),
        ("71", Does.LOAD_ADDRESS | LONG),
    ),
    0xE5: (
        ("02 48", Does.STORE | _bytes(8)),
        ("0A 0E 0F", Does.STORE_UPTO),
        ("44", Does.STORE | _bytes(2)),
        ("4C", Does.STORE | _bytes(4)),
    ),
    0xE6: (
        ("04-07 49 4A 4E 51 54-56 58-5E 70-76 78-7E", V1),
        ("01", Does.LOAD_ELEMENT | _bytes(4)),
        ("02", Does.LOAD_ELEMENT | _bytes(1)),
        ("03", Does.LOAD_ELEMENT | _bytes(2)),
        ("09", Does.STORE | INDEX | _bytes(2)),
        ("0A", Does.STORE | INDEX | _bytes(8)),
        ("0B", Does.STORE | INDEX | _bytes(4)),
        ("0E 0F", Does.STORE | INDEX | _bytes(16)),
        ("34 35 37", V1 | AT_4),
        ("3C 3D", Does.STORE_LENGTH),
        ("3F", Does.STORE | _bytes(16)),
        ("50 52", R1),
    ),
    0xE7: (
        ("04-07 37 44-4D 50-C7 CC CE D4-D7 DE-FF", V1),
        ("00 40", Does.LOAD_ELEMENT | _bytes(8)),
        ("01 41", Does.LOAD_ELEMENT | _bytes(4)),
        ("02 12 42", Does.LOAD_ELEMENT | _bytes(1)),
        ("03 13 43", Does.LOAD_ELEMENT | _bytes(2)),
        ("08", Does.STORE | INDEX | _bytes(1)),
        ("09", Does.STORE | INDEX | _bytes(2)),
        ("0A", Does.STORE | INDEX | _bytes(8)),
        ("0B", Does.STORE | INDEX | _bytes(4)),
        ("0E", Does.STORE | INDEX | _bytes(16)),
        ("1A 1B", Does.STORE_SOMEWHERE),
        ("21", Does.GET_ELEMENT),
        ("22", Does.SET_ELEMENT),
        ("27", R1),
        ("30 33 38 3A", V1),
        ("36", Does.LOAD_VECTORS),
        ("3E", Does.STORE_VECTORS),
        ("3F", Does.STORE | _bytes(16)),
    ),
    0xEB: (
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
        ("8E", Does.STORE_SOMEWHERE | PAIRS),
        ("8F", PAIRS),
        ("96 98", Does.LOAD_LOW),
        ("F4 F6-F8 FA", Does.STORE | LONG | R1 | _bytes(4)),
    ),
    0xEC: (
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
    ),
    0xED: (
        ("04 0A-0D 14 15 17 1A-1D 24 34 35 37 64", F1),
        ("05-07 25 26", F1 | X1),
        ("0E 0F 1E 1F 2E 2F 38-3A 3C-3F 40 41 AA AE", F1 | AT_4),
        ("3B 48 49 AB AF", F1 | X1 | AT_4),
        ("65", Does.LOAD_FLOAT | INDEX | LONG),
        ("66", Does.STORE | INDEX | LONG | _bytes(4)),
        ("67", Does.STORE_FLOAT | INDEX | LONG),
        ("A8 A9 AC AD", Does.STORE_LENGTH),
    ),
}


def pages() -> U8:
    """The page of each first byte, 0 where it is the whole opcode."""
    return np.array([PAGES.get(byte, 0) for byte in range(256)], np.uint8)


def kinds() -> U32:
    """The kind of each opcode: 256 for each page, by the byte where the second half stands."""
    map_ = [0] * (256 * (max(PAGES.values()) + 1))
    for first, rows in _OPCODES.items():
        page = PAGES.get(first, 0)
        for opcodes, kind in rows:
            for opcode in _each(opcodes):
                map_[256 * page + opcode] = kind
    for page in range(SECOND_BYTE, SIXTH_BYTE):
        start = 256 * page
        map_[start : start + 256] = map_[start : start + 16] * 16
    return np.array(map_, np.uint32)


def _each(opcodes: str) -> Iterator[int]:
    """The opcodes that a text lists."""
    for word in opcodes.split():
        start, _, last = word.partition("-")
        yield from range(int(start, 16), int(last or start, 16) + 1)
