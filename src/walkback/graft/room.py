"""Room for more program headers where they are: right behind the table.

What stands there has to give way. `.interp`, the usual notes, and what the program reaches only through its dynamic
section (hash tables, dynamic symbols) may move to another address, since all that leads to them is found and changed.
What a symbol or a relocation points into stays: the program may look at it. The build ID stays within the first page,
where kernels and readers of core files look for it: it only moves up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile, layout
from walkback.elf.dynamic import dynamic_entries
from walkback.elf.write import HEADER_SIZE, SECTION_SIZE, SEGMENT_SIZE, Headers, align

MOVABLE_TAGS = (
    *(layout.DT_HASH, layout.DT_GNU_HASH, layout.DT_SYMTAB, layout.DT_STRTAB, layout.DT_RELA),
    *(layout.DT_VERSYM, layout.DT_VERDEF, layout.DT_VERNEED),
)
"""Tables that the dynamic loader finds by these entries, and nobody otherwise."""
_ADDRESS_TAGS = (
    *MOVABLE_TAGS,
    *(layout.DT_PLTGOT, layout.DT_INIT, layout.DT_FINI, layout.DT_REL, layout.DT_JMPREL, layout.DT_RELR),
    *(layout.DT_INIT_ARRAY, layout.DT_FINI_ARRAY, layout.DT_PREINIT_ARRAY),
)
_NOTES = (".note.ABI-tag", ".note.gnu.build-id", ".note.gnu.property", ".note.package", ".note.go.buildid")
"""Notes that kernels, loaders and tools find by their segment."""
_UNUSED_SYMBOLS = ("__abi_tag",)
"""Symbols of the C library's start-up code that no code looks at."""
_RELATIVE = {layout.EM_X86_64: 8, layout.EM_AARCH64: 1027, layout.EM_S390: 12}
"""The relocation that adds the base to its addend, R_*_RELATIVE."""
_MOVABLE_SEGMENTS = (layout.PT_INTERP, layout.PT_NOTE, layout.PT_GNU_PROPERTY)
_MOST_MOVES = 32
_ABOUT_OTHERS = (layout.PT_NULL, layout.PT_LOAD, layout.PT_PHDR)
NOT_STORED = (layout.SHT_NULL, layout.SHT_NOBITS)
_FIXED_FLAGS = layout.SHF_WRITE | layout.SHF_EXECINSTR | layout.SHF_TLS | layout.SHF_COMPRESSED


@dataclass(slots=True)
class FileBlock:
    """Sections and segments that share bytes of the file, and so can only move together."""

    start: int
    end: int
    sections: list[int] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    fixed: bool = False
    """Something else stands here besides."""


@dataclass(frozen=True, slots=True)
class Room:
    """Who gives way: some go to the new segment, some only up, to the given offset."""

    away: tuple[FileBlock, ...]
    up: tuple[tuple[FileBlock, int], ...]
    free: tuple[int, int]
    """What is left over: start and end."""


def alignment_of(elf: ElfFile, block: FileBlock) -> int:
    """What the address of a block must be a multiple of."""
    sections: list[int] = elf.sections["addralign"][block.sections].tolist()
    segments: list[int] = elf.segments["align"][block.segments].tolist()
    return max(1, *sections, *segments)


def find_room(elf: ElfFile, headers: Headers, count: int) -> Room | None:
    """How the table can grow to `count` entries in its place, or None where it cannot."""
    table = headers.segments_offset
    old_end, new_end = (table + SEGMENT_SIZE * n for n in (len(headers.segments), count))
    if new_end <= old_end:
        return Room((), (), (new_end, new_end))
    if not len(headers.sections):
        return None  # what stands there is not known
    limit = _limit(elf, table, old_end)
    near = _build_id_offset(elf)
    reached, pointed = _reached(elf), _pointed_at(elf)
    away: list[FileBlock] = []
    up: list[FileBlock] = []
    free: list[tuple[int, int]] = []
    position = old_end
    for block in blocks(elf, headers, old_end):
        if block.start < position:
            return None
        start = min(block.start, limit)
        free.append((position, start))
        movable = start < limit and len(away) < _MOST_MOVES and _is_movable(elf, block, reached, pointed)
        if _fits(elf, up, new_end, start) is not None and not (movable and _has_strings_of(elf, block, away)):
            break
        if not movable:
            return None
        (up if near is not None and block.start <= near < block.end else away).append(block)
        position = block.end
    else:
        start = limit
        free.append((position, start))
    places = _fits(elf, up, new_end, start)
    if places is None or not all(_is_filler(elf.data[low:high]) for low, high in free):
        return None
    used = places[-1] + up[-1].end - up[-1].start if up else new_end
    return Room(tuple(away), tuple(zip(up, places, strict=True)), (used, start))


def _limit(elf: ElfFile, table: int, table_end: int) -> int:
    """The end of the segment that loads the table; of a table that is not loaded, the beginning of the next one."""
    loads = elf.segments[elf.segments["type"] == layout.PT_LOAD]
    places = [(int(load["offset"]), int(load["offset"]) + int(load["filesz"])) for load in loads]
    for start, end in places:
        if start <= table and table_end <= end:
            return min(end, len(elf.data))
    return min([start for start, _ in places if start >= table_end], default=len(elf.data))


def _build_id_offset(elf: ElfFile) -> int | None:
    ids = (note.offset for note in elf.notes() if note.type == layout.NT_GNU_BUILD_ID and note.name == "GNU")
    return next(ids, None)


