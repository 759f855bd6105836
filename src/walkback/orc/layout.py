"""The layout of ORC tables, as the kernel's objtool writes them.

Facts are those of `arch/x86/include/asm/orc_types.h` and `arch/x86/kernel/unwind_orc.c` in kernels 4.14 to 7.3. An
entry has six bytes: two offsets of 16 bits, and 16 bits with two registers, a type and flags. Which number stands for
which register or type depends on the kernel. Since Linux 6.3 the section `.orc_header` has the SHA-1 of the header
file's lines that define an entry.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

import numpy as np

from walkback.base.dataclass import dataclass

ENTRY: Final = np.dtype([("sp_offset", "<i2"), ("bp_offset", "<i2"), ("bits", "<u2")])
PLACE: Final = np.dtype("<i4")
"""The distance from the field itself to the code."""
BP_SHIFT: Final = 4
TYPE_SHIFT: Final = 8
REGISTER_MASK: Final = 15


class Base(IntEnum):
    """What an offset counts from.

    >>> walkback.orc.layout.Base.SP.name
    'SP'
    """

    UNDEFINED = 0
    """For the frame pointer: it has not changed."""
    PREV_SP = 1
    """The CFA."""
    SP = 2
    BP = 3
    AX = 4
    DX = 5
    DI = 6
    R10 = 7
    R13 = 8
    SP_INDIRECT = 9
    """The word at the stack pointer; the offset is added to it."""
    BP_INDIRECT = 10
    """The word at the frame pointer plus the offset."""


class Kind(IntEnum):
    """What an entry describes."""

    UNDEFINED = 0
    """Nothing: padding, or code that cannot be unwound."""
    END_OF_STACK = 1
    CALL = 2
    """A function."""
    REGS = 3
    """Code with all registers of what it interrupted, a `pt_regs`, on the stack."""
    REGS_PARTIAL = 4
    """The same with only those that the processor saves."""


class Layout(IntEnum):
    """The layouts, each named for the first kernel that has it.

    >>> [layout.name for layout in walkback.orc.Layout]
    ['LINUX_4_14', 'LINUX_6_3', 'LINUX_6_4', 'LINUX_7_2']
    """

    LINUX_4_14 = 1
    LINUX_6_3 = 2
    LINUX_6_4 = 3
    LINUX_7_2 = 4
    """It gives registers other numbers; 7.2 is the first kernel it was seen in."""


@dataclass(frozen=True, slots=True)
class EntryShape:
    """What the bits of an entry mean."""

    bases: tuple[Base, ...]
    """The register of each number."""
    kinds: tuple[Kind, ...]
    """The kind of each number."""
    kind_bits: int
    signal: int = 0
    """The bit of code that is entered by an interrupt, so that its caller's address is exact."""
    end: int = 0
    """The bit of an outermost frame, where no kind says so."""

    @property
    def used(self) -> int:
        """The bits that mean something."""
        return (1 << (TYPE_SHIFT + self.kind_bits)) - 1 | self.signal | self.end


_BASES: Final = (
    *(Base.UNDEFINED, Base.PREV_SP, Base.DX, Base.DI, Base.BP),
    *(Base.SP, Base.R10, Base.R13, Base.BP_INDIRECT, Base.SP_INDIRECT),
)
_NEW_BASES: Final = (
    *(Base.UNDEFINED, Base.AX, Base.DX, Base.SP, Base.BP, Base.DI),
    *(Base.R10, Base.R13, Base.PREV_SP, Base.SP_INDIRECT, Base.BP_INDIRECT),
)
_OLD_KINDS: Final = (Kind.CALL, Kind.REGS, Kind.REGS_PARTIAL)
"""They have no number for an undefined entry: its stack pointer is undefined."""

SHAPES: Final = {
    Layout.LINUX_4_14: EntryShape(_BASES, _OLD_KINDS, kind_bits=2, end=1 << 10),
    Layout.LINUX_6_3: EntryShape(_BASES, _OLD_KINDS, kind_bits=2, signal=1 << 10, end=1 << 11),
    Layout.LINUX_6_4: EntryShape(_BASES, tuple(Kind), kind_bits=3, signal=1 << 11),
    Layout.LINUX_7_2: EntryShape(_NEW_BASES, tuple(Kind), kind_bits=3, signal=1 << 11),
}

HASHES: Final = {
    bytes.fromhex("db84aed4103b31dd51e017f8f79783ca985c2c51"): Layout.LINUX_6_3,
    bytes.fromhex("fe5d32bf581bd63b2ca9a5c65ba5a625eab3fe24"): Layout.LINUX_6_4,
    bytes.fromhex("137c36ad7627c4dd55932176bb0ecdbd5041fc82"): Layout.LINUX_7_2,
}
"""The contents of `.orc_header`."""

_RELEASE = re.compile(r"(\d+)\.(\d+)")
_RED_HAT = re.compile(r"5\.14\.0-(\d+)(?:\.\d+)*\.el9")
_RED_HAT_NEW = 517
"""From this build on Red Hat's 5.14 has the entries of 6.4, and no `.orc_header`.

This is what drgn goes by (`libdrgn/orc_info.c`, its pull request 579), which has it from the history of that kernel.
"""


def layout_of_release(release: str) -> Layout | None:
    """The layout of a kernel without `.orc_header`, by its version; None if it should have one.

    >>> walkback.orc.layout.layout_of_release("6.1.0-50-amd64").name
    'LINUX_4_14'
    """
    red_hat = _RED_HAT.match(release)
    if red_hat is not None and int(red_hat[1]) >= _RED_HAT_NEW:
        return Layout.LINUX_6_4
    version = _RELEASE.match(release)
    number = (int(version[1]), int(version[2])) if version is not None else (0, 0)
    if number < (4, 14) or number > (6, 3):
        return None
    return Layout.LINUX_6_3 if number == (6, 3) else Layout.LINUX_4_14
