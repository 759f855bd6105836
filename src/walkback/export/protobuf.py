"""Writing protobuf messages: fields with their numbers, as the encoding's documentation has them."""

from __future__ import annotations

from collections.abc import Iterable

_VARINT = 0
_BYTES = 2
_WORD = 2**64


def varint(value: int) -> bytes:
    """A whole number, seven bits a byte; a negative one as its 64 bits."""
    if 0 <= value < 0x80:
        return value.to_bytes(1, "little")
    value %= _WORD
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A field with a number; nothing for 0, which readers take for granted."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def message(field: int, contents: bytes) -> bytes:
    """A field with a message, a string, or packed numbers."""
    return varint(field << 3 | _BYTES) + varint(len(contents)) + contents


def packed(field: int, values: Iterable[int]) -> bytes:
    """A field with many numbers."""
    return message(field, b"".join(map(varint, values)))
