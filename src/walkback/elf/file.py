"""One 64-bit ELF file as tables: sections, segments and symbols are NumPy structured arrays.

Opening a file reads its header; everything else is read when asked for, so that damage where nobody looks does no
harm. Every offset, size and count is checked against the file before use, and what contradicts it is an `ElfError`.
Follows the System V gABI, chapters "ELF Header", "Sections", "String Table", "Symbol Table" and "Program Header",
with extended section numbering.

Each range of a file is read once, and what its headers claim together is bounded by the file, so that many of them that
name one range do not make a small file a large one.
"""

from __future__ import annotations

import contextlib
import os
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import ends_of, is_one_of
from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import claims, layout, stringtable
from walkback.elf.compressed import decompress, decompress_gnu, has_gnu_magic, limit_of
from walkback.elf.notes import Note, find_build_id, notes_of
from walkback.elf.opened import IN_MEMORY, Contents, OpenFile, opened_file, view_of
from walkback.elf.symboltable import symbol_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from walkback.elf.opened import Buffer
    from walkback.sframe.files import SFrameSection

    Shapes = dict[ByteOrder, np.dtype[np.void]]
    Table = npt.NDArray[np.void]

_LONGEST_LABEL = 80
_FEW_SECTIONS = 256
"""Of a file with more, not all names are read to find one."""
_LONG_NAME = 64
"""Bytes."""
_MOST_NOTES = 1 << 14


def is_elf(data: Buffer | OpenFile) -> bool:
    """Whether these bytes begin as an ELF file does."""
    return bytes(data[:4]) == layout.ELF_MAGIC