def _reached(elf: ElfFile) -> dict[int, list[int]]:
    """Addresses that stand in the dynamic section, with the tags they stand there for."""
    found: dict[int, list[int]] = {}
    for tag, value in dynamic_entries(elf)[1].tolist():
        if tag in _ADDRESS_TAGS:
            found.setdefault(value, []).append(tag)
    return found


def _pointed_at(elf: ElfFile) -> U64:
    """Addresses that symbols and relocations say, apart from those of symbols that stand for a section."""
    found = [np.zeros(0, np.uint64)]
    for kind in (layout.SHT_SYMTAB, layout.SHT_DYNSYM):
        for index in elf.sections_of_type(kind):
            symbols = elf.symbols(index)
            defined = (symbols["section"] > 0) & (symbols["section"] < len(elf.sections))
            named = symbols[defined & ((symbols["info"] & 15) <= layout.STT_FUNC)]
            strtab = int(elf.sections["link"][index])
            unused = [elf.find_string(strtab, named["name_offset"], name) for name in _UNUSED_SYMBOLS]
            found.append(np.delete(named["value"], np.concatenate(unused)))
    for index in elf.sections_of_type(layout.SHT_RELA):
        entries = elf.entries(index, layout.RELA)
        relative = entries["info"] & np.uint64(0xFFFFFFFF) == np.uint64(_RELATIVE.get(elf.machine, 0))
        found.append(entries["addend"][relative].view(np.uint64))
    return np.concatenate(found)


def blocks(elf: ElfFile, headers: Headers, position: int) -> Iterator[FileBlock]:
    """All that stands in the file from here on, in order."""
    block: FileBlock | None = None
    for piece in pieces(elf, headers):
        if piece.end <= max(position, piece.start):
            continue
        if block is not None and piece.start < block.end:
            block.end = max(block.end, piece.end)
            block.sections += piece.sections
            block.segments += piece.segments
            block.fixed |= piece.fixed
            continue
        if block is not None:
            yield block
        block = piece
    if block is not None:
        yield block


def pieces(elf: ElfFile, headers: Headers) -> Iterator[FileBlock]:
    """Each section, each small segment and each table of headers, in the order in which they begin in the file."""
    sections, segments = elf.sections, elf.segments
    table, count = headers.sections_offset, len(sections)
    starts = np.concatenate([sections["offset"], segments["offset"], np.array([0, table], np.uint64)])
    for number in np.argsort(starts, kind="stable").tolist():
        start = int(starts[number])
        if number < count:
            if sections["type"][number] not in NOT_STORED:
                yield FileBlock(start, start + int(sections["size"][number]), sections=[number])
        elif number < count + len(segments):
            index = number - count
            kind = int(segments["type"][index])
            if kind not in _ABOUT_OTHERS:
                end = start + int(segments["filesz"][index])
                yield FileBlock(start, end, segments=[index], fixed=kind not in _MOVABLE_SEGMENTS)
        else:
            yield FileBlock(start, start + (SECTION_SIZE * count if start else HEADER_SIZE), fixed=True)


def _is_movable(elf: ElfFile, block: FileBlock, reached: dict[int, list[int]], pointed: U64) -> bool:
    """Whether every way that leads to a block is known and can be changed."""
    if block.fixed or not block.sections or block.end > len(elf.data):
        return False
    distances = {int(one["addr"]) - int(one["offset"]) for one in elf.sections[block.sections]}
    distances |= {int(one["vaddr"]) - int(one["offset"]) for one in elf.segments[block.segments]}
    if len(distances) != 1 or any(
        align_ & (align_ - 1) for align_ in elf.sections["addralign"][block.sections].tolist()
    ):
        return False
    (distance,) = distances
    low, high = distance + block.start, distance + block.end
    if low < 0 or high >= 1 << 64:
        return False
    if ((pointed >= np.uint64(low)) & (pointed < np.uint64(high))).any():
        return False
    return all(_may_leave(elf, index, block, reached) for index in block.sections)


def _has_strings_of(elf: ElfFile, block: FileBlock, away: list[FileBlock]) -> bool:
    """Whether names of symbols that move stand here, which then have to move too.

    GNU strip and objcopy break a segment in two where the section headers have the names before the symbols.
    """
    sections = [index for one in away for index in one.sections if elf.sections["type"][index] == layout.SHT_DYNSYM]
    return bool(set(elf.sections["link"][sections].tolist()) & set(block.sections))


def _may_leave(elf: ElfFile, index: int, block: FileBlock, reached: dict[int, list[int]]) -> bool:
    _, kind, flags, address, _, size, *_ = elf.sections[index].item()
    if not flags & layout.SHF_ALLOC or flags & _FIXED_FLAGS or alignment_of(elf, block) > 0x1000:
        return False
    if kind == layout.SHT_NOTE:
        return elf.section_name(index) in _NOTES
    if layout.PT_INTERP in elf.segments["type"][block.segments]:
        return True
    inside = any(address < value < address + size for value in reached)
    tags = reached.get(address, [])
    return bool(tags) and not inside and set(tags) <= set(MOVABLE_TAGS)


def _fits(elf: ElfFile, up: list[FileBlock], position: int, limit: int) -> list[int] | None:
    """Where blocks that only move up come to stand from here on, if they end before the limit."""
    places = []
    for block in up:
        position = align(position, alignment_of(elf, block))
        places.append(position)
        position += block.end - block.start
    return places if position <= limit else None


def _is_filler(contents: memoryview) -> bool:
    """Whether these bytes, which belong to nothing, also hold nothing: one byte over and over, mostly 0."""
    octets = np.frombuffer(contents, np.uint8)
    return not len(octets) or not (octets != octets[0]).any()
