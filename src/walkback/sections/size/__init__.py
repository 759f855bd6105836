"""What stack-trace tables cost: the bytes that a file spends, and those that each version of SFrame would take.

sizes = measure("a.out")
print(sizes.call_frames, sizes.versions[3].parts.total)

The versions are derived from the call frame information of the file, or from Go's table of functions, for a place
behind all that it loads. Relocations are not counted, since linked files have none for these sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from walkback.base.arrays import distinct, marked
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError, MissingError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.dwarf import layout as dw
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile, Input
from walkback.elf import layout as elf_layout
from walkback.elf.inputs import raise_first
from walkback.elf.kernel import ENTRIES, PLACES
from walkback.packages.found import found_elf_files, input_name
from walkback.sections.derive import Derived, behind_loaded, derive_from
from walkback.sections.reading import ReadTables, Tables, missing_words, read_tables
from walkback.sections.size.parts import Parts, parts_of, parts_of_built
from walkback.sections.size.replacement import Replacement, replacement_of
from walkback.sections.size.whatif import stack_deltas, what_ifs
from walkback.sframe.files import sources_of
from walkback.sframe.layout import VERSIONS
from walkback.sframe.planning import Codings

__all__ = [
    "Compared",
    "Described",
    "ExistingSize",
    "Measured",
    "Parts",
    "Replacement",
    "Sizes",
    "VersionSize",
    "existing_size",
    "measure",
    "measure_frames",
    "section_sizes",
    "total_size",
]


@dataclass(slots=True)
class Described:
    """What a kind of table describes."""

    functions: int
    """The number of functions."""
    code_bytes: int
    """The bytes of their code."""


@dataclass(slots=True)
class ExistingSize:
    """The SFrame that a file has."""

    versions: tuple[int, ...]
    """The versions."""
    functions: int
    """The number of entries of the index."""
    rows: int
    """The number of rows."""
    parts: Parts
    """The bytes by what they are for."""


@dataclass(slots=True, repr=False)
class VersionSize(OneLine):
    """What a version would take."""

    files: int
    """The number of files, or members, for which it can be made."""
    functions: int
    """The number of FDEs that describe code of the file."""
    covered: int
    """The number of them that the version can express."""
    entries: int
    """The number of entries of the index: a function that another interrupts has several."""
    rows: int
    """The number of rows."""
    parts: Parts
    """The bytes by what they are for."""
    what_if: dict[str, int]
    """The bytes of the whole section with a change to the format, by its name."""

    @property
    def uncovered(self) -> int:
        """Functions that the version cannot say."""
        return self.functions - self.covered


@dataclass(slots=True)
class Compared:
    """A version against `.eh_frame` and `.eh_frame_hdr`, over the files (or members) that have both."""

    bytes: int
    """The bytes of the version."""
    call_frames: int
    """The bytes of `.eh_frame` and `.eh_frame_hdr`."""
    replacement: int = 0
    """Of version 3: the bytes that it would need in addition to replace `.eh_frame`."""
    numbered: int = 0
    """The same, with numbered sets of registers."""


@dataclass(slots=True, repr=False)
class Sizes(OneLine):
    """The bytes of one file, of an archive, or of many files."""

    file: str
    """The input; `total` for the sum of several."""
    files: int = 1
    """The number of files."""
    members: int = 1
    """The number of ELF files, with each member of an archive."""
    without: int = 0
    """The number of members without unwind tables, or without those that were chosen."""
    file_bytes: int = 0
    """The size of the file; of an archive, the sum over its members."""
    text_bytes: int = 0
    """The size of the executable sections."""
    eh_frame: int = 0
    """The size of `.eh_frame`."""
    eh_frame_hdr: int = 0
    """The size of `.eh_frame_hdr`."""
    debug_frame: int = 0
    """The size of `.debug_frame`, not compressed."""
    orc: int = 0
    """The size of `.orc_unwind` and `.orc_unwind_ip`."""
    described: dict[str, Described] = field(default_factory=dict)
    """By kind of table (`cfi`, `go`, `orc`, `code`), what it describes."""
    sframe: ExistingSize | None = None
    """The SFrame in the file."""
    versions: dict[int, VersionSize] = field(default_factory=dict)
    """By version, what it would take."""
    impossible: dict[int, str] = field(default_factory=dict)
    """By version, the first reason why it cannot be made at all."""
    compared: dict[int, Compared] = field(default_factory=dict)
    """By version, its size against that of call frame information."""
    replacement: Replacement | None = None
    """What version 3 would need in addition to replace `.eh_frame`."""

    def __add__(self, other: Sizes) -> Sizes:
        total: Sizes = _sum(self, other)
        return total

    @property
    def call_frames(self) -> int:
        """The bytes that SFrame is compared with: `.eh_frame` and `.eh_frame_hdr`."""
        return self.eh_frame + self.eh_frame_hdr


def size(source: Input, *, tables: Tables | None = None) -> Sizes:
    """Measure a file, or all members of an archive together.

    The versions are those of the tables that the file has; with `tables` those that `derive` makes. Raises
    `MissingError` if there is neither such a table nor SFrame.

    >>> sizes = walkback.size("hello")
    >>> sizes.eh_frame, sizes.versions[3].parts.total
    (152, 117)
    """
    errors: list[WalkbackError] = []
    name = input_name(source)
    found = total_size((_of_elf(elf, tables) for elf in found_elf_files(source, errors)), name)
    raise_first(errors, "files")
    if found.without == found.members:
        missing = f"there is no {dw.EH_FRAME}, {dw.DEBUG_FRAME} or .sframe section"
        raise MissingError(missing if tables is None else missing_words(tables), file=name)
    found.files = 1
    return found


def total_size(sizes: Iterable[Sizes], name: str = "total") -> Sizes:
    """The sum of several."""
    found = Sizes(name, files=0, members=0)
    for one in sizes:
        found += one
    return replace(found, file=name)


def _sum(one: Any, other: Any) -> Any:
    """Numbers are added wherever they stand; of what else there is the first is kept."""
    if one is None or other is None:
        return other if one is None else one
    if is_dataclass(one):
        return replace(one, **{it.name: _sum(getattr(one, it.name), getattr(other, it.name)) for it in fields(one)})  # type: ignore[type-var]  # of any dataclass
    if isinstance(one, dict):
        return {key: _sum(one.get(key), other.get(key)) for key in sorted({*one, *other})}
    if isinstance(one, tuple):
        return tuple(sorted({*one, *other}))
    return one + other if isinstance(one, int) else one


def _of_elf(elf: ElfFile, tables: Tables | None) -> Sizes:
    found = measure_frames(elf, tables=tables)
    found.sizes.sframe = existing_size(elf)
    found.sizes.without = int(found.read is None and (found.sizes.sframe is None or tables is not None))
    return found.sizes


@dataclass(slots=True)
class Measured:
    """The unwind tables of one ELF file, and what was made to measure them."""

    sizes: Sizes
    read: ReadTables | None = None
    """What they say, if it has some."""
    derived: dict[int, Derived] = field(default_factory=dict)
    """The section of each version that can be made."""


def measure_frames(
    elf: ElfFile, sources: Sequence[FrameSource] | None = None, *, tables: Tables | None = None
) -> Measured:
    """Measure all but the SFrame that a file has; `sources`: its call frame information, if that is known.

    Without `tables` these are all that the file has, and the code says nothing.
    """
    sources = list(frame_sources(elf)) if sources is None else sources
    found = Measured(section_sizes(elf, sources))
    for source in sources:
        if source.index is None:
            # Without section headers nothing says where it ends, but for the terminator behind its entries.
            ends = (source.frames.cies.end, source.frames.fdes.end)
            found.sizes.eh_frame += max((int(end.max()) + 4 for end in ends if len(end)), default=0)
    with suppress(MissingError):
        chosen = "auto" if tables is None else tables
        found.read = read_tables(elf, tables=chosen, frames=sources, fills=tables is not None)
        for kind, its in found.read.by_kind().items():
            size = found.read.ruled_from_code() if kind == "code" else sum(one.code_bytes for one in its)
            found.sizes.described[kind] = Described(sum(one.functions for one in its), size)
        _derive_all(elf, found.read, found)
    return found


def section_sizes(elf: ElfFile, sources: Iterable[FrameSource]) -> Sizes:
    """Measure what section headers show of a file, for any machine."""
    sizes = Sizes(elf.name, file_bytes=len(elf.data), text_bytes=_text_bytes(elf))
    sizes.eh_frame_hdr = _header_bytes(elf)
    for name in (ENTRIES, PLACES):
        sizes.orc += int(elf.sections["size"][elf.sections_named(name)].sum())
    for source in sources:
        if source.name == dw.DEBUG_FRAME:
            sizes.debug_frame += len(source.data)
        elif source.index is not None and source.name != dw.EH_FRAME_HDR:
            sizes.eh_frame += len(source.data)
    return sizes


def _derive_all(elf: ElfFile, read: ReadTables, found: Measured) -> None:
    place, sizes, codings = _place(elf), found.sizes, Codings(read.table)
    for version in VERSIONS:
        try:
            made = derive_from(read, version=version, address=place, codings=codings)
        except InexpressibleError as error:
            sizes.impossible[version] = error.message
            continue
        found.derived[version] = made
        sizes.versions[version] = _version_size(made)
        if version == VERSIONS[-1]:
            sizes.replacement = replacement_of(made)
        if sizes.call_frames and read.is_cfi:
            sizes.compared[version] = _compared(sizes, version)


def _compared(sizes: Sizes, version: int) -> Compared:
    found = Compared(sizes.versions[version].parts.total, sizes.call_frames)
    if version == VERSIONS[-1] and sizes.replacement is not None:
        found.replacement, found.numbered = sizes.replacement.total, sizes.replacement.numbered_total
    return found


def _version_size(made: Derived) -> VersionSize:
    section = made.section
    parts = parts_of_built(section)
    what_if = what_ifs(section, parts.total, _text_sections(made))
    if section.version == VERSIONS[-1]:
        what_if["stack_deltas"] = stack_deltas(made.read_back)
    return VersionSize(
        files=1,
        functions=made.functions,
        covered=made.covered,
        entries=len(section.functions),
        rows=len(section.row_start),
        parts=parts,
        what_if=what_if,
    )


def _text_sections(made: Derived) -> int:
    """How many text sections have functions of the section."""
    section, elf = made.section, made.elf
    if section.code_section is not None:
        return len(distinct(section.code_section))
    code = elf.sections[(elf.sections["flags"] & elf_layout.SHF_EXECINSTR) != 0]
    starts = np.sort(code["addr"])
    return int(marked(np.searchsorted(starts, section.code_address, "right"), len(starts) + 1).sum())


def existing_size(elf: ElfFile) -> ExistingSize | None:
    """Measure the SFrame that a file has, if it has some."""
    found = None
    for source in sources_of(elf):
        one = ExistingSize((), 0, 0, Parts())
        for piece in source.pieces(faults=True):
            section = piece.section
            mine = ExistingSize((section.version,), len(section.functions), len(section.row_start), parts_of(section))
            one = _sum(one, mine)
        one.parts.other += len(source.data) - one.parts.total
        found = _sum(found, one)
    return found


def _text_bytes(elf: ElfFile) -> int:
    if not len(elf.sections):
        starts, ends = elf.executable_ranges()
        return sum(int(end) - int(start) for start, end in zip(starts, ends, strict=True))
    sections = elf.sections
    chosen = ((sections["flags"] & elf_layout.SHF_EXECINSTR) != 0) & (sections["type"] != elf_layout.SHT_NOBITS)
    return sum(sections["size"][chosen].tolist())


def _header_bytes(elf: ElfFile) -> int:
    if len(elf.sections):
        chosen = [elf.sections[index] for index in elf.sections_named(dw.EH_FRAME_HDR)]
        return sum(int(one["size"]) for one in chosen if one["type"] != elf_layout.SHT_NOBITS)
    return int(elf.segments["filesz"][elf.segments["type"] == elf_layout.PT_GNU_EH_FRAME].sum())


def _place(elf: ElfFile) -> int | None:
    """An address behind all that is loaded; none in relocatable files, where the linker gives one."""
    return None if elf.is_relocatable else behind_loaded(elf)
