"""The sections of relocatable objects and of archives of them, written anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from walkback.elf import SECTION_RELOCATION, ElfFile, Member, is_archive, is_elf, layout
from walkback.elf.archivewrite import rewritten
from walkback.elf.write import Part
from walkback.graft import ObjectSection
from walkback.linking.make import Made
from walkback.sframe.relocations import section_relocations


def object_section(
    elf: ElfFile, made: Made | None, *, group: int | None = None, link_order: int | None = None
) -> ObjectSection:
    """A section for an object, with its relocations; without anything made an empty one."""
    if made is None:
        return ObjectSection(b"", np.zeros(0, SECTION_RELOCATION), group=group, link_order=link_order)
    tables = []
    for position, section in made.sections:
        tables.append(section_relocations(section, elf))
        tables[-1]["offset"] += np.uint64(position)
    relocations = np.concatenate([np.zeros(0, SECTION_RELOCATION), *tables])
    return ObjectSection(bytes(made.contents), relocations, made.kind, group, link_order)


def groups(elf: ElfFile) -> dict[int, int]:
    """For each section that is in a group the number of the group."""
    order = "<u4" if elf.byteorder == "little" else ">u4"
    found: dict[int, int] = {}
    for group in elf.sections_of_type(layout.SHT_GROUP):
        contents = elf.section_data(group)
        for member in np.frombuffer(contents, order, len(contents) // 4)[1:].tolist():
            found.setdefault(member, group)
    return found


def rewrite_files(
    data: memoryview, path: str | os.PathLike[str], change: Callable[[ElfFile], Sequence[Part]]
) -> Sequence[Part]:
    """A copy of an ELF file, or of an archive with each of its ELF files, as `change` makes it."""
    name = os.fsdecode(path)
    if not is_archive(data):
        return change(ElfFile(data, name))

    def changed(member: Member) -> Sequence[Part] | None:
        return change(ElfFile(member.data, f"{name}({member.name})")) if is_elf(member.data) else None

    return rewritten(data, name, changed)
