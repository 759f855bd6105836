"""SFrame sections in another version, byte order or way of counting.

converted = convert("old.o", "new.o", version=3)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, GraftError, InexpressibleError, LeftOut
from walkback.base.oneline import OneLine
from walkback.base.replace import Output, write_output
from walkback.base.text import counted
from walkback.elf import (
    SECTION_RELOCATION,
    ElfFile,
    Input,
    contents_of,
    in_pieces,
    is_archive,
    is_elf,
    opened_file,
)
from walkback.elf import layout as elf_layout
from walkback.elf.sframe import SECTION_NAME
from walkback.elf.write import Part
from walkback.graft import ObjectSection, set_sections
from walkback.packages.found import refuse_packed
from walkback.sections.check import examine_for
from walkback.sections.linking.gather import Gathered, gather
from walkback.sections.linking.make import Form, Made, empty_section, make, refuse_incomplete
from walkback.sections.linking.merge import refuse_lifeless
from walkback.sections.linking.objects import cut_sections, filled, groups, rewrite_files
from walkback.sections.linking.place import Placed, place
from walkback.sframe.files import Source, no_section, read, sources_of

_MIDDLE = 2**63
"""Raw bytes are taken to stand here, so that code before them has lower addresses than code behind."""


@dataclass(slots=True, repr=False)
class Converted(OneLine):
    """What became of the sections of a file."""

    version: int
    """The version written."""
    versions: tuple[int, ...] = ()
    """The versions in the input."""
    sections: int = 0
    """The number of sections written."""
    functions: int = 0
    """The number of functions written."""
    rows: int = 0
    """The number of rows written."""
    former_bytes: int = 0
    """The size of all sections before."""
    bytes: int = 0
    """The size of all sections now."""
    split: int = 0
    """The number of functions that now have several entries, because of their number of rows."""
    left_out: list[LeftOut] = field(default_factory=list)
    """The functions left out."""
    notes: list[str] = field(default_factory=list)
    """Other changes, as sentences."""

    def count(self, gathered: Gathered, made: Made, contents: Sequence[Part]) -> None:
        """Take what one file has into account: what became of it, in these sections."""
        self.versions = tuple(sorted({*self.versions, *gathered.versions}))
        self.sections += sum(len(one) > 0 for one in contents)
        self.functions += made.functions
        self.rows += made.rows
        self.bytes += sum(map(len, contents))
        self.split += made.split
        self.left_out += made.left_out
        self.notes += made.fitting


def convert(
    source: Input,
    output: Output | None = None,
    *,
    version: int | None = None,
    byteorder: ByteOrder | None = None,
    pcrel: bool | None = None,
    leave_out: bool = False,
    consumer: str | None = None,
) -> Converted:
    """Write a copy of a file whose SFrame sections have this version and say the same.

    The file is a linked one, an object, an archive of objects, or raw section bytes; the copy takes its place unless
    there is an `output`. Sections that were concatenated become one. `byteorder` is for raw bytes; `pcrel` says
    whether starts count from their own fields. What the version cannot say raises `IncompleteError`, or is left out and
    reported with `leave_out`. A `consumer` ("linux" or "glibc") makes the version the one that it reads, leaves out
    what it must not find, and raises `GraftError` if it would not load the result.

    >>> converted = walkback.convert("a.out", "new.out", version=2)
    >>> converted.versions, converted.version, converted.functions
    ((3,), 2, 3)
    """
    form = Form.wanted(version, pcrel, byteorder, consumer)
    if form.version is None:
        raise ArgumentError("the version is not given, nor the consumer that it is for")
    data, name = contents_of(source)
    converted = Converted(form.version)
    parts: Sequence[Part]
    refuse_packed(data, name)
    if not is_elf(data) and not is_archive(data):
        parts = [_raw(list(read(source, address=_MIDDLE)), form, converted, leave_out)]
    elif byteorder is not None:
        message = "the byte order of an ELF file is that of its machine; another is for raw section bytes"
        raise InexpressibleError(message, file=name)
    else:
        parts = rewrite_files(data, name, lambda elf: _elf(elf, form, converted, leave_out))
        if not converted.sections and not converted.notes:
            raise no_section(data, name)
    if not leave_out:
        refuse_incomplete(converted.left_out, form.version)
    converted.notes += examine_for(parts, name, form.consumer)
    write_output(output, parts, read=opened_file(data))
    return converted


def _raw(found: list[Source], form: Form, converted: Converted, leave_out: bool) -> Part:
    gathered = gather(found, leave_out=leave_out)
    if gathered is None:
        return b""
    if form.byteorder is None:
        form = replace(form, byteorder=gathered.written)
    made = make(gathered, gathered.table, form, address=_MIDDLE)
    converted.former_bytes = sum(len(source.data) for source in found)
    converted.count(gathered, made, [made.contents])
    converted.left_out = [replace(one, start=(one.start - _MIDDLE) % 2**64) for one in converted.left_out]
    return made.contents


def _elf(elf: ElfFile, form: Form, converted: Converted, leave_out: bool) -> Sequence[Part]:
    found = list(sources_of(elf))
    converted.former_bytes += sum(len(source.data) for source in found)
    if not any(len(source.data) for source in found):
        if found:
            converted.notes.append(f"{elf.name}: the .sframe section is empty and stays so")
        return list(in_pieces(elf.data))
    if elf.is_relocatable:
        return set_sections(elf, _object_sections(elf, found, form, converted, leave_out))
    if len(found) > 1:
        message = f"this file has {len(found)} .sframe sections; `walkback fix` makes one of them"
        raise GraftError(message, file=elf.name)
    gathered = gather(found, leave_out=leave_out)
    assert gathered is not None
    placed: Placed = place(elf, gathered, gathered.table, form)
    converted.count(gathered, placed.made, [placed.made.contents])
    converted.notes += placed.notes
    return placed.parts


def _object_sections(
    elf: ElfFile, found: Sequence[Source], form: Form, converted: Converted, leave_out: bool
) -> list[ObjectSection]:
    """The sections of an object in their new form, each in the group and beside the text section where it was."""
    gathered = gather(found, leave_out=leave_out)
    assert gathered is not None
    refuse_lifeless(gathered)
    live = gathered.table.chosen(np.flatnonzero(gathered.live))
    made = make(gathered, live, form, address=None, key=gathered.place_of)
    if dead := len(gathered.table) - len(live):
        converted.notes.append(f"{elf.name}: dropped: {counted(dead, 'function')} of code that is not there")
    new = {number: (contents, relocations) for number, contents, relocations in cut_sections(elf, made)}
    group_of, none = groups(elf), np.zeros(0, SECTION_RELOCATION)
    sections = []
    for number, source in enumerate(found):
        contents, relocations = new.get(number) or (empty_section(gathered, form) if len(source.data) else b"", none)
        header = elf.sections[source.index]
        ordered = None  # also of one that a linker put together of several
        if header["flags"] & np.uint64(elf_layout.SHF_LINK_ORDER) and 0 < header["link"] < len(elf.sections):
            ordered = int(header["link"])
        group = None if source.index is None else group_of.get(source.index)
        if ordered is not None:
            contents = filled(contents)
        name = source.name if made.kind == elf_layout.SHT_GNU_SFRAME else SECTION_NAME
        sections.append(ObjectSection(contents, relocations, made.kind, group, ordered, name))
    converted.count(gathered, made, [one.contents for one in sections])
    return sections
