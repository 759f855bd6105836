"""Which ranges of a table are entered as the ABI says, where their first rows do not show it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.base.arrays import U64, Bools, are_among, distinct
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, layout
from walkback.elf.dynamic import dynamic_entries
from walkback.proof.image import Image
from walkback.proof.ranges import Ranges, range_at
from walkback.proof.sets import ClaimSets
from walkback.proof.silent import OWN_CONVENTION
from walkback.proof.values import CFA_BASE, CFA_TARGET, UNCALLED, Way

_PART = re.compile(r"\.(cold|warm)(\.\d+)?$")
"""The name of a part of a function, as compilers and BOLT give it."""

_ALIGNMENT = {AMD64: 16, AARCH64: 4, S390X: 8}
"""Of functions, in bytes."""


def find_entries(
    elf: ElfFile,
    ranges: Ranges,
    ways: U64,
    called: U64,
    taken: U64,
    named: U64,
    sets: ClaimSets,
    machine: Machine,
    name_at: Callable[[int], str | None],
) -> None:
    """What is called is an entry, whatever its first row says, and what has the symbol of a function, among `named`.

    So is a range that no other leads to, if it begins as functions do and its address is taken, among `taken` or in
    data: else it may be a part to which a jump table leads. Those with rules of their own are none.

    What others only jump to may be a part of a function, though its first row is that of an entry.
    """
    is_called = are_among(ranges.start, called)
    led = are_among(ranges.start, ways[ways[:, 2] != Way.LAST_CALL, 1])
    parts = (ranges.is_entry != 0) & led & ~is_called & ~are_among(ranges.start, named) & (ranges.is_stub == 0)
    ranges.may_be_part[:] = parts & ~are_among(ranges.start, taken)
    alone = _is_alone(ranges, ways, machine)
    if not elf.is_relocatable:
        alone[alone] = are_among(ranges.start[alone], np.concatenate((taken, pointers(elf, ranges.start[alone]))))
    alone |= (ranges.is_entry == 0) & are_among(ranges.start, named)
    is_loader = _is_loader(elf)
    for row in np.flatnonzero((ranges.is_entry == 0) & (is_called | alone)).tolist():
        name = (name_at(int(ranges.start[row])) or "").partition("@")[0]
        if OWN_CONVENTION.fullmatch(name) or (alone[row] and _PART.search(name)):
            continue
        if is_called[row] or not (is_loader or _begins_within(ranges, row, sets, machine, is_named=bool(name))):
            ranges.is_entry[row] = 1 if is_called[row] else UNCALLED


def parts_among(elf: ElfFile, ranges: Ranges, framed: U64) -> Bools:
    """Which ranges are parts of those that lead to the `framed` addresses with their frames still on the stack."""
    parts: Bools = (ranges.may_be_part != 0) & are_among(ranges.start, framed)
    if not elf.is_relocatable and parts.any():
        parts[parts] = ~are_among(ranges.start[parts], pointers(elf, ranges.start[parts]))
    return parts


def named_parts(ranges: Ranges, framed: U64, by_tables: U64, name_at: Callable[[int], str | None]) -> Bools:
    """Which ranges are parts by their names, and tables of jumps lead to them with a frame still on the stack."""
    led = are_among(ranges.start, framed) & are_among(ranges.start, by_tables) & (ranges.is_entry != 0)
    return are_parts(ranges, led, name_at)


def are_parts(ranges: Ranges, chosen: Bools, name_at: Callable[[int], str | None]) -> Bools:
    """Which of the chosen ranges are parts of functions by their names, or no entries."""
    parts = chosen.copy()
    parts[chosen] = [
        not is_entry or _PART.search(name_at(address) or "") is not None
        for address, is_entry in zip(ranges.start[chosen].tolist(), ranges.is_entry[chosen].tolist(), strict=True)
    ]
    return parts


def function_symbols(elf: ElfFile, image: Image, ways: U64) -> U64:
    """The addresses of functions by their symbols: of those of one file only, where nothing jumps to.

    Parts of functions have symbols too, and are jumped to.
    """
    found = [np.zeros(0, np.uint64)]
    for index in elf.sections_of_type(layout.SHT_SYMTAB) + elf.sections_of_type(layout.SHT_DYNSYM):
        symbols = elf.symbols(index)
        section, kind = symbols["section"], symbols["info"] & 15
        chosen = (section != layout.SHN_UNDEF) & ((kind == layout.STT_FUNC) | (kind == layout.STT_GNU_IFUNC))
        if elf.is_relocatable:
            chosen &= section < len(elf.sections)
        else:
            chosen &= symbols["size"] > 0  # an empty function may stand where a part of another begins
        address = image.addresses(symbols["value"][chosen].astype(np.uint64), section[chosen].astype(np.int32))
        is_local = symbols["info"][chosen] >> 4 == layout.STB_LOCAL
        found.append(address[~(is_local & are_among(address, ways[:, 1]))])
    return distinct(np.concatenate(found))


def replaceable_functions(elf: ElfFile, image: Image) -> U64:
    """The addresses of weak functions of an object: another may run in their place.

    Those of a group of sections are the same in all objects, as templates are.
    """
    found = [np.zeros(0, np.uint64)]
    for index in elf.sections_of_type(layout.SHT_SYMTAB) if elf.is_relocatable else ():
        symbols = elf.symbols(index)
        weak = symbols[symbols["info"] >> 4 == layout.STB_WEAK]
        weak = weak[(weak["section"] != layout.SHN_UNDEF) & (weak["section"] < len(elf.sections))]
        weak = weak[elf.sections["flags"][weak["section"]] & layout.SHF_GROUP == 0]
        found.append(image.addresses(weak["value"].astype(np.uint64), weak["section"].astype(np.int32)))
    return distinct(np.concatenate(found))


def _is_alone(ranges: Ranges, ways: U64, machine: Machine) -> Bools:
    """The ranges that are no entries by their first rows, and that no other leads to.

    Parts of functions may be so, too: their parents come to them by tables that could not be read.
    """
    led = np.zeros(len(ranges.start), np.bool_)
    source, target = ways[:, 0].astype(np.int64), range_at(ranges, ways[:, 1])
    led[target[(target >= 0) & (target != source)]] = True
    pads = range_at(ranges, ranges.pads[:, 2])
    led[pads[pads >= 0]] = True
    begins = ranges.start % np.uint64(_ALIGNMENT[machine]) == 0
    alone: Bools = (ranges.is_entry == 0) & ~led & begins & (ranges.is_stub == 0) & (ranges.rows > 0)
    return alone


def pointers(elf: ElfFile, wanted: U64) -> U64:
    """Those of the wanted addresses that the data of a linked file has, or gets when it is loaded."""
    if not len(wanted):
        return np.zeros(0, np.uint64)
    found = pointers_between(elf, wanted.min(), wanted.max())
    return found[are_among(found, wanted)]


def pointers_between(elf: ElfFile, low: np.uint64, high: np.uint64) -> U64:
    """The addresses between two, and these two, that the data of a linked file has, or gets when it is loaded."""
    found = [np.zeros(0, np.uint64)]
    word = np.dtype(np.uint64).newbyteorder("<" if elf.byteorder == "little" else ">")
    for number in np.flatnonzero(elf.sections["flags"] & layout.SHF_ALLOC != 0).tolist():
        header = elf.sections[number]
        values = found[0]
        with contextlib.suppress(WalkbackError):
            if header["type"] == layout.SHT_RELA:
                values = elf.entries(number, layout.RELA)["addend"].astype(np.uint64)
            elif header["flags"] & layout.SHF_WRITE and header["type"] != layout.SHT_DYNAMIC:
                data = elf.section_data(number, keep=False)
                values = np.frombuffer(data, word, len(data) // word.itemsize)
        found.append(values[(values >= low) & (values <= high)].astype(np.uint64))
    return np.concatenate(found)


def _is_loader(elf: ElfFile) -> bool:
    """Whether this is a dynamic linker, whose routines are entered with more on the stack."""
    _, entries = dynamic_entries(elf)
    asks = (entries["tag"] == layout.DT_NEEDED).any() or (elf.segments["type"] == layout.PT_INTERP).any()
    return len(entries) > 0 and not asks


def _begins_within(ranges: Ranges, row: int, sets: ClaimSets, machine: Machine, *, is_named: bool) -> bool:
    """Whether a range begins with the return address in another register than the ABI's, as `mcount`.

    One without a name may begin with registers saved, as a part of a function.
    """
    if not ranges.rows[row]:
        return False
    first = int(ranges.row_claims[ranges.first_row[row]])
    entries = np.arange(sets.first[first], sets.first[first + 1])
    loaded, is_return = sets.depth[entries] > 0, sets.target[entries] == machine.ra
    found = is_return & ~loaded & (sets.base[entries] >= 0)
    if not is_named:
        found |= loaded & ~is_return & (sets.target[entries] != CFA_TARGET)
    return bool(found.any())


def saves_above(ranges: Ranges, sets: ClaimSets, machine: Machine) -> Bools:
    """Which ranges have the return address at the CFA or above, where who led there has put it: no call does that."""
    above = (sets.target == machine.ra) & (sets.base == CFA_BASE) & (sets.depth == 1) & (sets.offset[:, 0] >= 0)
    has = np.zeros(len(sets), np.int64)
    has[np.searchsorted(sets.first, np.flatnonzero(above), "right") - 1] = 1
    before = np.concatenate(([0], np.cumsum(has[ranges.row_claims])))
    return np.asarray(before[ranges.first_row + ranges.rows] > before[ranges.first_row])
