"""Section headers in the order of addresses, with the symbols of sections that move.

patchelf up to 0.18 makes room for program headers by walking section headers from the first on, until one is behind
what it needs. So what moved to the new segment must not stand at the front.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U32, Bools, Records
from walkback.elf import ElfFile, layout
from walkback.elf.write import SEGMENT_SIZE, Draft, Headers
from walkback.graft.numbering import check_apart, order_sections
from walkback.graft.plan import GraftPlan
from walkback.graft.record import Order
from walkback.graft.room import blocks

_VALUE = 8
"""Where `st_value` is in a symbol."""


def put_in_order(elf: ElfFile, headers: Headers, draft: Draft, plan: GraftPlan) -> Order:
    """Order the headers, the last of them new, and change the symbols in the draft, where nothing has moved yet."""
    table = headers.sections
    placed = np.arange(len(table)) >= len(elf.sections)
    for move, inside in zip(plan.moves, sections_moved(elf, plan), strict=True):
        if move.away:
            placed[: len(inside)] |= inside
    numbers = address_order(table, placed)
    if (numbers == np.arange(len(table))).all():
        _change_symbols(elf, draft, plan)
        return Order(numbers[:0])
    symtabs = order_sections(elf, headers, draft, numbers)
    changed = _change_symbols(elf, draft, plan)
    places = _untouched(elf, headers, plan, symtabs)
    return Order(numbers, tuple(places.values()), tuple(one for index in places for one in changed.get(index, ())))


def address_order(table: Records, chosen: Bools) -> U32:
    """The numbers of sections in their new order: those chosen go behind what is loaded before them."""
    placed = np.flatnonzero(chosen)
    placed = placed[np.argsort(table["addr"][placed], kind="stable")]
    rest = np.flatnonzero(~chosen)
    loaded = np.flatnonzero(table["flags"][rest] & np.uint64(layout.SHF_ALLOC) != 0)
    lowest_from_here = np.minimum.accumulate(table["addr"][rest[loaded[::-1]]])[::-1]
    behind = np.searchsorted(lowest_from_here, table["addr"][placed], side="right")
    numbers: U32 = np.insert(rest, np.append(1, loaded + 1)[behind], placed).astype(np.uint32)
    return numbers


def sections_moved(elf: ElfFile, plan: GraftPlan) -> list[Bools]:
    """For each move the sections that it takes along."""
    start, stored = elf.sections["offset"], (elf.sections["size"] > 0) & (elf.sections["type"] != layout.SHT_NOBITS)
    return [stored & (start >= move.start) & (start < move.end) for move in plan.moves]


def _change_symbols(elf: ElfFile, draft: Draft, plan: GraftPlan) -> dict[int, list[tuple[int, int]]]:
    """Symbols of sections that move go with them. Returns for each symbol table the places that changed."""
    deltas = np.zeros(len(elf.sections), np.uint64)
    for move, inside in zip(plan.moves, sections_moved(elf, plan), strict=True):
        deltas[inside] = move.address_delta % 2**64
    symtabs = [*elf.sections_of_type(layout.SHT_SYMTAB), *elf.sections_of_type(layout.SHT_DYNSYM)]
    check_apart(elf, symtabs)
    places = {}
    for index in symtabs if plan.moves else ():
        numbers = elf.symbols(index)["section"]
        real = numbers < len(deltas)
        change = np.where(real, deltas[np.where(real, numbers, 0)], np.uint64(0))
        found = np.flatnonzero(change)
        if not len(found):
            continue
        first, last = int(found[0]), int(found[-1]) + 1
        shape = layout.SYMBOL[elf.byteorder]
        table_start = int(elf.sections["offset"][index])
        start, size = table_start + first * shape.itemsize, (last - first) * shape.itemsize
        table = np.frombuffer(draft.read(start, size), shape).copy()
        table["value"] += change[first:last]
        draft.write(start, table.tobytes())
        values = (table_start + found * shape.itemsize + _VALUE).tolist()
        places[index] = [(value, value + 8) for value in values]
    return places


def _untouched(elf: ElfFile, headers: Headers, plan: GraftPlan, symtabs: list[int]) -> dict[int, tuple[int, int]]:
    """Those symbol tables that stay in their place, where nothing else stands."""
    table_end = headers.segments_offset + SEGMENT_SIZE * len(headers.segments)
    found = {}
    for block in blocks(elf, headers, 0):
        [index, *others] = block.sections or [0]
        moved = any(move.start < block.end and block.start < move.end for move in plan.moves)
        apart = block.end <= headers.segments_offset or table_end <= block.start
        if index in symtabs and not (others or block.segments or block.fixed or moved) and apart:
            found[index] = (block.start, block.end)
    return found
