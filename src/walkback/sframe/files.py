"""Where SFrame sections are found: in ELF files, in members of archives, and as raw bytes.

In an ELF file a section is found by its type, by its name, or, when the section headers are gone, by its segment. In a
relocatable file the start fields are relocated and each function is placed in its text section; nothing else is
relocated. In linked files the section's address is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import cached_property

import numpy as np

from walkback.base.arrays import I64, Bools, Records
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, SFrameError, UnreadableError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.elf import (
    Contents,
    ElfFile,
    Input,
    Relocations,
    contents_of,
    is_archive,
    is_elf,
    relocations_for,
)
from walkback.elf import layout as elf_layout
from walkback.elf.inputs import raise_first
from walkback.elf.sframe import sframe_sections
from walkback.packages.found import found_elf_files, packed_words
from walkback.sframe.batch import SectionBatch, batches
from walkback.sframe.decoding import Buffer, decode_all
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.symbols import SymbolIndex
from walkback.symbols.named import FileNames
from walkback.symbols.plt import PltNames
from walkback.table.table import UnwindTable

_WHO_MAKES = {
    elf_layout.ET_REL: "; `as --gsframe` or `walkback add` makes one",
    elf_layout.ET_EXEC: "; `walkback add` makes one",
    elf_layout.ET_DYN: "; `walkback add` makes one",
}

NOT_ON_A_FIELD = "it is not on the start field of a function"

_NO_SECTION = 0
"""The code section of a function that no relocation places: the index that ELF reserves for "none"."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A relocation of the section that is not applied."""

    offset: int
    reason: str
    undefined: bool = False
    """Whether it is where it should be, and names no symbol: the code that it was about is gone."""


@dataclass(repr=False)
class SFrameSection:
    """One complete SFrame section at its place; a linker without knowledge of SFrame puts several into one.

    >>> [section] = walkback.ElfFile("a.out").sframe
    >>> section.section.version, len(section.section.functions), len(section.table)
    (3, 3, 3)
    """

    position: int
    """From the start of the ELF section."""
    section: Section

    def __repr__(self) -> str:
        section = self.section
        functions, rows = len(section.functions), len(section.row_start)
        return f"SFrameSection(version={section.version}, functions={functions}, rows={rows}, position={self.position})"

    @cached_property
    def table(self) -> UnwindTable:
        """The neutral table of the section."""
        return to_table(self.section)


