"""Where a grafted section and the program headers come to stand in a linked file.

Three ways, the best first:

in place    the program headers grow where they are, what stands behind them gives way, and a new segment behind all
            others takes it up together with the section. The section goes first: LLVM's tools before 19 take one
            segment for a part of another that begins in the same place, and then move the new one with `.interp`;
in front    a program at fixed addresses begins some pages earlier, at a lower address: ELF header, program headers
            and the section stand there, and the former file follows whole. The first segment reaches down to them
            and ends where it did, since elfutils knows by its end whether a debug file fits;
behind      the program headers move into the new segment at the end. Its place in the file then has to be as far
            from its address as in the first segment, because QEMU, and Linux before 5.18, give programs an address
            that they reckon from the first segment. GNU strip and objcopy break such files.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import Records
from walkback.base.dataclass import dataclass
from walkback.base.errors import GraftError
from walkback.elf import ElfFile, layout
from walkback.elf.write import HEADER_SIZE, SECTION_SIZE, SEGMENT_SIZE, Headers, align
from walkback.graft.numbering import check_apart
from walkback.graft.record import SECTION_ALIGNMENT
from walkback.graft.room import FileBlock, Room, alignment_of, find_room

_SMALLEST_PAGE = 0x1000
_LARGEST_PAGE = 1 << 30
_LOWEST_ADDRESS = 0x10000
"""Linux lets nobody map anything below (vm.mmap_min_addr)."""
_ADDRESS_END = 1 << 47
_LARGEST_DISTANCE = 1 << 24
_MOST_PADDING = 1 << 24
"""Zeros behind everything are padding; more than these are data, whatever they are."""
_LARGEST_HOLE = 1 << 24
"""More zeros than this are not put into a file to keep file offsets and addresses in step."""


@dataclass(frozen=True, slots=True)
class Move:
    """A range of the former file that stands elsewhere in the new one."""

    start: int
    end: int
    offset: int
    """Its new place in the file."""
    address: int
    address_delta: int
    away: bool
    """To the new segment."""


@dataclass(frozen=True, slots=True)
class GraftPlan:
    """What will stand where; offsets are those of the new file, except for the ranges that move."""

    shift: int
    """How many bytes come before the former file."""
    segments_offset: int
    segments_address: int
    moves: tuple[Move, ...]
    load: tuple[int, int, int, int] | None
    """Offset, address, size and alignment of the new segment; None where the first one grows instead."""
    offset: int
    address: int
    notes: tuple[str, ...]
    padding: tuple[int, int, int] | None = None
    """Offset, address and size of a section of nothing."""


def plan_graft(elf: ElfFile, headers: Headers, size: int) -> GraftPlan:
    """The best way there is for a section of this size; the file has no such section."""
    loads = check_layout(elf)
    room = find_room(elf, headers, _count(elf))
    if room is not None:
        return _in_place(elf, headers, loads, room, size)
    return _in_front(elf, headers, loads, size) or _behind(elf, headers, loads, size)


def check_layout(elf: ElfFile) -> Records:
    """The PT_LOAD segments; a file whose segments cannot be understood is refused."""
    loads: Records = elf.segments[elf.segments["type"] == layout.PT_LOAD]
    if not len(loads):
        raise GraftError("this file has no segments to load: nothing could find the section at run time")
    end = 0
    for load in loads:
        _, _, offset, address, _, in_file, in_memory, page = load.item()
        if page & (page - 1) or page > _LARGEST_PAGE or (page and (offset - address) % page):
            raise GraftError("the alignment of a PT_LOAD segment contradicts its place")
        if address < end or address + in_memory > _ADDRESS_END or in_file > in_memory:
            raise GraftError("the PT_LOAD segments are not in the order of their addresses, or overlap")
        if offset + in_file > len(elf.data):
            raise GraftError("a PT_LOAD segment reaches beyond the end of the file")
        end = address + in_memory
    missing = elf.sections["type"] == layout.SHT_NOBITS
    if (missing & (elf.sections["flags"] & np.uint64(layout.SHF_EXECINSTR) != 0)).any():
        raise GraftError("this is a separate debug file: the code is in another file")
    return loads


def _count(elf: ElfFile) -> int:
    """How many program headers there will be: two more, and the unused ones go."""
    return int(np.count_nonzero(elf.segments["type"] != layout.PT_NULL)) + 2


def _page(loads: Records) -> int:
    alignments: list[int] = loads["align"].tolist()
    return max(_SMALLEST_PAGE, *alignments)


def _end_of_memory(loads: Records) -> int:
    return max(int(load["vaddr"]) + int(load["memsz"]) for load in loads)


def _base(loads: Records) -> int:
    """Where the beginning of the file would be in memory."""
    return int(loads["vaddr"][0]) - int(loads["offset"][0])


def _in_place(elf: ElfFile, headers: Headers, loads: Records, room: Room, size: int) -> GraftPlan:
    page = _page(loads)
    start = align(len(elf.data), 64)
    address = align(_end_of_memory(loads) + _distance(elf), page) + start % page
    moves, position = [], start + size
    for block in room.away:
        position = align(position, alignment_of(elf, block))
        moves.append(_move(elf, block, position, position + address - start, away=True))
        position += block.end - block.start
    moves += [_move(elf, block, place, _address(elf, block, place), away=False) for block, place in room.up]
    notes = [_about_moved(elf, room)] if moves else []
    padding = _padding(elf, loads, room)
    if padding is not None:
        left_over = f"a section .pad takes the {padding[2]:#x} bytes that are left over, for patchelf up to 0.18"
        notes.append(f"{left_over}; GNU strip between two runs of that patchelf would break the program")
    return GraftPlan(
        shift=0,
        segments_offset=headers.segments_offset,
        segments_address=_address_of(loads, headers.segments_offset),
        moves=tuple(moves),
        load=(start, address, position - start, page),
        offset=start,
        address=address,
        notes=(*notes, *_about_end(elf, headers)),
        padding=padding,
    )


def _padding(elf: ElfFile, loads: Records, room: Room) -> tuple[int, int, int] | None:
    """A section for the room that is left over, where patchelf would put what the loader has to write.

    In programs at fixed addresses patchelf up to 0.18 moves `.dynamic` to the front, which is only read, if it finds
    the room there; otherwise it makes a segment for it, which can be written. It looks for room as far as `.dynstr`
    or such a section. The segment should not share a page with what follows, so the section begins with a page where
    the room before that is too small for the two sections.
    """
    dynamic = elf.segments["filesz"][elf.segments["type"] == layout.PT_DYNAMIC]
    start, end = room.free
    if elf.type != layout.ET_EXEC or not len(dynamic) or start == end:
        return None
    strings: list[int] = elf.sections["link"][elf.sections_of_type(layout.SHT_DYNSYM)].tolist()
    moved = any(index in strings for block in room.away for index in block.sections)
    if not moved and end - start < dynamic.min():
        return None
    least = sum(int(elf.sections["size"][index]) for index in strings if index < len(elf.sections)) + int(dynamic.min())
    page = align(start, _SMALLEST_PAGE)
    if page < min(end, start + least):
        start = page
    return start, _address_of(loads, start), end - start


def _distance(elf: ElfFile) -> int:
    """How far the new segment keeps away from the data before it: as far as the largest dynamic symbol is long.

    elflint adds the size of a relocation's symbol to the address that is relocated, and complains when it then comes
    upon a segment that is only read. Addresses cost nothing.
    """
    tables = elf.sections_of_type(layout.SHT_DYNSYM)
    check_apart(elf, tables)
    sizes = [int(elf.symbols(index)["size"].max(initial=0)) for index in tables]
    return min(max(sizes, default=0), _LARGEST_DISTANCE)


def _move(elf: ElfFile, block: FileBlock, offset: int, address: int, *, away: bool) -> Move:
    return Move(block.start, block.end, offset, address, address - _address(elf, block, block.start), away)


def _address(elf: ElfFile, block: FileBlock, offset: int) -> int:
    """The address of a place in the file, reckoned from where a block is loaded now."""
    section = elf.sections[block.sections[0]]
    return offset + int(section["addr"]) - int(section["offset"])


def _about_moved(elf: ElfFile, room: Room) -> str:
    away = [elf.section_name(index) for block in room.away for index in block.sections]
    up = [elf.section_name(index) for block, _ in room.up for index in block.sections]
    moves = [f"{_list(names)} moved {where}" for names, where in ((away, "to the new segment"), (up, "up")) if names]
    return f"{' and '.join(moves)}, to make room for the program headers"


def _list(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def _address_of(loads: Records, offset: int) -> int:
    for load in loads:
        if int(load["offset"]) <= offset < int(load["offset"]) + int(load["filesz"]):
            return offset - int(load["offset"]) + int(load["vaddr"])
    return 0


def _in_front(elf: ElfFile, headers: Headers, loads: Records, size: int) -> GraftPlan | None:
    """Only where nothing is reckoned from the beginning of the file: not for data behind it."""
    page = _page(loads)
    offset = align(HEADER_SIZE + SEGMENT_SIZE * (_count(elf) - 1), SECTION_ALIGNMENT)
    shift = align(offset + size, page)
    start = int(loads["vaddr"][0]) - shift
    if elf.type != layout.ET_EXEC or loads["offset"][0] or start < _LOWEST_ADDRESS or start % page:
        return None
    if loads["flags"][0] & layout.PF_W:
        return None
    if appended(elf, headers) or shift - offset - size > _LARGEST_HOLE:
        return None
    why = "the program headers have no room to grow, and nothing behind them can move"
    return GraftPlan(
        shift=shift,
        segments_offset=HEADER_SIZE,
        segments_address=start + HEADER_SIZE,
        moves=(),
        load=None,
        offset=offset,
        address=start + offset,
        notes=(f"{why}: the program begins {shift:#x} bytes earlier, in the file and in memory",),
    )


def _behind(elf: ElfFile, headers: Headers, loads: Records, size: int) -> GraftPlan:
    page, base = _page(loads), _base(loads)
    address = align(max(_end_of_memory(loads), base + len(elf.data)), page)
    start = address - base
    hole = start - len(elf.data)
    if base < 0 or hole > _LARGEST_HOLE:
        text = "the program headers have no room to grow, and at the end of the file they would stand behind"
        raise GraftError(f"{text} {hole:#x} bytes of nothing")
    table = align(start + size, SECTION_ALIGNMENT)
    text = "the program headers moved to the end of the file, where GNU strip and objcopy break them"
    notes = [text, f"{hole:#x} bytes of zeros keep file offsets in step with addresses"]
    return GraftPlan(
        shift=0,
        segments_offset=table,
        segments_address=table + base,
        moves=(),
        load=(start, address, table + SEGMENT_SIZE * _count(elf) - start, page),
        offset=start,
        address=address,
        notes=(*notes, *_about_end(elf, headers)),
    )


def appended(elf: ElfFile, headers: Headers) -> int:
    """How many bytes follow all that the headers describe; 0 if they are padding."""
    end = headers.sections_offset + SECTION_SIZE * len(headers.sections)
    end = max(end, headers.segments_offset + SEGMENT_SIZE * len(headers.segments))
    for table, length in ((elf.sections[elf.sections["type"] != layout.SHT_NOBITS], "size"), (elf.segments, "filesz")):
        ends = [start + size for start, size in zip(table["offset"].tolist(), table[length].tolist(), strict=True)]
        end = max([end, *(one for one in ends if one <= len(elf.data))])
    rest = np.frombuffer(elf.data[end:], np.uint8)
    return len(rest) if len(rest) > _MOST_PADDING or rest.any() else 0


def _about_end(elf: ElfFile, headers: Headers) -> list[str]:
    """What it means that the section stands behind everything."""
    notes, count = [], appended(elf, headers)
    if count:
        notes.append(f"the {count} bytes behind the sections keep their place, and what was added follows them")
    if elf.sections_named(".debug_info"):
        notes.append("dwz refuses files with loaded sections behind debug information: run it before")
    return notes
