"""`.eh_frame_hdr`: where `.eh_frame` is, and a table of its FDEs.

Linux Standard Base, "Exception Frame Header".
"""

from __future__ import annotations

import struct
from typing import Literal

import numpy as np

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

_TABLE = 12
"""Where the table begins, after version, encodings, pointer and count."""


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


def last_entry(header: memoryview, address: int, byteorder: Literal["little", "big"]) -> int:
    """The address of the FDE that stands last in `.eh_frame`, by the table of all; -1 if there is no table as usual."""
    order = "<" if byteorder == "little" else ">"
    usual = (dw.DW_EH_PE_PCREL | dw.DW_EH_PE_SDATA4, dw.DW_EH_PE_UDATA4, dw.DW_EH_PE_DATAREL | dw.DW_EH_PE_SDATA4)
    if len(header) < _TABLE or tuple(header[1:4]) != usual:
        return -1
    (count,) = struct.unpack_from(order + "I", header, 8)
    count = min(count, (len(header) - _TABLE) // 8)
    entries = np.frombuffer(header, order + "i4", 2 * count, _TABLE)
    return address + int(entries[1::2].max()) if count else -1
