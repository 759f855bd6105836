"""The proof of a table: its ranges, claims and code are put together, walked through, and summed up."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I32, I64, U8, U32, U64, are_among
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile, layout, machine_of
from walkback.elf.sectionless import with_sections
from walkback.proof._claims import Claims
from walkback.proof._code import Code
from walkback.proof._scan import Scan, bits_at, is_same, mark_targets, scan
from walkback.proof._state import State
from walkback.proof._tally import as_entered
from walkback.proof._walk import Walk
from walkback.proof.conventions import returning_changed
from walkback.proof.entries import (
    are_parts,
    find_entries,
    function_symbols,
    named_parts,
    parts_among,
    replaceable_functions,
    saves_above,
)
from walkback.proof.golang import GoFunctions
from walkback.proof.image import Image, image_of
from walkback.proof.indirect import Indirect
from walkback.proof.known import KnownCode, known_code
from walkback.proof.landings import arguments, by_range, landings
from walkback.proof.numbering import KEPT
from walkback.proof.patched import mark_ways, patched_ways, ways_between
from walkback.proof.proof import Proof
from walkback.proof.ranges import Ranges, range_at, spread, together, walked_again, ways_to_parts
from walkback.proof.sets import ClaimSets, claim_sets, with_chain
from walkback.proof.silent import (
    BEYOND,
    CATCHING,
    KEEPING,
    KEEPS_NOTHING,
    MARKS_OF_CARELESS,
    REWRITING,
    SELDOM,
    SILENT,
    UNRESERVED,
    called_functions,
    is_silent,
)
from walkback.proof.tallied import tally
from walkback.proof.values import Verdict, Way, Why
from walkback.proof.walks import Walks
from walkback.symbols import SymbolIndex
from walkback.symbols.plt import PltNames
from walkback.table.table import UnwindTable

_NOP_OF_AMD64 = 0x90
_LARGEST = np.uint64(2**32 - 1)
"""Bytes that the rows of a function can describe."""


class Prover:
    """The code of one file, against which its tables are proved."""

    def __init__(self, elf: ElfFile, sources: Iterable[FrameSource] | None = None) -> None:
        """`sources` are the sections of call frame information, if they were found before."""
        self.elf = with_sections(elf)
        self.given = elf  # which may have no section headers
        self.sources = tuple(frame_sources(elf) if sources is None else sources)
        self.symbols = SymbolIndex(self.elf)
        self._seen: Scan | None = None
        """What the last proof has seen of the code."""

    @property
    def machine(self) -> Machine:
        """The machine of the code."""
        return machine_of(self.elf)

    @cached_property
    def image(self) -> Image:
        """The memory of the file."""
        return image_of(self.elf)

    @cached_property
    def silent(self) -> list[int]:
        """The addresses of functions that by their names do not come back."""
        own = UNRESERVED if self.elf.is_relocatable else frozenset()
        found = [address for address, name in self._called if is_silent(name) and name not in own]
        return [*found, *self._go.silent.tolist()]

    @cached_property
    def _go(self) -> GoFunctions:
        """The functions of a Go program."""
        return GoFunctions(self.given, self.machine)

    @cached_property
    def seldom(self) -> U64:
        """Those of functions that mostly do not."""
        names = SELDOM | UNRESERVED if self.elf.is_relocatable else SELDOM
        return np.concatenate((self.called_as(names), self._places_of(SELDOM)))

    @cached_property
    def catching(self) -> U64:
        """Those that only code calls to which exceptions go, where nothing says which code that is."""
        return np.zeros(0, np.uint64) if len(self.landings) else self.called_as(CATCHING)

    def called_as(self, names: Container[str]) -> U64:
        """The addresses of functions elsewhere with one of these names."""
        return np.array(sorted(address for address, name in self._called if name in names), np.uint64)

    @property
    def elsewhere(self) -> U64:
        """The addresses of all functions elsewhere."""
        return np.array([address for address, _ in self._called], np.uint64)

    @cached_property
    def keeping(self) -> U64:
        """Those of functions that keep all registers."""
        return np.concatenate((self.called_as(KEEPING), self._places_of(KEEPING)))

    @cached_property
    def beyond(self) -> U64:
        """Those of functions that also go on behind the return behind their call."""
        return np.concatenate((self.called_as(BEYOND), self._places_of(BEYOND)))

    @cached_property
    def _called(self) -> list[tuple[int, str]]:
        """The functions elsewhere that are called."""
        return list(called_functions(self.elf, self.image, self._plt))

    @cached_property
    def _plt(self) -> PltNames:
        """The procedure linkage table."""
        return PltNames(self.elf)

    def prove(
        self,
        table: UnwindTable,
        source: FrameSource | None = None,
        *,
        only: U64 | None = None,
        apart: bool = False,
        chain: bool = False,
        careless: U64 | None = None,
        seen: Scan | None = None,
    ) -> Proof:
        """The proof of a table; with the call frame information that it was made from, of all registers in that.

        `only` are the functions wanted, by the addresses in the image where they begin; if they are `apart`, no tables
        of jumps of others lead to them. With `chain` the verdicts are of `Chain`: what the frame pointer is, whatever
        the table says of it. `careless` functions are known to keep no registers; others are found. What a look has
        `seen` before may be of other ranges.
        """
        names = self.names_of_careless(table)
        keep_none = self._go.careless(table.range_start)
        keep_none[: len(names)] |= np.array([KEEPS_NOTHING.fullmatch(name) is not None for name in names], np.bool_)
        if careless is not None:
            keep_none |= are_among(self.image.addresses(table.range_start, table.range_section), careless)
        sets = claim_sets(table, source, keep_none if keep_none.any() else None)
        linked = len(sets) if chain else -1
        if chain:
            sets = with_chain(sets, table.machine)
        ranges = self.ranges(table, sets)

        registers = kept_by_calls(table), sets.watched(table.machine), sets.saved()

        def judges() -> tuple[Claims, State]:
            return Claims(sets, table.machine, source is not None), State(table.machine, *registers)

        abi = as_entered(*judges(), len(sets))
        first = np.minimum(ranges.first_row, max(len(ranges.row_claims) - 1, 0))
        if len(ranges.row_offset):
            begins = (ranges.rows > 0) & (ranges.row_offset[first] == 0)
            ranges.is_entry = (begins & (abi[ranges.row_claims[first]] != 0)).astype(np.uint8)
        former = self._seen if self._seen is not None and is_same(ranges, self._seen) else seen
        self._seen = None
        known, ways, seen = self.look_at(table, ranges, sets, names, former)
        self._seen = seen
        units = together(ranges, ways)
        ranges.leaps = spread(seen.leaps, units)

        def walk() -> Walk:
            return Walk(Code(self.image, known), *judges(), ranges, units.members, linked)

        walks = Walks(walk, units)
        absent = self._absent(table)
        wanted = np.ones(len(ranges.start), np.uint8)
        if only is not None:
            wanted[:] = are_among(ranges.start, only)
            absent = absent[are_among(absent[:, 0], only)]
        # What leads to a part is found where the whole file is walked.
        has_parts = only is not None and not apart and are_parts(ranges, wanted != 0, self.name_at).any()
        walked = np.ones_like(wanted) if has_parts else wanted
        found = tally(walks, ranges, units, walked)
        led_to, by_tables = walks.led_to(), walks.by_tables()
        parts = parts_among(self.elf, ranges, led_to)
        parts |= named_parts(ranges, led_to, by_tables[:, 1], self.name_at)
        ranges.is_entry[parts] = 0
        more = ways_to_parts(ranges, by_tables)
        if has_parts or parts.any() or len(more):  # once more, with these ranges as parts
            former_units, former_leaps = units, ranges.leaps
            units = together(ranges, np.concatenate((ways, more)))
            ranges.leaps = spread(seen.leaps, units)
            again = walked_again(ranges, former_units, units, parts | (ranges.leaps != former_leaps))
            if has_parts or not found.has_all_runs:  # of those that are wanted some runs may have found no room
                again[:] = True
            walks = Walks(walk, units)
            found = found.of((wanted != 0) & ~again).and_of(tally(walks, ranges, units, wanted & again), units)
        runs, image = found.runs, self.image
        if careless is None and not chain and len(changed := returning_changed(runs, units, image, table.machine)):
            return self.prove(table, source, only=only, apart=apart, careless=ranges.start[changed])
        hidden = np.where(wanted != 0, ranges.hidden, 0)
        verdicts, reasons = found.verdicts, found.reasons
        verdicts[:, Verdict.UNKNOWN] += hidden
        reasons[Why.OVERLAP] += hidden.sum()
        count = 0 if careless is None else int(are_among(careless, ranges.start[wanted != 0]).sum())
        sums = verdicts, reasons, runs
        return Proof(table.machine, ranges, *sums, image.data, units, sets, walks.first, absent, count)

    def look_at(
        self, table: UnwindTable, ranges: Ranges, sets: ClaimSets, names: list[str], former: Scan | None = None
    ) -> tuple[KnownCode, U64, Scan]:
        """What a first look at the code finds: which ranges are entries, what is known of functions, and the ways.

        The last is what it has seen, from which the next look can go on as from a `former` one.
        """
        seen = scan(Code(self.image, KnownCode()), self.image, ranges, table.machine.sp, former)
        mark_ways(seen, self.image, self.patched)
        mark_targets(seen, self.image, ranges.pads[:, 2])
        ways = np.concatenate((seen.ways, ways_between(ranges, self.patched)))
        named = function_symbols(self.elf, self.image, ways)
        called, taken = (ranges.start[bits_at(bits, ranges.pos)] for bits in (seen.called, seen.taken))
        find_entries(self.elf, ranges, ways, called, taken, named, sets, table.machine, self.name_at)
        self._drop_parts(ranges, ways)
        ranges.is_target[are_among(ranges.start, ways[ways[:, 2] == Way.JUMP, 1])] = 1
        ranges.is_unprovable[saves_above(ranges, sets, table.machine)] = 1
        ocaml = [number for number, name in enumerate(names) if name.startswith("caml") and name in SILENT]
        silent_ocaml = self.image.addresses(table.range_start[ocaml], table.range_section[ocaml])
        silent = [*self.silent, *silent_ocaml.tolist()]
        replaceable = replaceable_functions(self.elf, self.image)
        seen_so = seen._replace(ways=ways)
        by_name = self.seldom, self.keeping, self._go.again, self.beyond
        known = known_code(ranges, seen_so, silent, *by_name, replaceable)
        known.silent_words = self.indirect.silent_words(known)
        return known, ways, seen

    def names_of_careless(self, table: UnwindTable) -> list[str]:
        """The names of the ranges of a table, in a file that has functions which keep nothing; else no names."""
        kinds = (layout.SHT_SYMTAB, layout.SHT_DYNSYM)
        tables = [index for kind in kinds for index in self.elf.sections_of_type(kind)]
        strings = {int(self.elf.sections["link"][index]) for index in tables}
        found = [bytes(self.elf.section_data(index)) for index in strings]
        if not any(mark in one for mark in MARKS_OF_CARELESS for one in found):
            return []
        return [name or "" for name in self.symbols.names_at(table.range_start, table.range_section)]

    def ranges(self, table: UnwindTable, sets: ClaimSets) -> Ranges:
        """The ranges with code, by address."""
        start, size, pos = self._placed(table)
        chosen = np.flatnonzero((pos >= 0) & (size > 0))
        number = chosen[np.argsort(start[chosen], kind="stable")]
        start, whole = start[number], size[number]
        size = whole.copy()
        if len(number):  # a range ends where the next one begins: unwinders look for the last that begins before
            size[:-1] = np.minimum(size[:-1].astype(np.uint64), np.diff(start)).astype(np.int64)
        pad_first, pads = by_range(self.landings, start, size)
        return Ranges(
            start=start,
            size=size,
            hidden=whole - size,
            pos=pos[number],
            first_row=table.range_first_row[number],
            rows=table.range_rows[number],
            block=table.range_block[number],
            is_entry=np.zeros(len(number), np.uint8),
            is_likely=np.zeros(len(number), np.uint8),
            may_be_part=np.zeros(len(number), np.uint8),
            is_stub=self._is_stub(start, size, table.range_block[number]),
            is_target=np.zeros(len(number), np.uint8),
            leaps=np.zeros(len(number), np.uint8),
            is_unprovable=are_among(start, self._places_of(REWRITING)).astype(np.uint8),
            kept_below=self._go.kept_below(start),
            stubs=self.stubs,
            row_offset=table.row_offset,
            row_claims=sets.row_set,
            pad_first=pad_first,
            pads=pads,
            arguments=self.arguments,
            patched=self.patched,
        )

    def _absent(self, table: UnwindTable) -> U64:
        """The addresses and sizes of the ranges whose code the file does not have."""
        start, size, pos = self._placed(table)
        absent = (pos < 0) & (size != 0)
        return np.stack((start[absent], np.minimum(size[absent].astype(np.uint64), _LARGEST)), axis=1)

    def _placed(self, table: UnwindTable) -> tuple[U64, I64, I64]:
        """The address and size of each range in the image, and where its code is in the data."""
        start, size = self.image.addresses(table.range_start, table.range_section), table.range_size.astype(np.int64)
        return start, size, self.image.places(start, size)

    @cached_property
    def stubs(self) -> U64:
        """Where the entries of the procedure linkage table begin."""
        if self.elf.is_relocatable:
            return np.zeros(0, np.uint64)
        starts, _, names = self._plt.entries()
        return np.array([start for start, name in zip(starts, names, strict=True) if name], np.uint64)

    @cached_property
    def indirect(self) -> Indirect:
        """The functions that are called through the words of the global offset table."""
        return Indirect(self.elf, self._plt)

    def _is_stub(self, start: U64, size: I64, block: U32) -> U8:
        """Which ranges have such entries."""
        if not len(self.stubs):
            return np.asarray(block != 0, np.uint8)
        first = self.stubs.searchsorted(start)
        has = first < len(self.stubs)
        has &= self.stubs[np.minimum(first, len(self.stubs) - 1)] - start < size.astype(np.uint64)
        return np.asarray(has | (block != 0), np.uint8)

    def _places_of(self, names: Iterable[str]) -> U64:
        """The addresses of functions of this file by their names."""
        found = self.symbols.lookup(*names)
        return np.array([self.image_address(section, place) for section, place in found], np.uint64)

    @cached_property
    def landings(self) -> U64:
        """Rows of where calls begin and end, and where exceptions that come out of them go on, by address."""
        return landings(self.elf, self.image, self.sources)

    @cached_property
    def arguments(self) -> U64:
        """Rows of an address, rising, and the bytes of arguments on the stack at the calls from there on."""
        return arguments(self.image, self.sources) if len(self.landings) else np.zeros((0, 2), np.uint64)

    @cached_property
    def patched(self) -> U64:
        """Rows of the address of an instruction, and of a place where Linux may go on without executing it."""
        return patched_ways(self.elf, self.image)

    def section_of(self, address: int) -> tuple[int, int]:
        """The section of an address of the image and the place in it; of a linked file -1 and the address."""
        sections, places = self.sections_of(np.array([address], np.uint64))
        return int(sections[0]), int(places[0])

    def sections_of(self, addresses: U64) -> tuple[I32, U64]:
        """The same of many addresses."""
        if not len(self.image.base):
            return np.full(len(addresses), -1, np.int32), addresses
        sections = np.searchsorted(self.image.base, addresses, "right") - 1
        return sections.astype(np.int32), addresses - self.image.base[sections]

    def image_address(self, section: int, place: int) -> int:
        """The address in the image of a place in a section; of a linked file it is the same."""
        return int(self.image.base[section]) + place if len(self.image.base) else place

    def name_at(self, address: int) -> str | None:
        """The symbol at an address of the image."""
        section, place = self.section_of(address)
        return self.symbols.name_at(place, section)

    def names_at(self, addresses: U64) -> list[str | None]:
        """The symbols at some addresses of the image."""
        sections, places = self.sections_of(addresses)
        return self.symbols.names_at(places, sections)

    def _drop_parts(self, ranges: Ranges, ways: U64) -> None:
        """A part that others jump into may begin with a `nop`, whose row is that of an entry by chance.

        So may a function, into which its own parts jump.
        """
        if self.elf.machine != layout.EM_X86_64:
            return
        source, target = ways[:, 0].astype(np.int64), range_at(ranges, ways[:, 1])
        known, begins = target >= 0, ranges.start[target] == ways[:, 1]
        inside = known & (target != source) & ~begins & (ranges.is_entry[source] != 0)
        inside[inside] = self.image.data[ranges.pos[target[inside]]] == _NOP_OF_AMD64
        count, own = len(ranges.start), known & begins
        leads_back = are_among(source[inside] * count + target[inside], target[own] * count + source[own])
        ranges.is_entry[target[inside][~leads_back]] = 0


def kept_by_calls(table: UnwindTable) -> int:
    """A bit for each callee-saved register."""
    return sum(1 << register for register in (*KEPT[table.machine], table.machine.sp))
