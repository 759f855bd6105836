"""Putting an `.sframe` section into a linked file: executables, libraries, static programs.

The former file stays whole inside the new one, except for its headers and for what `plan` says gives way. Behind it
follow the new segment, the names of sections, the record for `drop`, and the section headers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from walkback.base.arrays import Records
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, GraftError
from walkback.elf import ElfFile, layout
from walkback.elf.dynamic import dynamic_entries
from walkback.elf.sframe import SECTION_NAME
from walkback.elf.write import SEGMENT_SIZE, Draft, Headers, Part, Tail
from walkback.graft.drop import drop, is_grafted
from walkback.graft.order import put_in_order, sections_moved
from walkback.graft.plan import GraftPlan, Move, plan_graft
from walkback.graft.record import SECTION_ALIGNMENT, finish
from walkback.graft.room import MOVABLE_TAGS

_PADDING_NAME = ".pad"
_MACHINES = (layout.EM_X86_64, layout.EM_AARCH64, layout.EM_S390)


@dataclass(frozen=True, slots=True)
class Grafted:
    """A new file, and where the section stands in it."""

    parts: list[Part]
    """Its contents, one after the other; what did not change is a view of the former file."""
    address: int
    offset: int
    notes: list[str]
    """What had to be done besides, each a sentence without its full stop."""


def add(elf: ElfFile, contents: Callable[[int], bytes], size: int, kind: int = layout.SHT_GNU_SFRAME) -> Grafted:
    """A copy of a linked file with an `.sframe` section of this type; one that it has is replaced.

    `contents` makes the `size` bytes of the section for the address where it will stand.
    """
    elf, notes = without_section(elf)
    headers = Headers(elf)
    plan = _plan(elf, headers, size)
    section = made_for(contents, plan.address, size)
    try:
        parts = _assemble(elf, headers, plan, section, kind)
    except GraftError as error:
        raise error.within(file=elf.name) from None
    return Grafted(parts, plan.address, plan.offset, [*notes, *plan.notes])


def made_for(contents: Callable[[int], bytes], address: int, size: int) -> bytes:
    """The section for its address; its place was chosen for this size."""
    section = contents(address)
    if len(section) != size:
        raise ArgumentError(f"the section has {len(section)} bytes instead of {size}")
    return section


def planned_address(elf: ElfFile, size: int) -> int:
    """Where `add` would put a section of this size."""
    elf, _ = without_section(elf)
    return _plan(elf, Headers(elf), size).address


def without_section(elf: ElfFile) -> tuple[ElfFile, list[str]]:
    """The file without the `.sframe` section that it may have, and a note about that."""
    if not is_grafted(elf):
        return elf, []
    former = ElfFile(b"".join(drop(elf)), elf.name)
    return former, ["the existing .sframe section has been replaced"]


def _plan(elf: ElfFile, headers: Headers, size: int) -> GraftPlan:
    try:
        check_linked(elf)
        return plan_graft(elf, headers, size)
    except GraftError as error:
        raise error.within(file=elf.name) from None


def check_linked(elf: ElfFile) -> None:
    """Only programs and libraries of the machines that there are tables for."""
    if elf.machine not in _MACHINES:
        raise GraftError(f"SFrame knows no machine with the number {elf.machine}", file=elf.name)
    if elf.type == layout.ET_CORE:
        raise GraftError("this is a core file", file=elf.name)
    if elf.type not in {layout.ET_EXEC, layout.ET_DYN}:
        raise GraftError(f"files of type {elf.type} are neither programs nor libraries", file=elf.name)


def _assemble(elf: ElfFile, headers: Headers, plan: GraftPlan, section: bytes, kind: int) -> list[Part]:
    draft, tail = Draft(elf.data), Tail(plan.shift + len(elf.data))
    headers.segments = _segments(headers.segments, plan, len(section))
    names = _add_section(elf, headers, plan, len(section), kind)
    order = put_in_order(elf, headers, draft, plan)
    if not plan.shift:
        draft.write(0, headers.header_bytes())
        tail.skip_to(plan.offset)
        tail.append(section)
        _move_blocks(elf, draft, tail, plan)
        if plan.segments_offset < len(elf.data):
            draft.write(plan.segments_offset, headers.segment_bytes())
        else:
            tail.skip_to(plan.segments_offset)
            tail.append(headers.segment_bytes())
    finish(headers, draft, tail, names, plan.segments_offset, plan.shift, order)
    return [*_front(headers, plan, section), *draft.parts(), *tail.parts]


def _front(headers: Headers, plan: GraftPlan, section: bytes) -> list[Part]:
    """What comes before the former file."""
    front = Tail(0)
    if plan.shift:
        front.append(headers.header_bytes())
        front.append(headers.segment_bytes())
        front.skip_to(plan.offset)
        front.append(section)
        front.skip_to(plan.shift)
    return front.parts


def _move_blocks(elf: ElfFile, draft: Draft, tail: Tail, plan: GraftPlan) -> None:
    """Take what gives way from its old place, which is zeroed, to its new one."""
    _change_dynamic(elf, draft, plan)
    blocks = [draft.read(move.start, move.end - move.start) for move in plan.moves]
    for move in plan.moves:
        draft.write(move.start, bytes(move.end - move.start))
    for move, block in zip(plan.moves, blocks, strict=True):
        if move.away:
            tail.skip_to(move.offset)
            tail.append(block)
        else:
            draft.write(move.offset, block)


def _change_dynamic(elf: ElfFile, draft: Draft, plan: GraftPlan) -> None:
    offset, entries = dynamic_entries(elf)
    for index, (tag, value) in enumerate(entries.tolist()):
        for move in plan.moves:
            if tag in MOVABLE_TAGS and value == move.address - move.address_delta:
                entry = np.array([(tag, move.address)], entries.dtype)
                draft.write(offset + index * entries.dtype.itemsize, entry.tobytes())


def _segments(former: Records, plan: GraftPlan, size: int) -> Records:
    """The program headers: what moved has followed, PT_GNU_SFRAME and what loads it are there, unused ones are not."""
    table = former[former["type"] != layout.PT_NULL].copy()
    for entry in table:
        move = _move_of(entry, plan)
        if move is not None:
            _shift(entry, move.offset - move.start, move.address_delta)
        elif entry["filesz"]:
            _shift(entry, plan.shift, 0)
    loads = np.flatnonzero(table["type"] == layout.PT_LOAD)
    if plan.load is None:
        first = table[loads[0]]
        _shift(first, -plan.shift, -plan.shift)
        first["filesz"] += np.uint64(plan.shift)
        first["memsz"] += np.uint64(plan.shift)
    else:
        start, address, length, page = plan.load
        load = (layout.PT_LOAD, layout.PF_R, start, address, address, length, length, page)
        table = np.insert(table, loads[-1] + 1, np.array(load, table.dtype))
    ours = (layout.PT_GNU_SFRAME, layout.PF_R, plan.offset, plan.address, plan.address, size, size, SECTION_ALIGNMENT)
    table = np.concatenate([table, np.array([ours], table.dtype)])
    itself = table["type"] == layout.PT_PHDR
    for name, value in (
        *(("offset", plan.segments_offset), ("vaddr", plan.segments_address), ("paddr", plan.segments_address)),
        *(("filesz", SEGMENT_SIZE * len(table)), ("memsz", SEGMENT_SIZE * len(table))),
    ):
        table[name][itself] = value
    return table


def _shift(entry: np.void, offset: int, address: int) -> None:
    entry["offset"] = (int(entry["offset"]) + offset) % 2**64
    entry["vaddr"] = (int(entry["vaddr"]) + address) % 2**64
    entry["paddr"] = (int(entry["paddr"]) + address) % 2**64


def _move_of(entry: np.void, plan: GraftPlan) -> Move | None:
    """The move that takes this segment along; a PT_LOAD stays where it is, whatever leaves it."""
    if entry["type"] == layout.PT_LOAD or not entry["filesz"]:
        return None
    return next((move for move in plan.moves if move.start <= entry["offset"] < move.end), None)


def _add_section(elf: ElfFile, headers: Headers, plan: GraftPlan, size: int, kind: int) -> bytes:
    """The section headers: what moved has followed, and some are new. Returns the names with the new ones."""
    table = headers.sections
    if not len(table):
        return b""
    for move, inside in zip(plan.moves, sections_moved(elf, plan), strict=True):
        table["offset"][inside] += np.uint64((move.offset - move.start) % 2**64)
        table["addr"][inside] += np.uint64(move.address_delta % 2**64)
    table["offset"][table["type"] != layout.SHT_NULL] += np.uint64(plan.shift)
    names = bytes(elf.section_data(headers.names)) if headers.names else b""
    place = (plan.address, plan.offset, size)
    new = [(len(names), kind, layout.SHF_ALLOC, *place, 0, 0, SECTION_ALIGNMENT, 0)]
    names += SECTION_NAME.encode() + b"\0"
    if plan.padding is not None:
        offset, address, length = plan.padding
        new.append((len(names), layout.SHT_PROGBITS, layout.SHF_ALLOC, address, offset, length, 0, 0, 1, 0))
        names += _PADDING_NAME.encode() + b"\0"
    headers.sections = np.concatenate([table, np.array(new, table.dtype)])
    return names