@dataclass(repr=False)
class Source(OneLine):
    """One place where SFrame data stands.

    >>> [source] = walkback.sframe.read("a.out")
    >>> source.name, hex(source.address), [source.function_names(piece.section) for piece in source.pieces()]
    ('.sframe', '0x2000', [['_start', 'main', 'compute']])
    """

    file: str
    """The path; for a member of an archive `archive(member)`."""
    name: str
    """Of the ELF section; `PT_GNU_SFRAME` when there are no section headers; empty for raw bytes."""
    data: memoryview
    address: int
    elf: ElfFile | None = None
    index: int | None = None
    """Of the ELF section."""
    strays: list[Stray] = field(default_factory=list)
    """Relocations that could not be applied; known once the pieces are read."""
    _names: FileNames | None = field(default=None, repr=False)

    def pieces(self, *, faults: bool = False) -> Iterator[SFrameSection]:
        """Read what stands here; nothing for an empty section. `faults` as for `decode`."""
        self.strays.clear()
        if not len(self.data):
            return
        try:
            for position, section in decode_all(self.data, address=self.address, faults=faults):
                piece = SFrameSection(position, section)
                if self.relocatable:
                    self._place_piece(piece)
                yield piece
        except SFrameError as error:
            raise error.within(file=self.file, section=self.name) from None

    def batches(self, *, faults: bool = False) -> list[SectionBatch]:
        """The same, read at once: see `walkback.sframe.batch`."""
        self.strays.clear()
        if not len(self.data):
            return []
        found = self._batches(faults)
        if self.relocatable:
            field = np.concatenate([one.field for one in found])
            width = np.repeat([_width(one.section) for one in found], [len(one.field) for one in found])
            self._place([one.section for one in found], field, width, slice(None))
        return found

    def _batches(self, faults: bool) -> list[SectionBatch]:
        try:
            return list(batches(self.data, address=self.address, faults=faults))
        except SFrameError as error:
            raise error.within(file=self.file, section=self.name) from None

    @property
    def relocatable(self) -> bool:
        """Whether relocations give the functions their places."""
        return self.elf is not None and self.index is not None and self.elf.is_relocatable

    @property
    def file_offset(self) -> int | None:
        """Where the section begins in its ELF file."""
        if self.elf is None or self.index is None:
            return None
        return int(self.elf.sections["offset"][self.index])

    @property
    def symbols(self) -> SymbolIndex | None:
        """Names for the functions, if the file has any."""
        return None if self._names is None else self._names.symbols

    @property
    def plt(self) -> PltNames | None:
        """The procedure linkage table of a linked file."""
        return None if self._names is None else self._names.plt

    def function_names(self, section: Section) -> list[str | None]:
        """The symbol at each function's start; symbols that cannot be read name nothing."""
        if self._names is None:
            return [None] * len(section.functions)
        return self._names.at(section.code_address, section.code_section)

    def code_section_name(self, index: int) -> str | None:
        """The name of a text section; None for no section, and where there are only addresses."""
        return None if self.elf is None or index <= 0 else self.elf.section_name(index)

    def place(self, code_section: int, address: int) -> str:
        """A place in the code, for a person: an address, or text section and offset."""
        if not self.relocatable:
            return f"{address:#x}"
        return f"{self.code_section_name(code_section) or '(not relocated)'}+{address:#x}"

    @cached_property
    def _relocations(self) -> Relocations:
        assert self.elf is not None
        assert self.index is not None
        return relocations_for(self.elf, self.index)

    @property
    def relocations(self) -> np.ndarray:
        """The relocations of the ELF section, by offset; applied only in relocatable files."""
        return self._relocations.table

    def _place_piece(self, piece: SFrameSection) -> None:
        """Give each function of a piece its text section and offset there."""
        section, end = piece.section, piece.position + piece.section.length
        # Section by section this must not cost more than the relocations of the section: a linker that knows nothing
        # of SFrame concatenates thousands.
        ends = np.array([piece.position, end], np.uint64)
        first, stop = np.searchsorted(self.relocations["offset"], ends).tolist()
        stop = len(self.relocations) if end == len(self.data) else stop
        count = len(section.functions)
        field = piece.position + section.fde_start + np.arange(count) * section.fde_size
        self._place([section], field, np.full(count, _width(section)), slice(first, stop))

    def _place(self, sections: list[Section], field: I64, width: I64, chosen: slice) -> None:
        """Give functions, whose start fields these are, their places by some of the relocations."""
        entries, targets = self.relocations[chosen], self.relocation_targets[chosen]
        idle = self._types(entries["type"], elf_layout.NO_RELOCATION)
        entries, targets = entries[~idle], targets[~idle]
        order = np.argsort(field, kind="stable")
        number = np.searchsorted(field[order].astype(np.uint64), entries["offset"])
        inside = number < len(field)
        function = order[number[inside]]
        on_field = inside.copy()
        on_field[inside] = field[function].astype(np.uint64) == entries["offset"][inside]
        function = function[on_field[inside]]
        self._note(entries, ~on_field, NOT_ON_A_FIELD)
        right = np.zeros(len(entries), np.bool_)
        for size in (4, 8):
            kinds = {kind for kind, bytes_ in elf_layout.PC_RELATIVE.items() if bytes_ == size}
            right[on_field] |= self._types(entries["type"][on_field], kinds) & (width[function] == size)
        self._note(entries, on_field & ~right, "its type does not write a PC-relative offset as wide as the field")
        again = np.zeros(len(entries), np.bool_)
        again[1:] = entries["offset"][1:] == entries["offset"][:-1]
        self._note(entries, on_field & again, "it is not the only one on its field")
        function = function[right[on_field]]
        entries, targets = entries[right], targets[right]
        defined = targets["section"] > 0
        gone = entries["symbol"] == 0
        self._note(entries, ~defined & gone, "its symbol is in no section of this file", undefined=True)
        self._note(entries, ~defined & ~gone, "its symbol is in no section of this file")
        start = np.concatenate([one.functions.start for one in sections])
        code_section = np.full(len(field), _NO_SECTION, np.int32)
        code_address = np.concatenate([one.code_address for one in sections])
        stored = np.where(entries["has_addend"], entries["addend"], start[function])
        code_section[function[defined]] = targets["section"][defined]
        code_address[function[defined]] = (targets["value"] + stored)[defined].view(np.uint64)
        border = np.cumsum([len(one.functions) for one in sections])[:-1]
        for section, its_section, its_address in zip(
            sections, np.split(code_section, border), np.split(code_address, border), strict=True
        ):
            section.code_section, section.code_address = its_section, its_address

    def _note(self, entries: np.ndarray, chosen: Bools, reason: str, *, undefined: bool = False) -> None:
        """Keep the chosen relocations as strays."""
        self.strays += [Stray(offset, reason, undefined) for offset in entries["offset"][chosen].tolist()]

    def _types(self, types: np.ndarray, kinds: Iterable[tuple[int, int]]) -> Bools:
        """Which of the relocation types are of these kinds, on this machine."""
        assert self.elf is not None
        return np.isin(types, [kind for machine, kind in kinds if machine == self.elf.machine])

    @cached_property
    def relocation_targets(self) -> Records:
        """Section and value of each relocation's symbol: a table of `RELOCATION_TARGET`."""
        assert self.elf is not None
        return self._relocations.targets(self.elf)


