"""Files without section headers, with made ones, from what the loader reads.

Segments say where code and data are; the dynamic section says where symbols, relocations and arrays of functions are.
Entries of the procedure linkage table are found by their instructions.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from walkback.base.arrays import U64, Records, is_one_of
from walkback.base.errors import WalkbackError
from walkback.elf import layout
from walkback.elf.dynamic import dynamic_entries
from walkback.elf.file import ElfFile
from walkback.elf.stubs import SLOT_KINDS, stubs_in_code

_TABLES = (
    (".dynstr", layout.SHT_STRTAB, layout.DT_STRTAB, layout.DT_STRSZ, 0),
    (".rela.dyn", layout.SHT_RELA, layout.DT_RELA, layout.DT_RELASZ, 24),
    (".rela.plt", layout.SHT_RELA, layout.DT_JMPREL, layout.DT_PLTRELSZ, 24),
    (".preinit_array", layout.SHT_PREINIT_ARRAY, layout.DT_PREINIT_ARRAY, layout.DT_PREINIT_ARRAYSZ, 8),
    (".init_array", layout.SHT_INIT_ARRAY, layout.DT_INIT_ARRAY, layout.DT_INIT_ARRAYSZ, 8),
    (".fini_array", layout.SHT_FINI_ARRAY, layout.DT_FINI_ARRAY, layout.DT_FINI_ARRAYSZ, 8),
)
"""Name and type of a section, the tags of its address and size, and the size of its entries."""
_PLACES = (
    *(layout.DT_HASH, layout.DT_GNU_HASH, layout.DT_STRTAB, layout.DT_RELA, layout.DT_JMPREL, layout.DT_RELR),
    *(layout.DT_VERSYM, layout.DT_VERDEF, layout.DT_VERNEED, layout.DT_INIT),
)
"""The tags of what may come behind the symbols."""
_TYPES = (
    *(layout.STT_NOTYPE, layout.STT_OBJECT, layout.STT_FUNC, layout.STT_SECTION, layout.STT_FILE),
    *(layout.STT_COMMON, layout.STT_TLS, layout.STT_GNU_IFUNC),
)
_BINDINGS = layout.STB_LOCAL, layout.STB_GLOBAL, layout.STB_WEAK, layout.STB_GNU_UNIQUE
_FINI = {
    layout.EM_X86_64: rb"(?:\xf3\x0f\x1e\xfa)?\x48\x83\xec\x08\x48\x83\xc4\x08\xc3",
    layout.EM_AARCH64: rb"(?:[\x1f\x3f\x5f][\x20\x23\x24]\x03\xd5){0,2}"
    rb"\xfd\x7b\xbf\xa9\xfd\x03\0\x91\xfd\x7b\xc1\xa8(?:\xbf\x23\x03\xd5)?\xc0\x03\x5f\xd6",
    layout.EM_S390: rb"\xeb\x6f\xf0\x30\0\x24.{20,40}\xeb\x6f\xf0\xd0\0\x04\x07\xf4",
}
"""The function that the crt files make of `.fini`, which is the last section with code."""
_FETCHES = {
    layout.EM_X86_64: (rb"\xff\x35", 16),
    layout.EM_AARCH64: (rb"(?:\x5f\x24\x03\xd5)?\xf0\x7b\xbf\xa9", 32),
    layout.EM_S390: (rb"\xe3\x10\xf0\x38\0\x24", 32),
}
"""What the first entry of a linkage table begins with if functions are looked up when first called, and its size."""
_HEADER = struct.Struct("<4BiIi")
"""What `.eh_frame_hdr` begins with: a version and three encodings, where the frames are, and how many; and the lowest
address with frames. AMD64 and AArch64 have it so."""
_USUAL = (1, 0x1B, 0x03, 0x3B)
_ALIGNED = 16
"""Bytes that code is aligned to behind a linkage table; zeros stand between."""
_LONGEST = 128
"""Bytes that are looked at, of one function."""
_MOST_SEGMENTS = 64
"""How many segments with code are searched for linkage tables."""
_MOST_SERIES = 16
"""How many series of entries are taken from a segment, the longest ones."""
_ALONE = bytes(6)
"""What stands before a linkage table with one entry: what fills the room between functions has fewer zeros."""
_ADDRESSES = 1 << 64
_EXCEPTIONS = ".gcc_except_table"
_CODE = layout.SHF_ALLOC | layout.SHF_EXECINSTR


class _Section(NamedTuple):
    """What its header says; what is linked to it, by name, and contents that are not those of the file."""

    name: str
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    entsize: int = 0
    link: str = ""
    contents: memoryview | None = None

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.addr + self.size


class _Load(NamedTuple):
    """A segment that is loaded: what of it is in the file."""

    flags: int
    offset: int
    addr: int
    size: int

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.addr + self.size

    def has(self, start: int, size: int = 1) -> bool:
        """Whether bytes from an address on are in it."""
        return self.addr <= start and start + size <= self.end

    def bytes(self, elf: ElfFile, start: int, end: int) -> memoryview:
        """Those between two addresses in it."""
        return elf.data[self.offset + start - self.addr : self.offset + end - self.addr]

    def section(self, name: str, flags: int, start: int, end: int) -> _Section:
        """A section of it, between two addresses."""
        return _Section(name, layout.SHT_PROGBITS, flags, start, self.offset + start - self.addr, end - start)


def with_sections(elf: ElfFile) -> ElfFile:
    """The file with section headers; the same one if it has some, or if it is not loaded."""
    if elf.type not in {layout.ET_EXEC, layout.ET_DYN} or len(elf.sections) or not len(elf.segments):
        return elf
    return elf.described or elf.with_sections(*_headers(elf, [_Section("", 0, 0, 0, 0, 0), *_found(elf)]))


def _headers(elf: ElfFile, found: list[_Section]) -> tuple[Records, dict[int, memoryview]]:
    """The headers of sections, and contents that are not those of the file."""
    names = [*(one.name for one in found), ".shstrtab", ""]
    text = memoryview("\0".join(names).encode())
    found.append(_Section(names[-2], layout.SHT_STRTAB, 0, 0, 0, 0, contents=text))
    headers = np.zeros(len(found), layout.SECTION_HEADER[elf.byteorder].newbyteorder("="))
    for field in ("type", "flags", "addr", "offset", "size", "entsize"):
        headers[field] = [getattr(one, field) for one in found]
    number = {name: index for index, name in enumerate(names)}
    headers["link"] = [number.get(one.link, 0) if one.link else 0 for one in found]
    headers["name_offset"] = np.cumsum([0, *(len(name) + 1 for name in names)])[: len(found)]
    return headers, {index: one.contents for index, one in enumerate(found) if one.contents is not None}


def _found(elf: ElfFile) -> list[_Section]:
    """All that is found in a file; where the dynamic section is damaged, code and data."""
    tags: dict[int, int] = {}
    with contextlib.suppress(WalkbackError):
        entries = dynamic_entries(elf)[1]
        tags = dict(zip(entries["tag"].tolist(), entries["value"].tolist(), strict=True))
    loads = list(_loads(elf))
    tables = list(_tables(tags, loads))
    loaded = [*_data(elf, loads), *_code(elf, tags, loads, tables)]
    return [*tables, *loaded, *_symbols(elf, tags, loads, loaded, len(tables) + 1)]


def _loads(elf: ElfFile) -> Iterator[_Load]:
    for number in np.flatnonzero(elf.segments["type"] == layout.PT_LOAD).tolist():
        with contextlib.suppress(WalkbackError):
            offset, size = elf.segment_range(number)
            found = _Load(int(elf.segments["flags"][number]), offset, int(elf.segments["vaddr"][number]), size)
            if size and found.end < _ADDRESSES:
                yield found


def _tables(tags: dict[int, int], loads: list[_Load]) -> Iterator[_Section]:
    """The tables that the dynamic section names, where they are in the file."""
    for name, kind, place, length, entry in _TABLES:
        start, size = tags.get(place, 0), tags.get(length, 0)
        link = ".dynsym" if kind == layout.SHT_RELA else ""
        if name == ".rela.plt" and tags.get(layout.DT_PLTREL) != layout.DT_RELA:
            continue
        load = next((load for load in loads if size and load.has(start, size)), None)
        if load is not None:
            found = load.section(name, layout.SHF_ALLOC, start, start + size)
            yield found._replace(type=kind, entsize=entry, link=link)


def _slots(elf: ElfFile, tables: list[_Section]) -> U64:
    """The words that the loader fills with addresses of functions."""
    found, wanted = [np.zeros(0, np.uint64)], SLOT_KINDS.get(elf.machine)
    for one in tables:
        if one.type == layout.SHT_RELA and wanted is not None:
            shape = layout.RELA[elf.byteorder]
            stored = np.frombuffer(elf.data[one.offset : one.offset + one.size], shape, one.size // shape.itemsize)
            kinds = is_one_of(stored["info"] & np.uint64(0xFFFFFFFF), *wanted)
            found.append(stored["offset"][kinds].astype(np.uint64))
    return np.concatenate(found)


def _code(elf: ElfFile, tags: dict[int, int], loads: list[_Load], tables: list[_Section]) -> Iterator[_Section]:
    """The code, cut where what the crt files make begins and where linkage tables do; and constants around it."""
    slots = _slots(elf, tables)
    known = {elf.entry, tags.get(layout.DT_INIT, 0), tags.get(layout.DT_FINI, 0)} - {0}
    with_code = [load for load in loads if load.flags & layout.PF_X]
    for number, load in enumerate(with_code):
        first, end = load.addr, load.end
        if load.offset == 0:  # what is only read is in this segment, too
            first, end = _code_in(elf, load, [place for place in known if load.has(place)], tables)
            for constants in (load.addr, first), (end, load.end):
                if constants[0] < constants[1]:
                    yield load.section(".rodata", layout.SHF_ALLOC, *constants)
        series = {}
        if len(slots) and number < _MOST_SEGMENTS:
            series = _linkage(elf.machine, load.bytes(elf, first, end), first, slots)
        cuts = {first, end, *(place for place in known if first < place < end)}
        cuts |= {*series, *(behind for behind, _ in series.values())}
        for start, behind in pairwise(sorted(cuts)):
            if start in series:
                yield load.section(".plt", _CODE, start, behind)._replace(entsize=series[start][1])
                continue
            filled = min(start + -start % _ALIGNED, behind)
            begin = start if any(load.bytes(elf, start, filled)) else filled
            if begin < behind:
                yield load.section(".text", _CODE, begin, behind)


def _code_in(elf: ElfFile, load: _Load, known: list[int], tables: list[_Section]) -> tuple[int, int]:
    """Where code begins and ends in a segment that also has the headers, and so what is only read.

    It begins behind the tables of the loader. Constants are behind it, in front of the frames; or as lld has them both
    are in front of it. In doubt they count as code.
    """
    if not known:
        return load.addr, load.end
    first = max([load.addr, *(one.end for one in tables if load.has(one.addr) and one.end <= min(known))])
    frames = elf.segments["vaddr"][elf.segments["type"] == layout.PT_GNU_EH_FRAME][:1].tolist()
    place = next((one for one in frames if load.has(one, _HEADER.size) and one > first), load.end)
    if place < min(known):
        *form, _, _, away = _HEADER.unpack(load.bytes(elf, place, place + _HEADER.size))
        lowest = place + away
        return (lowest if tuple(form) == _USUAL and place < lowest <= min(known) else place), load.end
    if place < max(known):
        return first, load.end
    code = load.bytes(elf, max(known), min(max(known) + _LONGEST, place))
    fini = re.match(_FINI.get(elf.machine, b"(?!)"), code, re.DOTALL)
    return first, max(known) + fini.end() if fini else place


def _linkage(machine: int, contents: memoryview, address: int, slots: U64) -> dict[int, tuple[int, int]]:
    """Where series of entries begin; where each ends, and the size of its entries."""
    found, size = stubs_in_code(machine, np.frombuffer(contents, np.uint8), address, slots)
    start = (found.start - np.uint64(address)).astype(np.int64)
    fetches, length = _FETCHES[machine]
    is_last = np.append((start[1:] != start[:-1] + size[:-1]) | (size[1:] != size[:-1]), True)[: len(start)]
    series: dict[int, tuple[int, int]] = {}
    first = behind = 0
    for last in np.flatnonzero(is_last).tolist():
        begin, is_one, first = int(start[first]), last == first, last + 1
        if begin >= length and re.match(fetches, contents[begin - length : begin]):
            begin -= length
        elif is_one and begin not in {0, behind} and contents[max(begin - len(_ALONE), 0) : begin] != _ALONE:
            continue  # a function that only jumps on looks so, too
        behind = int(start[last] + size[last])
        series[begin] = behind, int(size[last])
    longest = sorted(series, key=lambda begin: begin - series[begin][0])[:_MOST_SERIES]
    return {address + begin: (address + series[begin][0], series[begin][1]) for begin in longest}


def _data(elf: ElfFile, loads: list[_Load]) -> Iterator[_Section]:
    """Constants, and what is written; tables of exceptions may be anywhere in what is only read."""
    relro = elf.segments[elf.segments["type"] == layout.PT_GNU_RELRO][:1]
    for load in loads:
        if load.flags & layout.PF_W:
            yield load.section(".data", layout.SHF_ALLOC | layout.SHF_WRITE, load.addr, load.end)
            for one in relro:
                start, behind = int(one["vaddr"]), min(int(one["vaddr"]) + int(one["memsz"]), load.end)
                if load.addr <= start < behind:
                    yield load.section(".data.rel.ro", layout.SHF_ALLOC, start, behind)
        else:
            yield load.section(_EXCEPTIONS, layout.SHF_ALLOC, load.addr, load.end)
            if not load.flags & layout.PF_X:
                yield load.section(".rodata", layout.SHF_ALLOC, load.addr, load.end)


def _symbols(
    elf: ElfFile, tags: dict[int, int], loads: list[_Load], loaded: list[_Section], number: int
) -> Iterator[_Section]:
    """The dynamic symbols, as far as what stands there are some; `number` is that of the first section `loaded`."""
    begin = tags.get(layout.DT_SYMTAB, 0)
    load = next((load for load in loads if begin and load.has(begin)), None)
    if load is None:
        return
    places = [tags.get(tag, 0) for tag in _PLACES]
    end = min([place for place in places if begin < place < load.end], default=load.end)
    shape = layout.SYMBOL[elf.byteorder]
    header = load.section(".dynsym", layout.SHF_ALLOC, begin, end)
    count = header.size // shape.itemsize
    symbols = np.frombuffer(elf.data[header.offset : header.offset + header.size], shape, count).copy()
    sound = (symbols["name_offset"] < tags.get(layout.DT_STRSZ, 0)) & (symbols["other"] & 0x1C == 0)
    sound &= is_one_of(symbols["info"] & 15, *_TYPES) & is_one_of(symbols["info"] >> 4, *_BINDINGS)
    symbols = symbols[np.cumsum(~sound) == 0]
    own = (symbols["shndx"] != layout.SHN_UNDEF) & (symbols["shndx"] < layout.SHN_LORESERVE)
    symbols["shndx"][own] = _holders(symbols["value"][own].astype(np.uint64), loaded, number)
    contents = memoryview(symbols.tobytes())
    yield header._replace(
        type=layout.SHT_DYNSYM, size=len(contents), entsize=shape.itemsize, link=".dynstr", contents=contents
    )


def _holders(places: U64, loaded: list[_Section], number: int) -> npt.NDArray[np.uint16]:
    """The number of the section that holds each place, as symbols have it."""
    rows = sorted((one.addr, one.end, number + index) for index, one in enumerate(loaded) if one.name != _EXCEPTIONS)
    start, end, index = np.array(rows, np.uint64).reshape(-1, 3).T
    last = np.searchsorted(start, places, "right") - 1
    within = last >= 0
    within[within] = (places[within] < end[last[within]]) & (index[last[within]] < layout.SHN_LORESERVE)
    found = np.full(len(places), layout.SHN_ABS, np.uint16)
    found[within] = index[last[within]]
    return found
