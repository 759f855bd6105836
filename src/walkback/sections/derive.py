"""SFrame for a file that has none: made from the unwind tables that it carries, and proved equal to them.

made = derive("a.out")
print(made.covered, "of", made.functions, "functions")

What the version cannot say is left out by whole functions, each with its reason.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TypedDict

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, GraftError, UnreadableError
from walkback.base.oneline import OneLine
from walkback.base.text import counted
from walkback.dwarf.layout import EntryFault
from walkback.elf import ElfFile, Input
from walkback.elf import layout as elf_layout
from walkback.elf.write import align
from walkback.graft import planned_address
from walkback.packages.found import found_one
from walkback.sections.reading import ReadTables, Tables, read_tables
from walkback.sections.shares import Share, ShareObject
from walkback.sframe.building import Built, build_planned
from walkback.sframe.consumers import consumer_named, version_for
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.fitting import fit
from walkback.sframe.planning import Codings, Plan, Refused, plan_of
from walkback.sframe.relocations import section_relocations
from walkback.sframe.rules import to_table as sframe_table
from walkback.sframe.section import Section
from walkback.table.comparing import Comparison, compare
from walkback.table.source import TableSource
from walkback.table.table import UnwindTable

_PAGE = 0x1000
_CONTRADICTED = "the machine code contradicts its rules"
_MENDED = {"code": "repaired", "reason": "has the rules that the machine code proves"}


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A function that the section does not have."""

    section: int
    """In relocatable files the text section's index; else -1."""
    start: int
    size: int
    name: str | None
    fde: int
    """The number of its FDE; of Go's functions those behind all FDEs."""
    source: str
    """The table that it is in."""
    code: str
    """The name of the reason, which does not change: of a `Refusal`, a `Reason` or a `EntryFault`."""
    reason: str


class CoveredShareObject(ShareObject):
    """What one of several tables gives, and what of that the section has, as JSON."""

    covered: int
    """The number of functions that the section covers, whole."""
    covered_bytes: int
    """The bytes of code that it covers."""


@dataclass(frozen=True, slots=True)
class CoveredShare(Share):
    """What one of several tables gives, and what of that the section has."""

    covered: int
    """How many functions, whole."""
    covered_bytes: int

    def as_object(self) -> CoveredShareObject:
        """For JSON."""
        return {**Share.as_object(self), "covered": self.covered, "covered_bytes": self.covered_bytes}


class RelocationObject(TypedDict):
    """A relocation that the section of an object needs, as JSON."""

    offset: int
    """Its offset in the section."""
    type: int
    """Its type, by the number of the machine's ABI."""
    section: str
    """The text section that it refers to."""
    index: int
    """The index of that section."""
    addend: int
    """What is added."""