def _width(section: Section) -> int:
    """Bytes of a start field."""
    return 8 if section.version == 3 else 4


def read(source: Input, *, section: str | None = None, address: int = 0) -> Iterator[Source]:
    """The places in a file where SFrame data stands.

    `section` chooses by name; `address` is where raw bytes are loaded. The file may also be a package, a compressed
    ELF file or a kernel. Raises `MissingError` if it has none, `UnreadableError` if it is of another kind, and at the
    end if members of an archive cannot be read.

    >>> [(source.file, len(list(source.pieces()))) for source in walkback.sframe.read("libcalls.a")]
    [('libcalls.a(one.o)', 1), ('libcalls.a(two.o)', 1)]
    """
    data, name = contents_of(source)
    found: list[Source] | Iterator[Source]
    if is_archive(data) or is_elf(data) or packed_words(data, name) is not None:
        found = _in_files(source, section)
    elif bytes(data[:2]) in {b"\xe2\xde", b"\xde\xe2"}:
        found = [Source(name, "", data[:], address)]
    else:
        raise UnreadableError("this is not an ELF file, archive or SFrame section", file=name)
    empty = True
    for place in found:
        empty = False
        yield place
    if empty:
        raise no_section(data, name) if section is None else MissingError(f"there is no {section} section", file=name)


def no_section(data: Contents, name: str) -> MissingError:
    """The error for a file without a section; of an ELF file it says what makes one."""
    makes_one = _WHO_MAKES.get(ElfFile(data, name).type, "") if is_elf(data) else ""
    return MissingError(f"there is no .sframe section{makes_one}", file=name)


def _in_files(source: Input, section: str | None) -> Iterator[Source]:
    """In the ELF file, or in all of an archive or package; what is wrong with one does not hide those after it."""
    errors: list[WalkbackError] = []
    try:
        for elf in found_elf_files(source, errors):
            try:
                yield from sources_of(elf, section=section)
            except WalkbackError as error:
                errors.append(error.within(file=elf.name))
    except WalkbackError as error:
        errors.append(error)
    raise_first(errors, "files")


def from_bytes(data: Buffer, *, address: int = 0, name: str = "<bytes>") -> Source:
    """SFrame data in memory."""
    return Source(name, "", memoryview(data).cast("B"), address)


def sources_of(elf: ElfFile, *, section: str | None = None) -> Iterator[Source]:
    """The places in one ELF file where SFrame data stands; none is no error.

    By type and name; by segment where there are no section headers.
    """
    names = FileNames(elf)
    if section is not None:
        indices = elf.sections_named(section)
    elif len(elf.sections):
        indices = sframe_sections(elf, empty=True)
    else:
        indices = []
        for number in np.flatnonzero(elf.segments["type"] == elf_layout.PT_GNU_SFRAME).tolist():
            data = _header_extent(elf.segment_data(number))
            address = int(elf.segments["vaddr"][number])
            yield Source(elf.name, "PT_GNU_SFRAME", data, address, elf, _names=names)
    errors: list[WalkbackError] = []
    for index in indices:
        header, name = elf.sections[index], elf.section_name(index)
        try:
            if header["type"] == elf_layout.SHT_NOBITS:
                message = "the section has no contents in this file (SHT_NOBITS); a debug file has them elsewhere"
                raise MissingError(message, file=elf.name, section=name)
            data = elf.section_data(index)
        except WalkbackError as error:
            errors.append(error)
            continue
        yield Source(elf.name, name, data, int(header["addr"]), elf, index, _names=names)
    raise_first(errors, "sections")


def _header_extent(data: memoryview) -> memoryview:
    """GNU ld makes the segment larger than the section in it; the header says where it ends."""
    try:
        first = next(decode_all(data, faults=True))[1]
    except SFrameError:
        return data
    return data[: max(first.end, first.fde_end)]
