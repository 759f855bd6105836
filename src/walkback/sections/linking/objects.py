"""The sections of relocatable objects and of archives of them, written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from walkback.base.arrays import Records
from walkback.base.errors import UnreadableError
from walkback.elf import Contents, ElfFile, Member, is_archive, is_elf, layout, whole
from walkback.elf.archivewrite import rewritten
from walkback.elf.write import Part, align
from walkback.graft import ObjectSection
from walkback.sections.linking.make import Made
from walkback.sframe.relocations import section_relocations

_ALIGNMENT = 8


def object_section(elf: ElfFile, made: Made) -> ObjectSection:
    """All that was made as one section of an object, with its relocations."""
    return ObjectSection(bytes(made.contents), section_relocations(made.section, elf, made.laid.field), made.kind)


def cut_sections(elf: ElfFile, made: Made) -> Iterator[tuple[int, bytes, Records]]:
    """Of each section that was laid out: its key, its bytes, and its relocations."""
    laid = made.laid
    relocations = section_relocations(made.section, elf, laid.field)
    relocations["offset"] -= np.repeat(laid.position, np.diff(laid.first)).astype(np.uint64)
    places = (laid.position, laid.length, laid.first[:-1], laid.first[1:])
    for position, length, first, end in zip(*(one.tolist() for one in places), strict=True):
        yield int(made.key[first]), bytes(made.contents[position : position + length]), relocations[first:end]


def filled(contents: bytes) -> bytes:
    """A section that goes with a text section, up to the alignment of the next.

    GNU ld before 2.40 takes what it fills between sections for an unordered one, so that there must be nothing.
    """
    return contents.ljust(align(len(contents), _ALIGNMENT), b"\0")


def groups(elf: ElfFile) -> dict[int, int]:
    """For each section that is in a group the number of the group."""
    order = "<u4" if elf.byteorder == "little" else ">u4"
    found: dict[int, int] = {}
    for group in elf.sections_of_type(layout.SHT_GROUP):
        contents = elf.section_data(group)
        for member in np.frombuffer(contents, order, len(contents) // 4)[1:].tolist():
            found.setdefault(member, group)
    return found


def rewrite_files(data: Contents, name: str, change: Callable[[ElfFile], Sequence[Part]]) -> Sequence[Part]:
    """A copy of an ELF file, or of an archive with each of its ELF files, as `change` makes it."""
    if not is_archive(data):
        return change(ElfFile(data, name))

    def changed(member: Member) -> Sequence[Part] | None:
        if is_archive(member.data):
            raise UnreadableError("archives in archives are not changed; extract it", file=f"{name}({member.name})")
        return change(ElfFile(member.data, f"{name}({member.name})")) if is_elf(member.data) else None

    return rewritten(whole(data), name, changed)
