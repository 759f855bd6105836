"""Notes, made by hand."""

import struct


def note(name: bytes, kind: int, desc: bytes, *, order="little", align=4, sizes=None) -> bytes:
    name_size, desc_size = sizes or (len(name), len(desc))
    data = struct.pack(("<" if order == "little" else ">") + "III", name_size, desc_size, kind) + name
    data += bytes(-len(data) % align) + desc
    return data + bytes(-len(data) % align)
