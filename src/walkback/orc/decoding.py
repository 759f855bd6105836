"""Bytes of `.orc_unwind` and `.orc_unwind_ip` to entries."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I16, I32, U8, U16, U64, Bools
from walkback.base.columns import Columnar, NamedColumns
from walkback.base.dataclass import dataclass
from walkback.base.errors import OrcError
from walkback.orc.layout import (
    BP_SHIFT,
    ENTRY,
    PLACE,
    REGISTER_MASK,
    SHAPES,
    TYPE_SHIFT,
    Base,
    EntryShape,
    Kind,
    Layout,
)

Buffer = bytes | bytearray | memoryview

_NONE = 255
"""A number that stands for nothing in a layout."""


@dataclass(slots=True, repr=False)
class OrcTable(Columnar):
    """The entries in their order; each holds up to the next address of its section.

    >>> [source] = walkback.orc.read("module.ko")
    >>> len(source.entries), source.entries.layout.name
    (4, 'LINUX_6_4')
    """

    layout: Layout
    section: I32
    """In objects the section of the code; -1 where addresses are absolute."""
    address: U64
    sp_offset: I16
    bp_offset: I16
    sp_base: U8
    """What the CFA counts from, or for `REGS` where the registers are; a `Base`."""
    bp_base: U8
    """What the place of the caller's frame pointer counts from; a `Base`."""
    kind: U8
    """A `Kind`."""
    signal: Bools

    def __len__(self) -> int:
        return len(self.address)

    def __repr__(self) -> str:
        return f"OrcTable(layout={self.layout.name}, entries={len(self)})"

    def columns(self) -> NamedColumns:
        """A row for each entry."""
        found = NamedColumns(address=self.address)
        if (self.section >= 0).any():
            found["section"] = self.section
        for name in ("sp_offset", "bp_offset"):
            found[name] = getattr(self, name)
        bases, kinds = _words(Base), _words(Kind)
        found["sp_base"], found["bp_base"] = bases[self.sp_base], bases[self.bp_base]
        found["kind"], found["signal"] = kinds[self.kind], self.signal
        return found


def _words(names: type[Base | Kind]) -> np.ndarray:
    return np.array([one.name.lower() for one in names], object)


def decode(
    entries: Buffer, places: Buffer, layout: Layout, *, address: int = 0, section: I32 | None = None
) -> OrcTable:
    """Read the two sections; `address` is that of `places`, from whose fields the distances count.

    In an object `section` is the section of each entry's code, and the fields are relocated.

    >>> [source] = walkback.orc.read("module.ko")
    >>> table = walkback.orc.decode(source.data, source.places, source.layout, section=source.entries.section)
    >>> table.kind.tolist()
    [2, 2, 2, 0]
    """
    if len(entries) % ENTRY.itemsize:
        message = f"{len(entries)} bytes are no whole number of entries, which have {ENTRY.itemsize} bytes"
        raise OrcError(message, offset=len(entries) // ENTRY.itemsize * ENTRY.itemsize, rule="orc-size")
    records = np.frombuffer(entries, ENTRY)
    if len(places) != len(records) * PLACE.itemsize:
        message = f"there are {len(records)} entries and {len(places)} bytes for their places, which have 4 bytes each"
        raise OrcError(message, offset=0, rule="orc-size")
    shape = SHAPES[layout]
    bits: U16 = records["bits"].astype(np.uint16)
    _refuse(bits & np.uint16(~shape.used & 0xFFFF) != 0, "sets bits that have no meaning", "orc-bits")
    sp_base = _looked_up(shape.bases)[bits & REGISTER_MASK]
    bp_base = _looked_up(shape.bases)[bits >> BP_SHIFT & REGISTER_MASK]
    _refuse((sp_base == _NONE) | (bp_base == _NONE), "names a register that has no meaning", "orc-register")
    kind = _kinds(shape, bits, sp_base)
    fields = np.arange(len(records), dtype=np.uint64) * np.uint64(PLACE.itemsize) + np.uint64(address)
    return OrcTable(
        layout=layout,
        section=np.full(len(records), -1, np.int32) if section is None else section,
        address=fields + np.frombuffer(places, PLACE).astype(np.int64).astype(np.uint64),
        sp_offset=records["sp_offset"].astype(np.int16),
        bp_offset=records["bp_offset"].astype(np.int16),
        sp_base=sp_base,
        bp_base=bp_base,
        kind=kind,
        signal=(bits & np.uint16(shape.signal)) != 0,
    )


def _looked_up(words: tuple[Base, ...] | tuple[Kind, ...]) -> U8:
    """What each number stands for."""
    found = np.full(REGISTER_MASK + 1, _NONE, np.uint8)
    found[: len(words)] = words
    return found


def _kinds(shape: EntryShape, bits: U16, sp_base: U8) -> U8:
    """The kind of each entry."""
    number = bits >> TYPE_SHIFT & np.uint16((1 << shape.kind_bits) - 1)
    kind: U8 = _looked_up(shape.kinds)[number]
    _refuse(kind == _NONE, "has a type that has no meaning", "orc-type")
    if shape.end:
        undefined = sp_base == Base.UNDEFINED
        ends = (bits & np.uint16(shape.end)) != 0
        _refuse(ends & ~undefined, "is an outermost frame and has a stack pointer", "orc-type")
        _refuse(undefined & (kind != Kind.CALL), "has a type and no stack pointer", "orc-type")
        kind[undefined] = Kind.UNDEFINED
        kind[ends] = Kind.END_OF_STACK
    return kind


def _refuse(wrong: Bools, problem: str, rule: str) -> None:
    """Raise an error for the first entry that is wrong."""
    if wrong.any():
        number = int(np.argmax(wrong))
        raise OrcError(f"entry {number} {problem}", offset=number * ENTRY.itemsize, rule=rule)
