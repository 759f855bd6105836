"""Notes, made by hand."""

from __future__ import annotations

import struct

from walkback.base.arch import ByteOrder


def note(
    name: bytes,
    kind: int,
    desc: bytes,
    *,
    order: ByteOrder = "little",
    align: int = 4,
    sizes: tuple[int, int] | None = None,
) -> bytes:
    name_size, desc_size = sizes or (len(name), len(desc))
    data = struct.pack(("<" if order == "little" else ">") + "III", name_size, desc_size, kind) + name
    data += bytes(-len(data) % align) + desc
    return data + bytes(-len(data) % align)
