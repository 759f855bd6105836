"""What the SFrame sections of one address space, or of one object, say together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError, LeftOut, SFrameError, UnreadableError
from walkback.base.text import counted
from walkback.elf import ElfFile
from walkback.sframe import layout
from walkback.sframe.batch import SectionBatch
from walkback.sframe.files import NOT_ON_A_FIELD, Source
from walkback.sframe.rules import to_table
from walkback.sframe.section import RowFault, Section
from walkback.sframe.together import ObjectSections, together
from walkback.table.table import UnwindTable, joined


@dataclass(frozen=True, slots=True)
class Gathered:
    """The functions of all sections as one table; `range_origin` numbers them through."""

    table: UnwindTable
    live: Bools
    """For each function whether its code is there."""
    piece: I64
    """For each function the number of its complete section; one section of a file can hold several of these."""
    place: I64
    """For each function the number of the source that it comes from, as they were given."""
    unreadable: dict[int, str]
    """Functions whose rows cannot be relied on, with the reason."""
    abi: int
    written: ByteOrder
    """The byte order of the first section."""
    version: int
    """The highest of the sections."""
    versions: tuple[int, ...]
    pcrel: bool
    """Whether any section's starts count from their own fields."""
    frame_pointer: bool
    """Whether all sections have the flag that every function keeps the frame pointer."""
    pieces: int
    """How many complete sections there are."""
    unmarked: int
    """Those whose starts count from their own fields though nothing in them says so."""
    batches: tuple[SectionBatch, ...]
    sources: tuple[Source, ...]
    """Where each batch stands."""
    first: tuple[int, ...]
    """The number of each batch's first function, and one more."""

    @property
    def byteorder(self) -> ByteOrder:
        """That of the machine: a section can be written in the other, and is of no use to it."""
        return layout.ABI_BYTE_ORDERS[self.abi]

    @property
    def files(self) -> list[ElfFile]:
        """The files that the code is in."""
        return list({id(source.elf): source.elf for source in self.sources if source.elf is not None}.values())

    def piece_of(self, table: UnwindTable) -> I64:
        """The complete section that each range of a table made of this one comes from."""
        return self.piece[table.range_origin]

    def place_of(self, table: UnwindTable) -> I64:
        """The same for the source."""
        return self.place[table.range_origin]

    def live_ones(self, table: UnwindTable) -> Bools:
        """Which ranges of a table made of this one have code where they start."""
        live = np.ones(len(table), np.bool_)
        batch = np.searchsorted(self.first, table.range_origin, side="right") - 1
        for number in distinct(batch).tolist():
            chosen = np.flatnonzero(batch == number)
            live[chosen] = _live(self.sources[number], table.chosen(chosen))
        return live

    def left_out(self, reasons: dict[int, str]) -> list[LeftOut]:
        """Functions, by their numbers, with names and places."""
        numbers = np.array(sorted(reasons), np.int64)
        border = np.searchsorted(numbers, self.first)
        return [
            one
            for source, first, end in zip(self.sources, border[:-1], border[1:], strict=True)
            for one in self._of_source(source, numbers[first:end], reasons)
        ]

    def _of_source(self, source: Source, numbers: I64, reasons: dict[int, str]) -> Iterator[LeftOut]:
        table = self.table.chosen(numbers)
        names: list[str | None] = [None] * len(table)
        if source.symbols is not None and len(table):
            with suppress(UnreadableError):  # symbols that cannot be read name nothing
                names = source.symbols.names_at(table.range_start, table.range_section)
        columns = (numbers, names, table.range_section, table.range_start, table.range_size)
        for number, name, section, start, size in zip(*columns, strict=True):
            where = source.code_section_name(int(section))
            yield LeftOut(source.file, where, int(start), int(size), name, reasons[int(number)])


def gather(sources: Iterable[Source], *, leave_out: bool = False) -> Gathered | None:
    """Read all that stands in these places; None if that is nothing.

    What cannot be read, or has no known meaning, raises an error; with `leave_out` functions whose rows cannot be read
    are listed in `unreadable`, and parts without a known meaning are passed over. Sections for different machines raise
    `InexpressibleError`.
    """
    read: list[tuple[Source, SectionBatch, I64]] = []
    for source, found, numbers in _batches(list(sources), leave_out):
        _check_relocations(source, found)
        for batch in found:
            part, name = np.zeros(1, np.int64), source.name
            if isinstance(source, ObjectSections):
                part = np.searchsorted(source.starts, batch.position, "right") - 1
                name = source.parts[int(part[0])].name
            _check(source, name, batch.section, leave_out)
            read.append((source, batch, np.repeat(np.broadcast_to(numbers[part], batch.position.shape), batch.counts)))
    if not read:
        return None
    _check_machines(read)
    tables, live, pieces, unmarked = [], [], [], 0
    count = 0
    unreadable: dict[int, str] = {}
    first = [0]
    for source, batch, _ in read:
        if _may_be_unmarked(source, batch.section):
            # Call frame information is wanted for this alone, and takes time to import.
            from walkback.sections.linking.unmarked import count_from_fields

            unmarked += count_from_fields(source, batch)
        table = to_table(batch.section)
        tables.append(replace(table, range_origin=first[-1] + table.range_origin))
        live.append(_live(source, table))
        pieces.append(count + np.repeat(np.arange(len(batch.position)), batch.counts))
        count += len(batch.position)
        fault = batch.section.functions.fault
        for number in np.flatnonzero(fault).tolist():
            unreadable[first[-1] + number] = RowFault(int(fault[number])).words
        first.append(first[-1] + len(table))
    sections = [batch.section for _, batch, _ in read]
    return Gathered(
        table=joined(tables),
        live=np.concatenate(live),
        piece=np.concatenate(pieces),
        place=np.concatenate([numbers for _, _, numbers in read]),
        unreadable=unreadable,
        abi=sections[0].abi_arch,
        written=sections[0].byteorder,
        version=max(one.version for one in sections),
        versions=tuple(sorted({one.version for one in sections})),
        pcrel=any(one.pcrel for one in sections),
        frame_pointer=all(one.version < 3 and one.flags & layout.F_FRAME_POINTER for one in sections),
        pieces=count,
        unmarked=unmarked,
        batches=tuple(batch for _, batch, _ in read),
        sources=tuple(source for source, _, _ in read),
        first=tuple(first),
    )