@dataclass(repr=False)
class Derived(OneLine):
    """A section made from the unwind tables of a file."""

    read: ReadTables
    """What was to be said."""
    said: UnwindTable
    """What of it the section says: all, or what the consumer wants."""
    built: Built
    contents: bytes
    uncovered: list[Uncovered]
    """In order of their places."""
    unwanted: list[Uncovered]
    """What is left out because the consumer wants no function there, or because the machine code contradicts it."""
    repaired: list[Uncovered]
    """What has the rules that the machine code proves, where it contradicts those of the source."""
    notes: list[str]
    """What was done besides for the consumer."""

    @property
    def source(self) -> TableSource:
        """The section it was made from; the first of several."""
        return self.read.sources[0]

    @property
    def elf(self) -> ElfFile:
        """The file."""
        return self.source.elf

    @property
    def table(self) -> UnwindTable:
        """What was to be said."""
        return self.read.table

    @property
    def section(self) -> Section:
        """The section as columns."""
        return self.built.section

    @property
    def functions(self) -> int:
        """How many functions there are to be said."""
        return self.read.functions

    @property
    def dead(self) -> int:
        """How many functions have no code in the file."""
        return self.read.dead

    @property
    def empty(self) -> int:
        """How many describe no code."""
        return self.read.empty

    @property
    def unreadable(self) -> int:
        """How many cannot be read so far that their code is known; each is among the uncovered, with no size."""
        return len(self.read.unplaced)

    @property
    def shadowed(self) -> int:
        """How many have all their code described by others that hold there."""
        return self.read.shadowed

    @property
    def covered(self) -> int:
        """How many of them the section has whole."""
        return self.functions - len({one.fde for one in (*self.uncovered, *self.unwanted)})

    @property
    def is_whole(self) -> bool:
        """Whether it has every function but those that the consumer does not want."""
        return not self.uncovered and all(one.reason != _CONTRADICTED for one in self.unwanted)

    @property
    def code_bytes(self) -> int:
        """Bytes of the code of all functions."""
        return int(self.table.range_size.sum())

    @property
    def covered_bytes(self) -> int:
        """Bytes of the code that the section covers."""
        return self.code_bytes - sum(one.size for one in (*self.uncovered, *self.unwanted))

    @property
    def shares(self) -> list[CoveredShare]:
        """What comes from each of the tables that were read, in their order."""
        left = [*self.uncovered, *self.unwanted]
        numbers = self.read.sources_of(np.array([one.fde for one in left], np.int64)).tolist()
        found = []
        for number, its in enumerate(self.read.shares()):
            out = [one for one, where in zip(left, numbers, strict=True) if where == number]
            covered = its.functions - len({one.fde for one in out})
            size = its.code_bytes - sum(one.size for one in out)
            found.append(CoveredShare(its.source, its.functions, its.code_bytes, covered, size))
        return found

    def contents_at(self, address: int) -> bytes:
        """The bytes of the section, which stands at the address that it was made for."""
        if address != self.section.address:
            raise ArgumentError(f"the section was made for {self.section.address:#x}, not for {address:#x}")
        return self.contents

    @cached_property
    def read_back(self) -> UnwindTable:
        """What the bytes of the section say."""
        section = decode(self.contents, address=self.section.address)
        section.code_section = self.section.code_section
        if section.code_section is not None:
            section.code_address = self.section.code_address
        return sframe_table(section)

    def proof(self) -> Comparison:
        """Compare what the bytes of the section say with what they should say of the tables."""
        return compare(self.said, self.read_back)

    def relocations(self) -> np.ndarray:
        """Of a relocatable file: where its linker has to write starts, a table of `SECTION_RELOCATION`."""
        return section_relocations(self.section, self.elf)

    def relocation_objects(self) -> list[RelocationObject]:
        """The relocations in words, for JSON."""
        elf = self.elf
        return [
            {"offset": offset, "type": kind, "section": elf.section_name(section), "index": section, "addend": addend}
            for offset, addend, kind, section in self.relocations().tolist()
        ]


def derive(
    source: Input,
    *,
    version: int | None = None,
    address: int | None = None,
    as_written: bool = False,
    section: str | None = None,
    tables: Tables = "auto",
    consumer: str | None = None,
    verify: bool = False,
    repair: bool = False,
) -> Derived:
    """Make the section for a file.

    The version is 3, or with a `consumer` ("linux", "glibc", or for objects "gnu-ld") the one that it reads; then
    functions that would end its walk are left out, and listed in `unwanted`. With `verify` functions whose rules the
    machine code contradicts are left out in the same way; with `repair` they get the rules that it proves, and are
    listed in `repaired`.

    `address` is where it will stand; without one it is the place where `graft.add` would put it, or where that would
    refuse the file the first page behind all that is loaded. `as_written` keeps a
    row wherever an assembler would have written one, and functions in their order. `tables` says what is read: call
    frame information ("cfi"), the table of functions of a Go program ("go"), the ORC table of the Linux kernel ("orc"),
    the rules that the code itself shows ("code"), or all, each where those before it have nothing.
    `section` chooses call frame information by the name of its section; without one it is `.eh_frame`, or where there
    is none `.debug_frame`.

    >>> derived = walkback.derive("hello")
    >>> derived.covered, derived.functions, derived.proof().equal
    (3, 4, True)
    """
    read = read_tables(found_one(source), tables=tables, as_written=as_written, section=section, fills=True)
    return derive_from(
        read, version=version, address=address, consumer=consumer, verify=verify or repair, repair=repair
    )