class ElfFile:
    """A 64-bit ELF file of either byte order and any machine, over its bytes or an open file.

    The arrays and memory views that it gives stay valid after `close`.

    >>> elf = walkback.ElfFile("a.out")
    >>> elf
    ElfFile('a.out', type=2, machine=62, byteorder='little')
    >>> elf.section_names()
    ['', '.text', '.sframe', '.strtab', '.symtab', '.shstrtab']
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Buffer | OpenFile | ElfFile,
        name: str | None = None,
        *,
        limit: int | None = None,
    ) -> None:
        """Open a path, or take the bytes, and read the header; `name` is what errors call it.

        `limit` is how many bytes its compressed sections may expand to; by default it depends on the size of the file.
        """
        if isinstance(source, ElfFile):
            name = source.name if name is None else name
            source = source.data
        data = OpenFile(source) if isinstance(source, str | os.PathLike) else source
        if name is None:
            name = data.name if isinstance(data, OpenFile) else IN_MEMORY
        self.name: str = name
        self._data: Contents | None = data if isinstance(data, OpenFile) else view_of(data)
        self._ranges: dict[tuple[int, int], memoryview] = {}
        self._section_views: dict[int, memoryview] = {}
        self._decompressed: dict[tuple[int, int, bool], memoryview] = {}
        self._symbols: dict[int, Table] = {}
        self.described: ElfFile | None = None
        """The same file with other section headers, once it has been made."""
        self._room = limit_of(len(self.data)) if limit is None else limit
        ident = bytes(data[:16])
        if ident[:8] in {layout.ARMAG, layout.ARMAG_THIN}:
            raise UnreadableError("expected one ELF file, got an archive", file=name)
        if not is_elf(ident):
            raise UnreadableError("this is not an ELF file", file=name)
        if len(ident) > layout.EI_CLASS and ident[layout.EI_CLASS] == layout.ELFCLASS32:
            raise UnreadableError("32-bit ELF files are not supported", file=name)
        if len(self.data) < layout.ELF_HEADER["little"].itemsize:
            raise self._error("the file ends within its ELF header", 0)
        if ident[layout.EI_CLASS] != layout.ELFCLASS64:
            raise self._error(f"unknown ELF class {ident[layout.EI_CLASS]}", layout.EI_CLASS)
        if ident[layout.EI_DATA] not in layout.BYTE_ORDERS:
            raise self._error(f"unknown data encoding {ident[layout.EI_DATA]}", layout.EI_DATA)
        self.byteorder = layout.BYTE_ORDERS[ident[layout.EI_DATA]]
        header = np.frombuffer(self.header, layout.ELF_HEADER[self.byteorder], 1)[0]
        _, self.type, self.machine, _, self.entry, *rest = header.item()
        self._phoff, self._shoff, self.flags, _, self._phentsize, self._phnum, *rest = rest
        self._shentsize, self._shnum, self._shstrndx = rest

    def __repr__(self) -> str:
        return f"ElfFile({self.name!r}, type={self.type}, machine={self.machine}, byteorder={self.byteorder!r})"

    def close(self) -> None:
        """Let go of the bytes; arrays and views given out before stay valid."""
        self._data = None
        if self.described is not None:
            self.described.close()
        self._ranges.clear()
        self._section_views.clear()
        self._decompressed.clear()
        self._symbols.clear()
        for name in ("sections", "segments", "relocation_sections", "sframe", "_by_name"):
            self.__dict__.pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def data(self) -> Contents:
        """The whole file, to be sliced."""
        if self._data is None:
            raise ValueError(f"{self.name}: the file has been closed")
        return self._data

    @property
    def file(self) -> OpenFile | None:
        """The open file that it is read from; None of one in memory."""
        return opened_file(self.data)

    @property
    def header(self) -> memoryview:
        """The bytes of the ELF header."""
        return self.data[: layout.ELF_HEADER[self.byteorder].itemsize]

    def _range(self, offset: int, size: int, *, keep: bool = True) -> memoryview:
        """A part of the file, which is read once if it is kept."""
        found = self._ranges.get((offset, size))
        if found is None:
            found = self.data[offset : offset + size]
            if keep:
                self._ranges[offset, size] = found
        return found

    def with_sections(self, headers: Table, contents: dict[int, memoryview]) -> ElfFile:
        """The same file with other section headers, the last one for their names; some have contents of their own."""
        found = ElfFile(self.data, self.name)
        found._shstrndx = len(headers) - 1
        found._section_views.update(contents)
        headers.flags.writeable = False
        found.sections = headers
        self.described = found
        return found

    @property
    def is_relocatable(self) -> bool:
        """An object file: addresses are offsets into its sections."""
        return bool(self.type == layout.ET_REL)

    # Headers

    @cached_property
    def sections(self) -> Table:
        """The section headers, or an empty table if the file has none."""
        count = self._shnum
        if self._shoff == 0 and count:
            raise self._error(f"{count} section headers, but no offset of them", 0x28)
        if self._shoff and count == 0:  # extended numbering: section 0 has the count
            count = int(self._section_zero["size"][0])
        table = self._headers("section", layout.SECTION_HEADER, self._shoff, count, self._shentsize)
        stored = table[~is_one_of(table["type"], layout.SHT_NULL, layout.SHT_NOBITS)]
        if trouble := claims.trouble_of("section", stored["offset"], stored["size"], len(self.data)):
            raise self._error(trouble, self._shoff)
        return table

    @cached_property
    def segments(self) -> Table:
        """The program headers, or an empty table if the file has none."""
        count = self._phnum
        if count == layout.PN_XNUM and self._shoff:
            count = int(self._section_zero["info"][0])
        table = self._headers("program", layout.PROGRAM_HEADER, self._phoff, count, self._phentsize)
        if trouble := claims.trouble_of("program", table["offset"], table["filesz"], len(self.data)):
            raise self._error(trouble, self._phoff)
        return table

    @property
    def _section_zero(self) -> Table:
        return self._headers("section", layout.SECTION_HEADER, self._shoff, 1, self._shentsize)

    def _headers(self, kind: str, shapes: Shapes, offset: int, count: int, entry_size: int) -> Table:
        shape = shapes[self.byteorder]
        if count and entry_size != shape.itemsize:
            raise self._error(f"{kind} headers of {entry_size} bytes instead of {shape.itemsize}", 0)
        if count and not self._holds(offset, count * shape.itemsize):
            raise self._error(f"the {count} {kind} headers reach beyond the end of the file", offset)
        start = offset if count else 0
        return self._table(shapes, self.data[start : start + count * shape.itemsize])

    def _table(self, shapes: Shapes, contents: memoryview) -> Table:
        """Entries in this machine's byte order."""
        shape = shapes[self.byteorder]
        return np.frombuffer(contents, shape).astype(shape.newbyteorder("="), copy=False)

    # Sections

    def section_name(self, index: int) -> str:
        """The name of a section; empty if the file keeps no section names."""
        offset = int(self._section(index)["name_offset"])
        names = self._name_table
        return self.string(names, offset) if names else ""

    def section_names(self) -> list[str]:
        """The names of all sections."""
        names = self._name_table
        if not names:
            return [""] * len(self.sections)
        return self.strings(names, self.sections["name_offset"].tolist())

    def sections_named(self, name: str) -> list[int]:
        """The numbers of the sections that have this name."""
        wanted = name.encode(errors="surrogateescape")
        if len(self.sections) <= _FEW_SECTIONS and len(wanted) < _LONG_NAME:
            return list(self._by_name.get(wanted, ()))
        names = self._name_table
        if not names:
            return []
        found: list[int] = self.find_string(names, self.sections["name_offset"], name).tolist()
        return found

    @cached_property
    def _by_name(self) -> dict[bytes, list[int]]:
        """The numbers of the sections by their names, without those that are long or cannot be read."""
        found: dict[bytes, list[int]] = {}
        names = self.section_data(self._name_table) if self._name_table else memoryview(b"")
        for number, offset in enumerate(self.sections["name_offset"].tolist()):
            name, end, _ = bytes(names[offset : offset + _LONG_NAME]).partition(b"\0")
            if end:
                found.setdefault(name, []).append(number)
        return found

    def sections_of_type(self, kind: int) -> list[int]:
        """The numbers of the sections of this SHT_ type."""
        return np.flatnonzero(self.sections["type"] == np.uint32(kind)).tolist()

    def section_data(self, index: int, *, keep: bool = True) -> memoryview:
        """The contents of a section, decompressed; none for SHT_NOBITS, whose bytes are not in the file.

        They stay in memory with this object, unless `keep` is False.
        """
        found = self._section_views.get(index)
        if found is None:
            found = self._section_view(index, keep=keep)
            if keep:
                self._section_views[index] = found
        return found

    def _section_view(self, index: int, *, keep: bool) -> memoryview:
        _, kind, flags, *_ = self._section(index).item()
        if kind in {layout.SHT_NULL, layout.SHT_NOBITS}:
            return self.data[:0]
        stored = self._range(*self.section_range(index), keep=keep)
        if flags & layout.SHF_COMPRESSED or (has_gnu_magic(stored) and self._is_zdebug(index)):
            return self._decompress(index, stored, gnu=not flags & layout.SHF_COMPRESSED)
        return stored

    def section_range(self, index: int) -> tuple[int, int]:
        """Where the bytes of a section are in the file, and how many."""
        _, kind, _, _, offset, size, *_ = self._section(index).item()
        if kind in {layout.SHT_NULL, layout.SHT_NOBITS}:
            return offset, 0
        if not self._holds(offset, size):
            place = f"({size:#x} bytes at {offset:#x})"
            raise self._section_error(index, f"{place} reaches beyond the end of the file")
        return offset, size

    @cached_property
    def relocation_sections(self) -> dict[int, list[int]]:
        """For each section that has relocations the sections where they are."""
        found: dict[int, list[int]] = {}
        kinds = is_one_of(self.sections["type"], layout.SHT_REL, layout.SHT_RELA, layout.SHT_CREL)
        for index in np.flatnonzero(kinds).tolist():
            found.setdefault(int(self.sections["info"][index]), []).append(index)
        return found

    def _is_zdebug(self, index: int) -> bool:
        return index != self._name_table and self.section_name(index).startswith(".zdebug_")

    def _decompress(self, index: int, stored: memoryview, *, gnu: bool) -> memoryview:
        """Once only; and many sections over the same bytes must not come to more than honest ones would."""
        key = (int(self.sections["offset"][index]), len(stored), gnu)
        if key in self._decompressed:
            return self._decompressed[key]
        try:
            contents = decompress_gnu(stored, self._room) if gnu else decompress(stored, self.byteorder, self._room)
        except ElfError as error:
            raise self._section_error(index, error.message) from None
        self._room -= len(contents)
        self._decompressed[key] = memoryview(contents)
        return self._decompressed[key]

    # What is read of it on a floor above this one

    @cached_property
    def sframe(self) -> list[SFrameSection]:
        """The SFrame sections of the file, each with its functions and its table; none is an empty list.

        >>> walkback.ElfFile("a.out").sframe
        [SFrameSection(version=3, functions=3, rows=8, position=0)]
        """
        from walkback.sframe.files import sources_of

        return [section for source in sources_of(self) for section in source.pieces()]

    # Notes

    def notes(self) -> Iterator[Note]:
        """The notes of all sections; of all segments where no section has notes.

        Sections go first because the segments of a separate debug file describe another file.
        """
        for number, note in enumerate(notes_of(self)):
            if number == _MOST_NOTES:
                raise self._error(f"there are more than {_MOST_NOTES} notes")
            yield note

    @cached_property
    def build_id(self) -> bytes | None:
        """What the linker wrote to distinguish this file from all others, if it did."""
        return find_build_id(self.notes())

    # Segments

    def segment_data(self, index: int, *, keep: bool = True) -> memoryview:
        """The part of a segment that is in the file; it stays in memory like that of a section."""
        return self._range(*self.segment_range(index), keep=keep)

    def segment_range(self, index: int) -> tuple[int, int]:
        """Where that part is in the file, and its size."""
        if not 0 <= index < len(self.segments):
            raise self._error(f"there is no segment {index}")
        _, _, offset, _, _, size, *_ = self.segments[index].item()
        if not self._holds(offset, size):
            place = self._phoff + index * self._phentsize
            text = f"segment {index} ({size:#x} bytes at {offset:#x}) reaches beyond the end of the file"
            raise self._error(text, place)
        return offset, size

    def mapped_data(self, address: int, size: int | None = None) -> memoryview:
        """The bytes that a PT_LOAD segment brings to an address; up to the end of what it brings without a size."""
        for index in np.flatnonzero(self.segments["type"] == layout.PT_LOAD).tolist():
            away = address - int(self.segments["vaddr"][index])
            if 0 <= away < int(self.segments["filesz"][index]):
                offset, length = self.segment_range(index)
                if size is None or size <= length - away:
                    end = length if size is None else away + size
                    return self.data[offset + away : offset + end]
        wanted = "" if size is None else f"{size:#x} bytes at "
        raise self._error(f"no segment of this file loads {wanted}address {address:#x}")

    def executable_ranges(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Where executable PT_LOAD segments begin and end in memory, in their order; none in an object file."""
        chosen = (self.segments["type"] == layout.PT_LOAD) & ((self.segments["flags"] & layout.PF_X) != 0)
        start = self.segments["vaddr"][chosen]
        return start, ends_of(start, self.segments["memsz"][chosen])

    def is_code(self, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which addresses of a linked file lie in executable sections, or where it has none in executable segments.

        A segment can hold the headers of the file too, and so address 0, where what the linker dropped seems to be.
        """
        wanted = np.uint64(layout.SHF_ALLOC | layout.SHF_EXECINSTR)
        code = self.sections[(self.sections["flags"] & wanted == wanted) & (self.sections["size"] > 0)]
        start, end = (code["addr"], ends_of(code["addr"], code["size"])) if len(code) else self.executable_ranges()
        order = np.argsort(start)
        number = np.searchsorted(start[order], addresses, side="right")
        ends = np.append(np.maximum.accumulate(end[order]), np.uint64(0))
        return (number > 0) & (addresses < ends[number - 1])

    def entries(self, index: int, shapes: Shapes, *, keep: bool = True) -> Table:
        """The contents of a section as entries of a shape from `layout`, with which its header must agree."""
        contents = self.section_data(index, keep=keep)
        size = shapes[self.byteorder].itemsize
        claimed = int(self.sections["entsize"][index])
        if claimed != size:
            raise self._section_error(index, f"has entries of {claimed} bytes instead of {size}")
        if len(contents) % size:
            raise self._section_error(index, f"has {len(contents)} bytes, not a multiple of {size}")
        return self._table(shapes, contents)

    # Symbols

    def symbols(self, index: int) -> Table:
        """The entries of the symbol table in section `index`, as a table of `SYMBOL_TABLE`; read once."""
        if index not in self._symbols:
            if int(self._section(index)["type"]) not in {layout.SHT_SYMTAB, layout.SHT_DYNSYM}:
                raise self._section_error(index, "is not a symbol table")
            stored = self.entries(index, layout.SYMBOL)
            table = symbol_table(stored, lambda: self._extended_numbers(index, len(stored)))
            table.flags.writeable = False
            self._symbols[index] = table
        return self._symbols[index]

    def _extended_numbers(self, symtab: int, count: int) -> npt.NDArray[np.uint32]:
        """The section numbers of symbols that say SHN_XINDEX: a table beside the symbol table."""
        for index in self.sections_of_type(layout.SHT_SYMTAB_SHNDX):
            if int(self.sections["link"][index]) == symtab:
                contents = self.section_data(index)
                if len(contents) < 4 * count:
                    raise self._section_error(index, f"is too short for {count} symbols")
                numbers = np.frombuffer(contents, "<u4" if self.byteorder == "little" else ">u4", count)
                return numbers.astype(np.uint32)
        raise self._section_error(symtab, "uses SHN_XINDEX without a section of type SHT_SYMTAB_SHNDX")

    # Strings

    def string(self, strtab: int, offset: int) -> str:
        """The string at this offset of the string table in section `strtab`."""
        table = self.section_data(strtab)
        try:
            return stringtable.string(table, offset)
        except ElfError as error:
            raise self._section_error(strtab, error.message) from None

    def strings(self, strtab: int, offsets: Iterable[int]) -> list[str]:
        """The strings at many offsets; quicker than one by one."""
        table = self.section_data(strtab)
        try:
            return stringtable.strings(table, offsets)
        except ElfError as error:
            raise self._section_error(strtab, error.message) from None

    def find_string(
        self, strtab: int, offsets: npt.NDArray[np.uint32], *texts: str, ends: bytes = b"\0"
    ) -> npt.NDArray[np.intp]:
        """Which of the offsets are those of one of these strings, without reading the others as text.

        The strings end at NUL, or at any byte of `ends`.
        """
        return stringtable.find_string(self.section_data(strtab), offsets, *texts, ends=ends)

    @property
    def _name_table(self) -> int:
        """The section that holds the names of sections, or SHN_UNDEF."""
        if self._shstrndx == layout.SHN_XINDEX and len(self.sections):
            return int(self.sections["link"][0])
        return self._shstrndx if len(self.sections) else layout.SHN_UNDEF

    # Checks and errors

    def _holds(self, offset: int, size: int) -> bool:
        return offset + size <= len(self.data)

    def _section(self, index: int) -> np.void:
        if not 0 <= index < len(self.sections):
            raise self._error(f"there is no section {index}")
        header: np.void = self.sections[index]
        return header

    def _error(self, message: str, offset: int | None = None) -> ElfError:
        return ElfError(message, file=self.name, offset=offset)

    def _section_error(self, index: int, message: str) -> ElfError:
        """An error of the section, at its header; with its name unless that is part of the damage."""
        label = f"section {index}"
        if index != self._name_table:
            with contextlib.suppress(ElfError):
                label += f" {self.section_name(index)[:_LONGEST_LABEL]}".rstrip()
        return self._error(f"{label} {message}", self._shoff + index * self._shentsize)
