"""What keeps readers from using the SFrame of a linked file, or all of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.text import counted
from walkback.elf import ElfFile, layout
from walkback.sections.linking.gather import Gathered
from walkback.sections.linking.make import section_kind
from walkback.sections.linking.merge import Merged
from walkback.sframe import layout as sframe_layout
from walkback.sframe.batch import SectionBatch
from walkback.sframe.files import Source
from walkback.sframe.header import read_header
from walkback.table.table import UnwindTable


def find_problems(elf: ElfFile, gathered: Gathered, merged: Merged) -> list[str]:
    """All that `fix` mends in this file, in words."""
    found = [*_sections(gathered), *merged.account(), *_rows(gathered.table), *_meaningless(gathered)]
    for source, batch in zip(gathered.sources, gathered.batches, strict=True):
        found += _order(elf, batch)
        if source.index is not None:
            found += [*_kept_relocations(source, batch), *_header(elf, source.index, batch)]
    if gathered.pieces == 1:
        found += _extent(gathered.sources[0], gathered.batches[0])
    found += _segments(elf, gathered.sources[0])
    return list(dict.fromkeys(found))


def _sections(gathered: Gathered) -> Iterator[str]:
    sections = len({id(source) for source in gathered.sources})
    if sections > 1:
        yield f"there are {sections} .sframe sections, and readers know of one"
    if gathered.pieces > sections:
        yield f"{gathered.pieces} complete sections follow each other, and readers see the first"
    if len(gathered.versions) > 1:
        yield f"there are versions {' and '.join(map(str, gathered.versions))}"
    if gathered.unmarked:
        yield "starts count from their own fields, and nothing says so: the linker did not know SFrame"


def _meaningless(gathered: Gathered) -> Iterator[str]:
    """What is only passed over on demand."""
    if gathered.unreadable:
        yield f"{counted(len(gathered.unreadable), 'function')} whose rows cannot be read"
    for section in (batch.section for batch in gathered.batches):
        if section.auxiliary:
            yield f"an auxiliary header of {len(section.auxiliary)} bytes, whose meaning nobody knows"
        if unknown := section.flags & ~sframe_layout.FLAGS_DEFINED[section.version]:
            yield f"flags {unknown:#x}, which version {section.version} does not define"


def _rows(table: UnwindTable) -> Iterator[str]:
    """Rows that never hold, and that readers up to GNU 2.44 abort on."""
    span = np.where(table.range_block > 0, np.minimum(table.range_block, table.range_size), table.range_size)
    late = (table.row_offset >= np.repeat(span, table.range_rows)) & np.repeat(table.range_size > 0, table.range_rows)
    if count := int(late.sum()):
        yield f"{counted(count, 'row')} at or behind the end of the function"


def _order(elf: ElfFile, batch: SectionBatch) -> Iterator[str]:
    """What the header says of the functions' order, of their starts, and of the bytes."""
    section, falling = batch.section, batch.section.code_address[1:] < batch.section.code_address[:-1]
    if section.sorted and bool(falling.any()) and len(batch.position) == 1:
        yield "the functions are marked as sorted and are not"
    if not section.sorted:
        yield "the functions are not marked as sorted"
    if section.version == 3 and not section.pcrel:
        yield "starts count from the section, and readers of version 3 want them from their own fields"
    if section.byteorder != elf.byteorder:
        yield f"it is written {section.byteorder}-endian, and the machine is {elf.byteorder}-endian"


def _kept_relocations(source: Source, batch: SectionBatch) -> Iterator[str]:
    """A linked file can keep its relocations; they should still say where the functions are."""
    table, targets = source.relocations, source.relocation_targets
    number = np.searchsorted(table["offset"], batch.field.astype(np.uint64))
    inside = number < len(table)
    number = number[inside]
    here = table["offset"][number] == batch.field[inside].astype(np.uint64)
    says = (targets["value"][number] + table["addend"][number]).view(np.uint64)
    if len(table) and not np.array_equal(says[here], batch.section.code_address[inside][here]):
        yield "the relocations that the linker kept say something else than the fields"


def _header(elf: ElfFile, index: int, batch: SectionBatch) -> Iterator[str]:
    """The header of the ELF section."""
    header = elf.sections[index]
    kind, flags = int(header["type"]), int(header["flags"])
    if kind != section_kind(batch.section):
        name = {layout.SHT_PROGBITS: "SHT_PROGBITS", layout.SHT_GNU_SFRAME: "SHT_GNU_SFRAME"}.get(kind, f"{kind:#x}")
        yield f"the section has type {name}"
    if flags & layout.SHF_LINK_ORDER:
        yield "the section still has SHF_LINK_ORDER"
    others = flags & ~(layout.SHF_ALLOC | layout.SHF_LINK_ORDER)
    if others or not flags & layout.SHF_ALLOC:
        yield f"the section has flags {flags:#x} instead of SHF_ALLOC"


def _extent(source: Source, batch: SectionBatch) -> Iterator[str]:
    """What the header of the only section counts."""
    header, _ = read_header(source.data)
    end = max(header.fde_end, header.end)
    if source.index is not None and len(source.data) > end:
        yield f"{counted(len(source.data) - end, 'byte')} behind the rows"
    if header.num_fres != len(batch.section.row_start):
        yield f"the header counts {header.num_fres} rows, and there are {len(batch.section.row_start)}"


def _segments(elf: ElfFile, source: Source) -> Iterator[str]:
    """PT_GNU_SFRAME, by which programs find the section."""
    found = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
    if len(found) != 1:
        yield f"there are {len(found)} PT_GNU_SFRAME" if len(found) else "there is no PT_GNU_SFRAME"
        return
    segment, size = found[0], len(source.data)
    if source.index is not None:
        section, size = elf.sections[source.index], int(elf.sections["size"][source.index])
        if segment["vaddr"] != section["addr"]:
            yield f"PT_GNU_SFRAME is at {int(segment['vaddr']):#x}, the section at {int(section['addr']):#x}"
        elif segment["offset"] != section["offset"]:
            offsets = f"{int(segment['offset']):#x}, the section at {int(section['offset']):#x}"
            yield f"PT_GNU_SFRAME is at file offset {offsets}"
    for name in ("filesz", "memsz"):
        if int(segment[name]) != size:
            yield f"PT_GNU_SFRAME has {int(segment[name]):#x} bytes, the section {size:#x}"
            return
