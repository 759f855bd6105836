"""SFrame for a file that has none: made from the call frame information that it carries, and proved equal to it.

made = derive("a.out")
print(made.covered, "of", made.functions, "functions")

Functions are sorted. Where FDEs overlap the one that starts last holds, of those with one start the last in the file.
FDEs of code that is not in the file (left over from what the linker dropped) are left out and counted. What the version
cannot say is left out by whole functions, each with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from walkback.base.arrays import I64, U8, marked
from walkback.base.errors import ArgumentError, GraftError, MissingError, UnreadableError
from walkback.base.oneline import OneLine
from walkback.dwarf.files import FrameSource, frame_sources, in_code
from walkback.dwarf.layout import EntryFault
from walkback.dwarf.rules import to_table
from walkback.elf import ElfFile, Input, one_elf
from walkback.elf import layout as elf_layout
from walkback.elf.write import align
from walkback.graft import planned_address
from walkback.sections.repair import CONTRADICTED, Righted, righted
from walkback.sframe.building import Built, build
from walkback.sframe.consumers import consumer_named, version_for
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.fitting import fit
from walkback.sframe.planning import Refused
from walkback.sframe.relocations import section_relocations
from walkback.sframe.rules import to_table as sframe_table
from walkback.sframe.section import Section
from walkback.symbols import SymbolIndex
from walkback.table.comparing import Comparison, compare
from walkback.table.settle import settled
from walkback.table.table import UnwindTable, joined

_PAGE = 0x1000
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
    """The number of its FDE."""
    code: str
    """The name of the reason, which does not change: of a `Refusal`, a `Reason` or a `EntryFault`."""
    reason: str


@dataclass(slots=True, repr=False)
class ReadFrames(OneLine):
    """What the call frame information of a file says, put in order for SFrame of any version to say it."""

    sources: list[FrameSource]
    """The sections that it stands in, all of one name."""
    table: UnwindTable
    """What is to be said."""
    as_written: bool
    """Whether its rows and functions are as an assembler would have written them."""
    dead: int
    """How many FDEs describe code that is not in the file."""
    empty: int
    """How many FDEs describe no code."""
    shadowed: int
    """How many FDEs have all their code described by others that hold there."""
    unplaced: I64
    """FDEs that cannot be read so far that their code is known."""
    faults: U8
    """What is wrong with each FDE."""
    functions: int
    """How many FDEs there are to be said."""
    symbols: SymbolIndex
    """Names for what cannot be said, read when they are wanted."""


@dataclass(slots=True, repr=False)
class Derived(OneLine):
    """A section made from call frame information."""

    call_frames: ReadFrames
    """What was to be said."""
    said: UnwindTable
    """What of it the section says: all, or what the consumer wants."""
    built: Built
    contents: bytes
    uncovered: list[Uncovered]
    """In order of their places."""
    unwanted: list[Uncovered]
    """What is left out because the consumer wants no function there, or because the machine code contradicts it."""
    mended: list[Uncovered]
    """What has the rules that the machine code proves, where it contradicts those of the source."""
    notes: list[str]
    """What was done besides for the consumer."""

    @property
    def source(self) -> FrameSource:
        """The section it was made from."""
        return self.call_frames.sources[0]

    @property
    def table(self) -> UnwindTable:
        """What was to be said."""
        return self.call_frames.table

    @property
    def section(self) -> Section:
        """The section as columns."""
        return self.built.section

    @property
    def functions(self) -> int:
        """How many FDEs there are to be said."""
        return self.call_frames.functions

    @property
    def dead(self) -> int:
        """How many FDEs describe code that is not in the file."""
        return self.call_frames.dead

    @property
    def empty(self) -> int:
        """How many FDEs describe no code."""
        return self.call_frames.empty

    @property
    def unreadable(self) -> int:
        """How many FDEs cannot be read so far that their code is known; each is among the uncovered, with no size."""
        return len(self.call_frames.unplaced)

    @property
    def shadowed(self) -> int:
        """How many FDEs have all their code described by others that hold there."""
        return self.call_frames.shadowed

    @property
    def covered(self) -> int:
        """How many of them the section has whole."""
        return self.functions - len({one.fde for one in (*self.uncovered, *self.unwanted)})

    @property
    def is_whole(self) -> bool:
        """Whether it has every function but those that the consumer does not want."""
        return not self.uncovered and all(one.reason != CONTRADICTED for one in self.unwanted)

    @property
    def code_bytes(self) -> int:
        """Bytes of the code of all functions."""
        return int(self.table.range_size.sum())

    @property
    def covered_bytes(self) -> int:
        """Bytes of the code that the section covers."""
        return self.code_bytes - sum(one.size for one in (*self.uncovered, *self.unwanted))

    def contents_at(self, address: int) -> bytes:
        """The bytes of the section, which stands at the address that it was made for."""
        if address != self.section.address:
            raise ArgumentError(f"the section was made for {self.section.address:#x}, not for {address:#x}")
        return self.contents

    def proof(self) -> Comparison:
        """Compare what the bytes of the section say with what they should say of the call frame information."""
        said = decode(self.contents, address=self.section.address)
        said.code_section = self.section.code_section
        if said.code_section is not None:
            said.code_address = self.section.code_address
        return compare(self.said, sframe_table(said))

    def relocations(self) -> np.ndarray:
        """Of a relocatable file: where its linker has to write starts, a table of `SECTION_RELOCATION`."""
        return section_relocations(self.section, self.source.elf)

    def relocation_objects(self) -> list[dict[str, Any]]:
        """The relocations in words, for JSON."""
        elf = self.source.elf
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
    consumer: str | None = None,
    verify: bool = False,
    repair: bool = False,
) -> Derived:
    """Make the section for a file.

    The version is 3, or with a `consumer` ("linux", "glibc", or for objects "gnu-ld") the one that it reads; then
    functions that would end its walk are left out, and listed in `unwanted`. With `verify` functions whose rules the
    machine code contradicts are left out in the same way; with `repair` they get the rules that it proves, and are
    listed in `mended`.

    `address` is where it will stand; without one it is the place where `graft.add` would put it, or where that would
    refuse the file the first page behind all that is loaded. `as_written` keeps a
    row wherever an assembler would have written one, and functions in their order. `section` chooses the call frame
    information by the name of its section; without one it is `.eh_frame`, or where there is none `.debug_frame`.

    >>> derived = walkback.derive("hello")
    >>> derived.covered, derived.functions, derived.proof().equal
    (3, 4, True)
    """
    call_frames = read_call_frames(one_elf(source), as_written=as_written, section=section)
    return derive_from(
        call_frames, version=version, address=address, consumer=consumer, verify=verify or repair, repair=repair
    )


def read_call_frames(
    elf: ElfFile,
    *,
    as_written: bool = False,
    section: str | None = None,
    sources: Sequence[FrameSource] | None = None,
) -> ReadFrames:
    """Read what is to be said; the arguments are those of `derive`. `sources`: what the file has, if that is known."""
    found = list(frame_sources(elf, section=section)) if sources is None else sources
    if not found:
        raise MissingError(f"there is no {section or '.eh_frame or .debug_frame'} section", file=elf.name)
    chosen = [one for one in found if one.name == found[0].name]
    first_fde = np.cumsum([0, *(len(one.frames.fdes) for one in chosen)])
    table = joined([to_table(one.frames, as_written=as_written) for one in chosen])
    table.range_origin += np.repeat(first_fde[:-1], np.diff(first_fde)) if len(chosen) > 1 else 0
    faults = np.concatenate([one.frames.fdes.fault for one in chosen])
    unplaced = (faults[table.range_origin] > 0) & (table.range_size == 0)
    live, some = in_code(elf, table) | unplaced, table.range_size > 0
    kept = table.chosen(np.flatnonzero(live & (some | as_written)))
    said = kept if as_written else settled(kept, merge=True)
    there = marked(said.range_origin, len(faults))
    return ReadFrames(
        sources=chosen,
        table=said,
        as_written=as_written,
        dead=int((~live).sum()),
        empty=int((live & ~some & ~unplaced).sum()),
        shadowed=int((marked(table.range_origin[live & some], len(faults)) & ~there).sum()),
        unplaced=table.range_origin[unplaced],
        faults=faults,
        functions=int(there.sum()) + int(unplaced.sum()),
        symbols=SymbolIndex(elf),
    )


def derive_from(
    call_frames: ReadFrames,
    *,
    version: int | None = None,
    address: int | None = None,
    consumer: str | None = None,
    verify: bool = False,
    repair: bool = False,
) -> Derived:
    """Make the section that says what was read; the arguments are those of `derive`."""
    elf = call_frames.sources[0].elf
    target = None if consumer is None else consumer_named(consumer)
    if target is not None and not target.walks and not elf.is_relocatable:
        raise GraftError(f"{target.title} reads the SFrame of objects, and this is a linked file", file=elf.name)
    right = righted(elf, call_frames.table, repair=repair) if verify else Righted(call_frames.table, [], [])
    fitted = fit(right.table, target, [elf], dict.fromkeys(right.wrong, CONTRADICTED))
    built = _build(elf, fitted.table, version_for(version, target), address, call_frames.as_written)
    refused = {int(fitted.kept[one.range]): _reason(call_frames, fitted.table, one) for one in built.refused}
    unwanted = {index: {"code": "unwanted", "reason": reason} for index, reason in fitted.unwanted.items()}
    return Derived(
        call_frames=call_frames,
        said=fitted.table,
        built=built,
        contents=encode(built.section),
        uncovered=[*_uncovered(call_frames, refused), *_unplaced(call_frames.unplaced, call_frames.faults)],
        unwanted=_uncovered(call_frames, unwanted),
        mended=_uncovered(call_frames, dict.fromkeys(right.mended, _MENDED)),
        notes=fitted.notes(),
    )


def _build(elf: ElfFile, table: UnwindTable, version: int, address: int | None, as_written: bool) -> Built:
    """The section for its place, which can depend on its size."""

    def at(place: int) -> Built:
        return build(
            table,
            version=version,
            byteorder=elf.byteorder,
            address=place,
            frame_pointer=version < 3 and not as_written and not table.frameless().any(),
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
        return at(min(behind_loaded(elf), 2**63))
    return built


def behind_loaded(elf: ElfFile) -> int:
    """The first page behind all that is loaded, which of a damaged file can be beyond all addresses."""
    loads = elf.segments[elf.segments["type"] == elf_layout.PT_LOAD]
    return align(max((int(load["vaddr"]) + int(load["memsz"]) for load in loads), default=0), _PAGE)


def _uncovered(call_frames: ReadFrames, reasons: dict[int, dict[str, str]]) -> list[Uncovered]:
    """Ranges, by their numbers, with names and reasons."""
    if not reasons:
        return []
    table = call_frames.table
    ranges = np.array(list(reasons))
    names = call_frames.symbols.names_at(table.range_start[ranges], table.range_section[ranges])
    found = [
        Uncovered(
            section=int(table.range_section[index]),
            start=int(table.range_start[index]),
            size=int(table.range_size[index]),
            name=name,
            fde=int(table.range_origin[index]),
            **reason,
        )
        for (index, reason), name in zip(reasons.items(), names, strict=True)
    ]
    return sorted(found, key=lambda one: (one.section, one.start))


def _unplaced(fdes: I64, faults: U8) -> list[Uncovered]:
    """FDEs whose code is not known, because they cannot be read."""
    return [
        Uncovered(
            section=-1,
            start=0,
            size=0,
            name=None,
            fde=fde,
            code=_word(EntryFault(int(faults[fde]))),
            reason=f"FDE {fde}: {EntryFault(int(faults[fde])).words}",
        )
        for fde in fdes.tolist()
    ]


def _reason(call_frames: ReadFrames, table: UnwindTable, refused: Refused) -> dict[str, str]:
    """Why the section does not have a range of the table: the name of the reason, and the words."""
    fault = EntryFault(int(call_frames.faults[table.range_origin[refused.range]]))
    if fault:
        return {"code": _word(fault), "reason": fault.words}
    return {"code": _word(refused.inexpressible(table) or refused.reason), "reason": refused.text(table)}


def _word(reason: IntEnum) -> str:
    return reason.name.lower().replace("_", "-")
