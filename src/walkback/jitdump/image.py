"""A dump as one ELF file, in which each piece of code has an address of its own, whatever was where it was before.

What stands behind a piece of code in its `.eh_frame` counts from there, so it keeps its place. All of them together are
one `.eh_frame`, in which each piece of code is hidden in an entry that nothing refers to.
"""

from __future__ import annotations

import struct

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, U64
from walkback.elf.made import BEGIN, function_symbols, made_file
from walkback.elf.write import align
from walkback.jitdump.decoding import JitDump
from walkback.jitdump.layout import CODE_TO_FRAMES

_HIDING = 16
"""Bytes before the code of the entry that hides it."""


def image_of(dump: JitDump, machine: Machine) -> tuple[bytes, U64]:
    """The file, for the machine that the code ran on, and where each piece of code is in it.

    What the dump says of the machine is not read: that of Python 3.13.0 says nothing.
    """
    parts: list[bytes] = []
    starts = []
    place = BEGIN
    hiding = struct.Struct(dump.prefix + "IIB7x")
    for code, end, frames, frames_end in np.hstack((dump.loads.code, dump.loads.frames)).tolist():
        room = align(end - code, CODE_TO_FRAMES)
        entries = _entries(dump, frames, frames_end)
        starts.append(place + _HIDING)
        # The identifier of a CIE, and a version that nobody has.
        parts += (hiding.pack(_HIDING - 4 + room, 0, 0), dump.data[code:end], bytes(room - (end - code)), entries)
        place += _HIDING + room + len(entries)
    start = np.array(starts, np.uint64)
    names, name_offset = _names(dump)
    symbols = function_symbols(dump.byteorder, name_offset, start, dump.size())
    code_and_entries = b"".join(parts)
    return made_file(machine.elf_machine, dump.byteorder, code_and_entries, symbols, names, described=True), start


def _entries(dump: JitDump, place: int, end: int) -> bytes:
    """The entries of an `.eh_frame`, as far as they are whole and leave what follows aligned."""
    begin = place
    while place + 8 <= end:
        (length,) = struct.unpack_from(dump.prefix + "I", dump.data, place)
        if not length or length % 4 or length > end - place - 4:
            break
        place += 4 + length
    return dump.data[begin:place]


def _names(dump: JitDump) -> tuple[bytes, I64]:
    """A string table, and where in it the name of each piece is."""
    names = [b"", *(dump.data[begin:end] for begin, end in dump.loads.name.tolist())]
    ends = np.cumsum([len(name) + 1 for name in names])
    return b"\0".join(names) + b"\0", ends[:-1]
