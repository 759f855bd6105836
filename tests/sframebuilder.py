"""Assembles SFrame sections field by field, for tests.

It shares no code with walkback: the layouts are those of the specifications, by `struct`. Every field can be
overridden, so what it makes need not be valid, and every field has a label that tells where it stands.

    section = SFrameBuilder(3)
    section.function(0x1000, 32, [row(0, 3, [8]), row(1, 5, [16, -16])])
    data, labels = section.assemble()
    labels["fde0.size"], labels["fre0.1.info"]
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from walkback.base.arch import ByteOrder

MAGIC = 0xDEE2
AARCH64_BIG, AARCH64, AMD64, S390X = 1, 2, 3, 4
SORTED, FRAME_POINTER, PCREL = 1, 2, 4
FDE_SIZES = {1: 17, 2: 20, 3: 16}

_HEADER = (
    ("magic", "H"),
    ("version", "B"),
    ("flags", "B"),
    ("abi_arch", "B"),
    ("cfa_fixed_fp_offset", "b"),
    ("cfa_fixed_ra_offset", "b"),
    ("auxhdr_len", "B"),
    ("num_fdes", "I"),
    ("num_fres", "I"),
    ("fre_len", "I"),
    ("fdeoff", "I"),
    ("freoff", "I"),
)
_FDE = {
    1: (("start", "i"), ("size", "I"), ("fre_offset", "I"), ("num_fres", "I"), ("info", "B")),
    2: (
        *(("start", "i"), ("size", "I"), ("fre_offset", "I"), ("num_fres", "I")),
        *(("info", "B"), ("rep_size", "B"), ("padding", "H")),
    ),
    3: (("start", "q"), ("size", "I"), ("fre_offset", "I")),
}
_ATTRIBUTE = (("num_fres", "H"), ("info", "B"), ("info2", "B"), ("rep_size", "B"))


@dataclass
class Row:
    """One frame row entry."""

    start: int
    info: int
    words: list[int] = field(default_factory=list)
    """Signed or unsigned: what fits the word size."""


def row(
    start: int,
    base_or_info: int,
    words: list[int] | tuple[Any, ...] = (),
    *,
    size: int = 1,
    mangled: bool = False,
    info: int | None = None,
) -> Row:
    """A row whose info byte has its parts: base register 0 or 1 (FP, SP), the number of words, their size, mangled."""
    words = list(words)
    if info is None:
        info = base_or_info | len(words) << 1 | (1, 2, 4).index(size) << 5 | mangled << 7
    return Row(start, info, words)


@dataclass
class Function:
    """One function; `overrides` are fields of the entry or of its attribute record."""

    start: int
    """As an address unless `raw` is given."""
    size: int
    rows: list[Row]
    fre_type: int = 0
    mask: bool = False
    key_b: bool = False
    signal: bool = False
    flex: bool = False
    rep_size: int = 0
    shares: int | None = None
    """The number of the function whose rows this one has too."""
    before: bytes = b""
    """Bytes that belong to nobody, before the rows."""
    raw: int | None = None
    """The start field as it is stored."""
    overrides: dict[str, int] = field(default_factory=dict)


class SFrameBuilder:
    """Collects functions and header fields, and puts the bytes together."""

    def __init__(
        self,
        version: int,
        *,
        order: ByteOrder = "little",
        abi: int = AMD64,
        flags: int | None = None,
        fixed_fp: int = 0,
        fixed_ra: int | None = None,
        auxiliary: bytes = b"",
        address: int = 0,
        before_index: bytes = b"",
        between: bytes = b"",
        rows_first: bool = False,
        tail: bytes = b"",
        **header: Any,
    ) -> None:
        self.version = version
        self.order = order
        self.abi = abi
        self.flags = (SORTED if version == 1 else SORTED | PCREL) if flags is None else flags
        self.fixed_fp = fixed_fp
        self.fixed_ra = (-8 if abi == AMD64 else 0) if fixed_ra is None else fixed_ra
        self.auxiliary = auxiliary
        self.address = address
        self.before_index = before_index
        self.between = between
        self.rows_first = rows_first
        self.tail = tail
        self.header = header
        self.functions: list[Function] = []

    def function(self, start: int, size: int, rows: list[Row] | tuple[Any, ...] = (), **options: Any) -> Function:
        names = {name for name, _ in (*_FDE[2], *_FDE[3], *_ATTRIBUTE)} - set(Function.__dataclass_fields__)
        overrides = {name: options.pop(name) for name in list(options) if name in names}
        one = Function(start, size, list(rows), overrides=overrides, **options)
        self.functions.append(one)
        return one

    def assemble(self) -> tuple[bytes, dict[str, int]]:
        """The bytes, and where each part of them stands."""
        rows, fre_labels, offsets = self._rows()
        index_size = FDE_SIZES[self.version] * len(self.functions)
        header_end = 28 + len(self.auxiliary)
        if self.rows_first:
            freoff = len(self.before_index)
            fdeoff = freoff + len(rows) + len(self.between)
        else:
            fdeoff = len(self.before_index)
            freoff = fdeoff + index_size + len(self.between)
        values = {
            "magic": MAGIC,
            "version": self.version,
            "flags": self.flags,
            "abi_arch": self.abi,
            "cfa_fixed_fp_offset": self.fixed_fp,
            "cfa_fixed_ra_offset": self.fixed_ra,
            "auxhdr_len": len(self.auxiliary),
            "num_fdes": len(self.functions),
            "num_fres": sum(len(one.rows) for one in self.functions),
            "fre_len": len(rows),
            "fdeoff": fdeoff,
            "freoff": freoff,
        }
        labels: dict[str, int] = {}
        out = bytearray(self._pack(_HEADER, {**values, **self.header}, "", 0, labels))
        out += self.auxiliary + self.before_index
        fde_start, fre_start = header_end + fdeoff, header_end + freoff
        index = self._index(fde_start, offsets, labels)
        parts = [rows, self.between, index] if self.rows_first else [index, self.between, rows]
        out += b"".join(parts)
        labels |= {name: position + fre_start for name, position in fre_labels.items()}
        labels |= {"auxiliary": 28, "index": fde_start, "rows": fre_start, "end": len(out)}
        return bytes(out + self.tail), labels

    def _pack(
        self,
        fields: tuple[tuple[str, str], ...],
        values: dict[str, int],
        prefix: str,
        position: int,
        labels: dict[str, int],
    ) -> bytes:
        mark = "<" if self.order == "little" else ">"
        out = b""
        for name, code in fields:
            labels[prefix + name] = position + len(out)
            out += struct.pack(mark + code, values[name])
        return out

    def _info(self, one: Function) -> int:
        return one.fre_type | one.mask << 4 | one.key_b << 5 | (one.signal << 7 if self.version == 3 else 0)

    def _rows(self) -> tuple[bytes, dict[str, int], list[int]]:
        mark = "<" if self.order == "little" else ">"
        out = bytearray()
        labels: dict[str, int] = {}
        offsets: list[int] = []
        for number, one in enumerate(self.functions):
            if one.shares is not None:
                offsets.append(offsets[one.shares])
                continue
            out += one.before
            offsets.append(len(out))
            if self.version == 3:
                values = {
                    "num_fres": len(one.rows),
                    "info": self._info(one),
                    "info2": int(one.flex),
                    "rep_size": one.rep_size,
                    **one.overrides,
                }
                out += self._pack(_ATTRIBUTE, values, f"attribute{number}.", len(out), labels)
            for position, entry in enumerate(one.rows):
                labels[f"fre{number}.{position}"] = len(out)
                out += struct.pack(mark + "BHI"[min(one.fre_type, 2)], entry.start)
                labels[f"fre{number}.{position}.info"] = len(out)
                out.append(entry.info)
                bits = 8 * (1, 2, 4, 1)[entry.info >> 5 & 3]
                for word in entry.words:
                    out += struct.pack(mark + {8: "B", 16: "H", 32: "I"}[bits], word % (1 << bits))
        return bytes(out), labels, offsets

    def _index(self, fde_start: int, offsets: list[int], labels: dict[str, int]) -> bytes:
        out = b""
        for number, one in enumerate(self.functions):
            position = fde_start + len(out)
            base = self.address + (position if self.flags & PCREL else 0)
            bits = 64 if self.version == 3 else 32
            start = one.raw
            if start is None:
                start = (one.start - base + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            values = {
                "start": start,
                "size": one.size,
                "fre_offset": offsets[number],
                "num_fres": len(one.rows),
                "info": self._info(one),
                "rep_size": one.rep_size,
                "padding": 0,
                **one.overrides,
            }
            out += self._pack(_FDE[self.version], values, f"fde{number}.", position, labels)
        return out

    def bytes(self) -> bytes:
        return self.assemble()[0]
