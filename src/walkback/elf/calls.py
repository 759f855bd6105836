"""What stands at an address: the return from a call, seen by the instruction in front of it; padding; some bytes.

Instructions are not decoded from a function's start: what stands in front of an address is taken for a call if it has
the form of one, and leads to where a call can lead. Calls through registers are not looked for on AMD64 and s390x: two
bytes are too few to know.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from walkback.base.arrays import are_among, distinct
from walkback.elf import layout
from walkback.elf.file import ElfFile

Addresses = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

Indices = npt.NDArray[np.int64]

_LONGEST = 6
_UNITS = {layout.EM_X86_64: 2, layout.EM_AARCH64: 4, layout.EM_S390: 2}
_PADDING = {
    # nop, int3, zeros, and the longer forms of nop with their prefixes
    layout.EM_X86_64: (b"\x90", b"\xcc", b"\0", b"\x0f\x1f", b"f\x90", b"f\x0f", b"ff", b"f.", b"."),
    layout.EM_AARCH64: (bytes.fromhex("1f2003d5"), bytes(4)),
    layout.EM_S390: (b"\x07\x00", b"\x07\x07", b"\x47\x00", b"\xc0\x04", bytes(2)),
}
"""How gaps between functions begin, in the order of the file's bytes."""


def after_call(elf: ElfFile, addresses: Addresses, functions: Addresses) -> Bools:
    """Which addresses of a linked file directly follow a call instruction; `functions` are where functions begin."""
    found = np.zeros(len(addresses), np.bool_)
    known = _Targets(elf, functions)
    for inside, before in _code_at(elf, addresses, -_LONGEST, _LONGEST):
        found[inside] |= _is_call(elf.machine, before, addresses[inside], known)
    return found


def has_bytes(elf: ElfFile, addresses: Addresses, code: bytes) -> Bools:
    """At which addresses of a linked file code has these bytes."""
    found = np.zeros(len(addresses), np.bool_)
    wanted = np.frombuffer(code, np.uint8)
    for inside, here in _code_at(elf, addresses, 0, len(code)):
        found[inside] |= (here == wanted).all(axis=1)
    return found


def is_padding(elf: ElfFile, addresses: Addresses) -> Bools:
    """At which addresses of a linked file code has the bytes that assemblers and linkers fill gaps with."""
    found = np.zeros(len(addresses), np.bool_)
    for inside, here in _code_at(elf, addresses, 0, _UNITS[elf.machine]):
        fill = [np.frombuffer(one, np.uint8) for one in _PADDING[elf.machine]]
        found[inside] |= np.logical_or.reduce([(here[:, : len(one)] == one).all(axis=1) for one in fill])
    return found


def _code_at(elf: ElfFile, addresses: Addresses, first: int, size: int) -> Iterator[tuple[Indices, Bytes]]:
    """For each executable segment, the addresses with `size` bytes in it from `address + first` on, and those bytes."""
    segments = elf.segments
    code = (segments["type"] == layout.PT_LOAD) & ((segments["flags"] & layout.PF_X) != 0)
    for index in np.flatnonzero(code).tolist():
        data = np.frombuffer(elf.segment_data(index), np.uint8)
        place = (addresses - segments["vaddr"][index]).view(np.int64)
        inside = np.flatnonzero((place >= -first) & (place <= len(data) - first - size))
        yield inside, data[place[inside][:, None] + np.arange(first, first + size)]


class _Targets:
    """Where calls can lead."""

    def __init__(self, elf: ElfFile, functions: Addresses) -> None:
        self._functions = distinct(functions)
        names = np.array([name.startswith(".plt") for name in elf.section_names()], np.bool_)
        self._linkage = elf.sections[names]
        loads = elf.segments[elf.segments["type"] == layout.PT_LOAD]
        self._data = loads[(loads["flags"] & layout.PF_X) == 0]

    def functions(self, addresses: Addresses) -> Bools:
        """Which are the start of a function, or in a procedure linkage table."""
        linkage = _within(addresses, self._linkage["addr"], self._linkage["size"])
        return linkage | are_among(addresses, self._functions)

    def words(self, addresses: Addresses) -> Bools:
        """Which are words of data, such as those of the global offset table."""
        aligned: Bools = addresses % np.uint64(8) == 0
        return aligned & _within(addresses, self._data["vaddr"], self._data["memsz"])


def _within(addresses: Addresses, starts: Addresses, sizes: Addresses) -> Bools:
    inside = np.zeros(len(addresses), np.bool_)
    for start, size in zip(starts, sizes, strict=True):
        inside |= addresses - start < size
    return inside


def _is_call(machine: int, before: Bytes, end: Addresses, known: _Targets) -> Bools:
    """Whether the bytes in front of each address are a call."""
    order = ">" if machine == layout.EM_S390 else "<"
    word = np.ascontiguousarray(before[:, -4:]).view(f"{order}u4")[:, 0]
    away = word.view(f"{order}i4").astype(np.int64)
    found: Bools
    if machine == layout.EM_X86_64:
        target = end + away.view(np.uint64)
        found = (before[:, -5] == 0xE8) & known.functions(target)
        found |= (before[:, -6] == 0xFF) & (before[:, -5] == 0x15) & known.words(target)
    elif machine == layout.EM_AARCH64:
        found = (word & 0xFC000000 == 0x94000000) | (word & 0xFFFFFC1F == 0xD63F0000)
    else:
        target = end - np.uint64(6) + (2 * away).view(np.uint64)
        found = (before[:, -6] == 0xC0) & (before[:, -5] == 0xE5) & known.functions(target)
    return found
