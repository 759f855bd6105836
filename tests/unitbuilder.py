"""Assembles compilation units for tests: `.debug_info`, `.debug_abbrev` and the strings that they name.

It shares no code with walkback: the shapes stand here a second time, as DWARF has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from elfbuilder import ElfBuilder, Image
from walkback.base.arch import ByteOrder

PRODUCER, LANGUAGE, NAME, STR_OFFSETS_BASE = 0x25, 0x13, 0x03, 0x72
STRING, STRP, LINE_STRP, STRX, STRX1, STRX2, STRX3, STRX4, GNU_STR_INDEX, GNU_STRP_ALT = (
    *(0x08, 0x0E, 0x1F, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02, 0x1F21),
)
DATA1, DATA2, UDATA, SDATA, IMPLICIT, INDIRECT, SEC_OFFSET = 0x0B, 0x05, 0x0F, 0x0D, 0x21, 0x16, 0x17
COMPILE, TYPE, PARTIAL, SKELETON, SPLIT_COMPILE, SPLIT_TYPE = 1, 2, 3, 4, 5, 6
TAG_COMPILE, TAG_PARTIAL, TAG_TYPE, TAG_SKELETON = 0x11, 0x3C, 0x41, 0x4A


def uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


@dataclass
class UnitBuilder:
    """Units of one file, of any version, in either byte order; `wide` makes 64-bit DWARF."""

    byteorder: ByteOrder = "little"
    wide: bool = False
    address_size: int = 8
    info: bytearray = field(default_factory=bytearray)
    abbrev: bytearray = field(default_factory=bytearray)
    strings: dict[str, bytearray] = field(default_factory=dict)

    def number(self, value: int, size: int) -> bytes:
        return value.to_bytes(size, self.byteorder)

    def offset(self, value: int) -> bytes:
        return self.number(value, 8 if self.wide else 4)

    def text(self, section: str, text: str) -> int:
        """Where a string stands in `str` or `line_str`, which it is added to."""
        data = self.strings.setdefault(section, bytearray(b"\0"))
        place = len(data)
        data += text.encode() + b"\0"
        return place

    def index(self, text: str, version: int = 5, *, header: bool = True) -> tuple[int, int]:
        """The number of a string in `str_offsets`, which it is added to; and where the offsets begin."""
        data = self.strings.setdefault("str_offsets", bytearray())
        size = 8 if self.wide else 4
        base = 2 * size if header else 0
        if header and not data:
            data += bytes(base)
        data += self.offset(self.text("str", text))
        return (len(data) - base) // size - 1, base

    def unit(
        self,
        version: int,
        attributes: Sequence[tuple[int, int | tuple[int, bytes], bytes]],
        *,
        kind: int = COMPILE,
        tag: int = TAG_COMPILE,
        code: int = 1,
        before: range | tuple[int, ...] = (),
        children: bool = True,
        extra: bytes = b"",
    ) -> None:
        """A unit whose entry has the attributes (name, form, bytes); a form with a value of its own is a pair.

        `before` are codes of declarations that stand before that of the entry.
        """
        table = len(self.abbrev)
        for other in before:
            self.abbrev += uleb(other) + uleb(0x34) + b"\0" + uleb(0x49) + uleb(0x13) + uleb(2) + uleb(0x18) + b"\0\0"
        self.abbrev += uleb(code) + uleb(tag) + bytes((children,))
        entry = uleb(code)
        for name, form, data in attributes:
            number, own = form if isinstance(form, tuple) else (form, b"")
            self.abbrev += uleb(name) + uleb(number) + own
            entry += data
        self.abbrev += b"\0\0\0"
        header = self.number(version, 2)
        if version >= 5:
            header += bytes((kind, self.address_size)) + self.offset(table)
            header += bytes(8) if kind in {SKELETON, SPLIT_COMPILE} else b""
            header += bytes(8) + self.offset(0) if kind in {TYPE, SPLIT_TYPE} else b""
        else:
            header += self.offset(table) + bytes((self.address_size,))
        contents = header + entry + extra
        self.info += (b"\xff" * 4 if self.wide else b"") + self.offset(len(contents)) + contents

    def sections(self) -> dict[str, bytes]:
        found = {"info": self.info, "abbrev": self.abbrev, **self.strings}
        return {name: bytes(data) for name, data in found.items()}

    def image(self, suffix: str = "", machine: int = 62) -> Image:
        """A linked file with these sections."""
        builder = ElfBuilder(self.byteorder, machine, kind=3)
        for name, data in self.sections().items():
            builder.section(f".debug_{name}{suffix}", data)
        return builder.build()
