"""The tables of files that have SFrame, or for which it is derived."""

from __future__ import annotations

from walkback.base.arch import Machine
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.sections.derive import derive
from walkback.sframe import layout
from walkback.sframe.decoding import decode
from walkback.sframe.files import sources_of
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.table.table import UnwindTable, joined


def own_table(elf: ElfFile, machine: Machine, troubles: list[str]) -> tuple[UnwindTable | None, bool]:
    """What a file's sections say, and whether they say that all functions keep the frame pointer."""
    sections: list[Section] = []
    try:
        for source in sources_of(elf):
            sections += [batch.section for batch in source.batches(faults=True)]
    except WalkbackError as error:
        troubles.append(str(error))
    sections = [one for one in sections if one.machine is machine and len(one.functions)]
    if not sections:
        return None, False
    declared = all(one.version < 3 and one.flags & layout.F_FRAME_POINTER for one in sections)
    return joined([to_table(one) for one in sections]), declared


def derived_table(elf: ElfFile, machine: Machine, troubles: list[str]) -> UnwindTable | None:
    """What SFrame of the newest version would say for a file."""
    try:
        made = derive(elf)
        section = decode(made.contents, address=made.section.address)
    except WalkbackError as error:
        troubles.append(str(error))
        return None
    return to_table(section) if section.machine is machine else None
