"""`.eh_frame_hdr`, which says where `.eh_frame` is (Linux Standard Base, "Exception Frame Header")."""

from __future__ import annotations

import struct
from typing import Literal

from walkback.dwarf import layout as dw

_FORMATS = {
    dw.DW_EH_PE_ABSPTR: "Q",
    dw.DW_EH_PE_UDATA2: "H",
    dw.DW_EH_PE_UDATA4: "I",
    dw.DW_EH_PE_UDATA8: "Q",
    dw.DW_EH_PE_SDATA2: "h",
    dw.DW_EH_PE_SDATA4: "i",
    dw.DW_EH_PE_SDATA8: "q",
}


def frame_place(header: memoryview, address: int, byteorder: Literal["little", "big"]) -> int | None:
    """The address of `.eh_frame`; None if the header does not say it in a way that any producer writes."""
    if len(header) < 4 or header[0] != 1:
        return None
    encoding = header[1]
    kind, base = _FORMATS.get(encoding & 0x0F), encoding & 0xF0
    if kind is None or base not in {0, dw.DW_EH_PE_PCREL, dw.DW_EH_PE_DATAREL}:
        return None
    shape = struct.Struct(("<" if byteorder == "little" else ">") + kind)
    if len(header) < 4 + shape.size:
        return None
    (value,) = shape.unpack_from(header, 4)
    start = {0: 0, dw.DW_EH_PE_PCREL: address + 4, dw.DW_EH_PE_DATAREL: address}[base]
    return int(value + start) % 2**64