def _batches(sources: Sequence[Source], faults: bool) -> Iterator[tuple[Source, list[SectionBatch], I64]]:
    """What stands in the sources, with their numbers; those of an object as one, unless relocations are astray."""
    some = [number for number, source in enumerate(sources) if len(source.data)]
    if len(some) > 1 and all(sources[number].relocatable for number in some):
        all_of_them = together([sources[number] for number in some])
        found = all_of_them.batches(faults=faults)
        if all(stray.undefined for stray in all_of_them.strays):
            yield all_of_them, found, np.array(some, np.int64)
            return
    for number in some:
        yield sources[number], sources[number].batches(faults=faults), np.array([number], np.int64)


def _check_relocations(source: Source, found: list[SectionBatch]) -> None:
    """A relocation that means no function would be lost, and so would be what it was meant for."""
    if source.relocatable:
        _check_some(source, found)
    stray = next((stray for stray in source.strays if not stray.undefined), None)
    if stray is None:
        return
    # Call frame information is wanted for this alone, and takes time to import.
    from walkback.sections.linking.displaced import place_in_order

    if not place_in_order(source, found):
        hint = " (so with what GNU ld -r makes up to 2.44)" if stray.reason == NOT_ON_A_FIELD else ""
        message = f"a relocation cannot be applied: {stray.reason}{hint}"
        raise SFrameError(message, file=source.file, section=source.name, offset=stray.offset, rule="relocation-stray")


def _check_some(source: Source, found: list[SectionBatch]) -> None:
    """A section of an object without any relocation has lost them."""
    starts = source.starts if isinstance(source, ObjectSections) else [0]
    fields = np.concatenate([np.zeros(0, np.int64), *(batch.field for batch in found)])
    places = (fields, source.relocations["offset"].astype(np.int64))
    functions, relocations = (
        np.bincount(np.searchsorted(starts, one, "right"), minlength=len(starts) + 1) for one in places
    )
    lost = np.flatnonzero((functions > 0) & (relocations == 0))
    if len(lost):
        name = source.parts[int(lost[0]) - 1].name if isinstance(source, ObjectSections) else source.name
        message = f"no relocation places the {counted(int(functions[lost[0]]), 'function')}"
        raise SFrameError(message, file=source.file, section=name, rule="relocation-missing")


def _check(source: Source, name: str, section: Section, leave_out: bool) -> None:
    """Refuse what has no known meaning, and so cannot be said in another place or version."""
    problem, rule, offset = "", "", 0
    unknown = section.flags & ~layout.FLAGS_DEFINED[section.version]
    machine = section.machine
    if machine is None:
        problem, rule, offset = f"ABI {section.abi_arch} is unknown, so its rows have no meaning", "header-abi", 4
    elif source.elf is not None and not _is_for(section, source.elf):
        text = f"the section is for {layout.ABI_NAMES[section.abi_arch]}, and the file is not"
        problem, rule, offset = text, "header-abi", 4
    elif unknown and not leave_out:
        problem, rule, offset = f"version {section.version} does not define flags {unknown:#x}", "header-flags", 3
    elif section.auxiliary and not leave_out:
        text = f"nobody knows the meaning of the auxiliary header of {len(section.auxiliary)} bytes"
        problem, rule, offset = text, "header-auxiliary", 7
    if problem:
        raise InexpressibleError(problem, file=source.file, section=name, offset=offset, rule=rule)


def _is_for(section: Section, elf: ElfFile) -> bool:
    """Whether a section is about the machine and the byte order of a file."""
    machine, order = layout.ABI_MACHINES[section.abi_arch], layout.ABI_BYTE_ORDERS[section.abi_arch]
    return (machine.elf_machine, order) == (elf.machine, elf.byteorder)


def _check_machines(read: list[tuple[Source, SectionBatch, I64]]) -> None:
    """Machines and byte orders that differ do not go together."""
    first = read[0][1].section
    for source, batch, _ in read:
        section = batch.section
        if section.abi_arch != first.abi_arch:
            names = [layout.ABI_NAMES[one.abi_arch] for one in (section, first)]
            message = f"this section is for {names[0]}, and another for {names[1]}"
            raise InexpressibleError(message, file=source.file, section=source.name, offset=4, rule="header-abi")


def _live(source: Source, table: UnwindTable) -> Bools:
    """Which functions have code: a linker that drops code can leave what describes it.

    What it leaves has no relocation in an object; in a linked file its start field has no value, and then means a place
    that is no code, such as the field itself.
    """
    if source.relocatable:
        return table.range_section > 0
    start = np.uint64(source.address % 2**64)
    outside: Bools = (table.range_start - start) >= np.uint64(len(source.data))
    return outside if source.elf is None else outside & source.elf.is_code(table.range_start)


def _may_be_unmarked(source: Source, section: Section) -> bool:
    """Whether starts may count from their fields without the flag that says so."""
    return source.elf is not None and not source.relocatable and not (section.pcrel or section.sorted)
