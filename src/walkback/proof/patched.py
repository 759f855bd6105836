"""Where control goes in the Linux kernel that its instructions do not show; the kernel's own tables say it.

When it runs, the kernel puts jumps in the place of instructions, or instructions in the place of jumps: `__jump_table`
has its static branches, `.altinstructions` what depends on the processor. `__ex_table` says where it goes on after an
access to memory that fails, and `__bug_table` which traps are warnings, behind which it goes on. Modules have these
sections; in the kernel itself the first is a part of another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.arch import AARCH64, AMD64, MACHINES, ByteOrder
from walkback.base.arrays import I64, U8, U64, distinct_rows
from walkback.base.errors import WalkbackError
from walkback.code.machines import SLACK
from walkback.elf import ElfFile, layout
from walkback.proof._scan import Scan, mark_targets
from walkback.proof.image import Image
from walkback.proof.ranges import Ranges, range_at
from walkback.proof.relocate import relocate
from walkback.proof.values import Way

_BRANCHES, _ALTERNATIVES = "__jump_table", ".altinstructions"
_FAULTS, _TRAPS = "__ex_table", "__bug_table"
_ENDS = "__start___jump_table", "__stop___jump_table"
"""The symbols around the first one in a kernel."""
_SIZES = {_BRANCHES: (16,), _ALTERNATIVES: (14, 12, 13), _FAULTS: (12,), _TRAPS: (12, 16)}
"""Of entries, in bytes. Alternatives of AMD64 have 14 since Linux 6.3, and had 13 before 5.18."""
_LENGTH_AT = {14: 12, 12: 10, 13: 10}
"""The byte that has the length of the original code; the next one has that of the replacement."""
_WARNS = 1
"""In the last field of a trap: it is a warning."""
_FIELD = 4
"""Bytes of a field with a place. Places are counted from their fields; an entry begins with two of them."""
_LONGEST = 5
"""Bytes of a jump."""


def patched_ways(elf: ElfFile, image: Image) -> U64:
    """Rows of the address of an instruction, rising, and of a place where control may go on without executing it."""
    found = [np.zeros((0, 2), np.uint64)]
    for name in _SIZES:
        try:
            for address, data in _tables(elf, image, name):
                found += _ways(image, name, address, np.frombuffer(data, np.uint8))
        except WalkbackError:  # a table that is damaged says nothing
            continue
    rows = distinct_rows(np.concatenate(found))
    one = np.ones(len(rows), np.int64)
    return rows[(image.places(rows[:, 0], one) >= 0) & (image.places(rows[:, 1], one) >= 0)]


def mark_ways(seen: Scan, image: Image, rows: U64) -> None:
    """Note in a first look where these rows lead, and that all of their instructions is to be looked at."""
    mark_targets(seen, image, rows[:, 1])
    seen.brief[image.places(rows[:, 0], np.ones(len(rows), np.int64)) >> 1] = 0


def ways_between(ranges: Ranges, rows: U64) -> U64:
    """Those of the rows that lead out of a range, as rows of it, an address, and a `Way`."""
    source = range_at(ranges, rows[:, 0])
    leaves = (source >= 0) & (source != range_at(ranges, rows[:, 1]))
    jump = np.full(np.count_nonzero(leaves), Way.JUMP, np.uint64)
    return np.stack((source[leaves].astype(np.uint64), rows[leaves, 1], jump), axis=1)


def _tables(elf: ElfFile, image: Image, name: str) -> Iterator[tuple[int, memoryview]]:
    """The tables of a name, each with its address in the image."""
    for number in elf.sections_named(name):
        if elf.sections["type"][number] == layout.SHT_NOBITS:
            continue
        if elf.is_relocatable:
            yield int(image.base[number]), relocate(elf, number, image.base)
        else:
            yield int(elf.sections["addr"][number]), elf.section_data(number)
    if name == _BRANCHES and not elf.is_relocatable and elf.sections_named(_FAULTS):
        for number in elf.sections_of_type(layout.SHT_SYMTAB):
            symbols = elf.symbols(number)
            rows = elf.find_string(int(elf.sections["link"][number]), symbols["name_offset"], *_ENDS)
            if len(rows) == len(_ENDS):
                start, end = sorted(symbols["value"][rows].tolist())
                yield start, elf.mapped_data(start, end - start)


def _ways(image: Image, name: str, address: int, data: U8) -> Iterator[U64]:
    """Rows that a table adds, if its entries have one of the sizes that are known."""
    for size in _SIZES[name]:
        entries = data[: len(data) // size * size].reshape(-1, size)
        first = _places(image, entries, address, 0)
        if len(data) % size == 0 and (image.places(first, np.ones(len(first), np.int64)) >= 0).all():
            yield from _ways_of(image, name, entries, first, _places(image, entries, address, _FIELD))
            return


def _ways_of(image: Image, name: str, entries: U8, first: U64, second: U64) -> Iterator[U64]:
    """Those of entries, whose first two fields have these addresses."""
    if name in {_BRANCHES, _FAULTS}:
        yield np.stack((first, second), axis=1)
    if name == _BRANCHES:
        length, _ = _jumps(image, first)
        yield np.stack((first, first + length.astype(np.uint64)), axis=1)[length > 0]
    if name == _TRAPS:
        flags = _number(entries[:, -2:], image.byteorder)
        behind = first + _traps(image, first).astype(np.uint64)
        yield np.stack((first, behind), axis=1)[(flags & _WARNS != 0) & (behind > first)]
    if name == _ALTERNATIVES:
        at = _LENGTH_AT[entries.shape[1]]
        jumps, (replaces, target) = _jumps(image, first)[0] > 0, _jumps(image, second)
        yield np.stack((first, first + entries[:, at]), axis=1)[jumps]
        yield np.stack((first, target), axis=1)[(replaces > 0) & (entries[:, at + 1] > 0)]


def _places(image: Image, entries: U8, address: int, field: int) -> U64:
    """The addresses that a field of each entry has."""
    number = _number(entries[:, field : field + _FIELD], image.byteorder)
    own = np.arange(len(entries), dtype=np.int64) * entries.shape[1] + field
    found: U64 = (number + own).astype(np.uint64) + np.uint64(address)
    return found


def _jumps(image: Image, address: U64) -> tuple[I64, U64]:
    """The length of the jump that is at each address, 0 for no jump, and where it leads."""
    code, machine = _code(image, address), MACHINES[image.machine_number]
    length, distance = np.zeros((2, len(address)), np.int64)
    if machine is AMD64:
        near, short = code[:, 0] == 0xE9, code[:, 0] == 0xEB
        length = np.where(near, 5, np.where(short, 2, 0))
        distance = np.where(near, _number(code[:, 1:5]), _number(code[:, 1:2])) + length
    elif machine is AARCH64:
        word = _number(code[:, :4])
        length = np.where((word >> 26) & 0x3F == 5, 4, 0)
        distance = (word << 38) >> 36
    return length, address + distance.astype(np.uint64)


def _traps(image: Image, address: U64) -> I64:
    """The length of the trap that is at each address: `ud2`, or any of AArch64; 0 for others."""
    if MACHINES[image.machine_number] is AMD64:
        code = _code(image, address)
        return np.where((code[:, 0] == 0x0F) & (code[:, 1] == 0x0B), 2, 0)
    return np.full(len(address), 4 if MACHINES[image.machine_number] is AARCH64 else 0, np.int64)


def _code(image: Image, address: U64) -> U8:
    """The first bytes of the code at each address; zeros where there is none."""
    place = image.places(address, np.ones(len(address), np.int64))
    found: U8 = image.data[np.where(place < 0, len(image.data) - SLACK, place)[:, None] + np.arange(_LONGEST)]
    return found


def _number(octets: U8, byteorder: ByteOrder = "little") -> I64:
    """The number of each row."""
    order = "<" if byteorder == "little" else ">"
    return np.ascontiguousarray(octets).view(f"{order}i{octets.shape[1]}")[:, 0].astype(np.int64)
