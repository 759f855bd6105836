"""Entries to the bytes of `.orc_unwind` and `.orc_unwind_ip`."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U8, U16
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError
from walkback.orc.decoding import OrcTable
from walkback.orc.layout import BP_SHIFT, ENTRY, PLACE, SHAPES, TYPE_SHIFT, Base, Kind

_NONE = 0xFFFF


@dataclass(frozen=True, slots=True)
class Encoded:
    """The contents of the two sections."""

    entries: bytes
    places: bytes
    """In an object zeros, for relocations to fill: each field's target is the place of its entry."""


def encode(table: OrcTable, *, address: int = 0) -> Encoded:
    """Write the entries in their order; `address` is that of `.orc_unwind_ip`.

    >>> [source] = walkback.orc.read("module.ko")
    >>> walkback.orc.encode(source.entries).entries == bytes(source.data)
    True
    """
    shape = SHAPES[table.layout]
    records = np.zeros(len(table), ENTRY)
    records["sp_offset"], records["bp_offset"] = table.sp_offset, table.bp_offset
    bits = _numbers(table.sp_base, shape.bases) | _numbers(table.bp_base, shape.bases) << np.uint16(BP_SHIFT)
    kind = table.kind
    if shape.end:
        bits |= np.where(kind == Kind.END_OF_STACK, np.uint16(shape.end), np.uint16(0))
        kind = np.where(kind <= Kind.END_OF_STACK, np.uint8(Kind.CALL), kind)
    bits |= _numbers(kind, shape.kinds) << np.uint16(TYPE_SHIFT)
    records["bits"] = bits | np.where(table.signal, np.uint16(shape.signal), np.uint16(0))
    return Encoded(records.tobytes(), _places(table, address))


def _numbers(values: U8, words: tuple[Base, ...] | tuple[Kind, ...]) -> U16:
    """The number of each register or kind in the layout."""
    numbers = np.full(256, _NONE, np.uint16)
    numbers[list(words)] = np.arange(len(words))
    found: U16 = numbers[values]
    if (found == _NONE).any():
        number = int(np.argmax(found == _NONE))
        word = type(words[0])(int(values[number])).name
        raise InexpressibleError(f"entry {number}: this layout has no number for {word}")
    return found


def _places(table: OrcTable, address: int) -> bytes:
    """The distance from each field to the code."""
    if (table.section >= 0).any():
        return bytes(len(table) * PLACE.itemsize)
    fields = np.arange(len(table), dtype=np.uint64) * np.uint64(PLACE.itemsize) + np.uint64(address)
    away = (table.address - fields).astype(np.int64)
    limits = np.iinfo(PLACE)
    far = (away < limits.min) | (away > limits.max)
    if far.any():
        number = int(np.argmax(far))
        raise InexpressibleError(f"entry {number}: {int(table.address[number]):#x} is too far away from {address:#x}")
    return away.astype(PLACE).tobytes()