def derive_from(
    read: ReadTables,
    *,
    version: int | None = None,
    address: int | None = None,
    consumer: str | None = None,
    verify: bool = False,
    repair: bool = False,
    codings: Codings | None = None,
) -> Derived:
    """Make the section that says what was read; the arguments are those of `derive`; `codings` is for `plan_of`."""
    elf = read.sources[0].elf
    target = None if consumer is None else consumer_named(consumer)
    if target is not None and not target.walks and not elf.is_relocatable:
        raise GraftError(f"{target.title} reads the SFrame of objects, and this is a linked file", file=elf.name)
    said, wrong, mended = read.table, list[int](), list[int]()
    if verify:
        from walkback.sections.repair import righted

        said, wrong, mended = righted(elf, said, repair=repair)
    fitted = fit(said, target, [elf], dict.fromkeys(wrong, _CONTRADICTED))
    plan = plan_of(fitted.table, version_for(version, target), codings)
    built = _build(elf, plan, address, read.as_written)
    refused = {int(fitted.kept[one.range]): _reason(read, fitted.table, one) for one in built.refused}
    unwanted = {index: {"code": "unwanted", "reason": reason} for index, reason in fitted.unwanted.items()}
    return Derived(
        read=read,
        said=fitted.table,
        built=built,
        contents=encode(built.section),
        uncovered=[*_uncovered(read, refused), *_unplaced(read)],
        unwanted=_uncovered(read, unwanted),
        repaired=_uncovered(read, dict.fromkeys(mended, _MENDED)),
        notes=[*fitted.notes(), *_about_pointers(read)],
    )


def _about_pointers(read: ReadTables) -> list[str]:
    """What is said of frame pointers that are lost."""
    if not read.lost_pointers:
        return []
    functions = counted(read.lost_pointers, "function")
    return [f"{functions} of Go may lose the frame pointer; SFrame cannot say so, and Go does not need it"]


def _build(elf: ElfFile, plan: Plan, address: int | None, as_written: bool) -> Built:
    """The section for its place, which can depend on its size."""
    by_pointer = plan.version < 3 and not as_written and not plan.table.frameless().any()

    def at(place: int) -> Built:
        return build_planned(
            plan,
            pcrel=None,
            byteorder=elf.byteorder,
            address=place,
            frame_pointer=by_pointer,
            leave_out=True,
            width_by_size=as_written,
            linked=not elf.is_relocatable,
        )

    if elf.is_relocatable or address is not None:
        return at(address or 0)
    try:
        place = planned_address(elf, 0)
        built = at(place)
        while (following := planned_address(elf, built.section.length)) != place:
            place = following
            built = at(place)
    except (GraftError, UnreadableError):
        # It cannot be put into this file, and can be used beside it.
        return at(behind_loaded(elf))
    return built


def behind_loaded(elf: ElfFile) -> int:
    """The first page behind all that is loaded; of a damaged file that can be beyond all addresses, which wrap."""
    loads = elf.segments[elf.segments["type"] == elf_layout.PT_LOAD]
    return align(max((int(load["vaddr"]) + int(load["memsz"]) for load in loads), default=0), _PAGE) % 2**64


def _uncovered(read: ReadTables, reasons: dict[int, dict[str, str]]) -> list[Uncovered]:
    """Ranges, by their numbers, with names and reasons."""
    if not reasons:
        return []
    table = read.table
    ranges = np.array(list(reasons))
    found = [
        Uncovered(
            section=int(table.range_section[index]),
            start=int(table.range_start[index]),
            size=int(table.range_size[index]),
            name=name,
            fde=(number := int(table.range_origin[index])),
            source=read.source_of(number).name,
            **reason,
        )
        for (index, reason), name in zip(reasons.items(), read.names_of(ranges), strict=True)
    ]
    return sorted(found, key=lambda one: (one.section, one.start))


def _unplaced(read: ReadTables) -> list[Uncovered]:
    """FDEs whose code is not known, because they cannot be read."""
    return [
        Uncovered(
            section=-1,
            start=0,
            size=0,
            name=None,
            fde=fde,
            source=read.source_of(fde).name,
            code=_word(fault),
            reason=f"FDE {fde}: {fault.words}",
        )
        for fde in read.unplaced.tolist()
        for fault in [EntryFault(int(read.faults[fde]))]
    ]


def _reason(read: ReadTables, table: UnwindTable, refused: Refused) -> dict[str, str]:
    """Why the section does not have a range of the table: the name of the reason, and the words."""
    fault = EntryFault(int(read.faults[table.range_origin[refused.range]]))
    if fault:
        return {"code": _word(fault), "reason": fault.words}
    return {"code": _word(refused.inexpressible(table) or refused.reason), "reason": refused.text(table)}


def _word(reason: IntEnum) -> str:
    return reason.name.lower().replace("_", "-")
