"""The unwind tables of a file, proved against its machine code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from walkback.base.arrays import U64, distinct
from walkback.base.columns import NamedColumns
from walkback.base.errors import MissingError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile, Input, layout
from walkback.elf.golang import FUNCTIONS, is_go
from walkback.elf.inputs import raise_first
from walkback.gopclntab.files import go_source
from walkback.orc.layout import ENTRIES
from walkback.packages.found import found_elf_files, input_name
from walkback.proof.patterns import Pattern
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.values import CFA_TARGET, Verdict, Why
from walkback.proof.words import NOT_KNOWN, TITLES, register_word
from walkback.proof.wrong import Wrong, wrong_places
from walkback.sections.explain import Explanation
from walkback.sections.pairs import OTHERS, other_table, sframe_table
from walkback.sections.undescribed import Undescribed, undescribed
from walkback.table.table import UnwindTable

RESTS_ON = (
    "functions begin as the ABI says, callees keep the registers that the ABI says, and nothing else writes to the "
    "places where registers are saved"
)
"""What a verdict of the proof rests on."""

_GO_HINT = f"; --table {FUNCTIONS[0]} verifies the table of Go's functions"
_Stretch = tuple[int, int]
"""Where code begins in the image, and ends."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Instructions at which the table is wrong about one value."""

    function: str | None
    """The symbol."""
    start: int
    """The address of the function; in an object, the offset in its section."""
    size: int
    """The bytes of the function."""
    section: str | None
    """In an object, the section of the code."""
    address: int
    """The first wrong instruction."""
    bytes: int
    """The bytes of wrong instructions from there."""
    what: str
    """`cfa`, `ra`, `fp`, or the name of a register."""
    claimed: str
    """Where the value is by the table."""
    computed: str
    """Where it is by the code."""
    path: tuple[int, ...]
    """The addresses of the jumps that lead there from the function's entry, in their order."""
    pattern: Pattern
    """What kind of mistake it is."""

    @property
    def message(self) -> str:
        """What is wrong, in words."""
        return f"the table has {TITLES.get(self.what, self.what)} {self.claimed}, the code {self.computed}"


@dataclass(repr=False)
class Verified(OneLine):
    """The verdicts on one table of one file.

    >>> [verified] = walkback.verify("hello")
    >>> verified.table, verified.functions, verified.wrong, verified.mismatches
    ('.eh_frame', 4, 0, [])
    """

    elf: ElfFile = field(repr=False)
    table: str
    """The section."""
    proof: Proof = field(repr=False)
    prover: Prover = field(repr=False)

    @property
    def file(self) -> str:
        """The path; for a member of an archive or package `archive(member)`."""
        return self.elf.name

    @property
    def functions(self) -> int:
        """How many functions the table describes."""
        return int(np.count_nonzero(self.proof.verdicts.any(axis=1))) + len(self.proof.absent)

    @cached_property
    def functions_wrong(self) -> int:
        """Those with an instruction at which the table is wrong."""
        return int(np.count_nonzero(self.proof.verdicts[:, Verdict.WRONG]))

    @cached_property
    def functions_proved(self) -> int:
        """Those proved at every instruction that can be reached."""
        others = [Verdict.WRONG, Verdict.ASSUMED, Verdict.UNKNOWN]
        doubtful = np.count_nonzero(self.proof.verdicts[:, others].any(axis=1))
        return self.functions - int(doubtful) - len(self.proof.absent)

    @property
    def bytes(self) -> int:
        """Of the code that the table describes."""
        return int(self.proof.verdicts.sum()) + self._absent

    @property
    def reached(self) -> int:
        """Those of instructions that can be reached: proved, wrong, assumed and unknown."""
        return self.bytes - self.not_reached

    @property
    def _absent(self) -> int:
        """Bytes of functions whose code the file does not have."""
        return int(self.proof.absent[:, 1].sum())

    def _bytes_of(self, verdict: Verdict) -> int:
        return int(self.proof.verdicts[:, verdict].sum())

    @property
    def proved(self) -> int:
        """Bytes of instructions at which every claim of the table holds."""
        return self._bytes_of(Verdict.PROVED)

    @property
    def wrong(self) -> int:
        """Bytes of instructions at which one does not."""
        return self._bytes_of(Verdict.WRONG)

    @property
    def assumed(self) -> int:
        """Bytes of code whose rules are right if something holds that the code does not show; `reasons` has why."""
        return self._bytes_of(Verdict.ASSUMED)

    @property
    def unknown(self) -> int:
        """Bytes of instructions at which the proof cannot decide; `reasons` has why."""
        return self._bytes_of(Verdict.UNKNOWN) + self._absent

    @property
    def not_reached(self) -> int:
        """Bytes of padding and of data between functions."""
        return self._bytes_of(Verdict.NOT_REACHED)

    @cached_property
    def by_reason(self) -> dict[Why, int]:
        """The bytes of `assumed`, `unknown` and `not_reached` by reason."""
        found = self.proof.reasons.copy()
        found[Why.NO_CODE] += self._absent
        return {why: int(found[why]) for why in Why if found[why]}

    @property
    def reasons(self) -> dict[str, int]:
        """The same by the word of each reason."""
        return {why.word: size for why, size in self.by_reason.items()}

    @cached_property
    def undescribed(self) -> list[Undescribed]:
        """The functions, by their symbols, that the table does not describe."""
        return undescribed(self.proof, self.prover)

    @cached_property
    def mismatches(self) -> list[Mismatch]:
        """What is wrong, the worst first: the CFA, then the return address, the frame pointer, and other registers."""
        return self._mismatches(self._rows)

    @cached_property
    def _rows(self) -> list[list[int]]:
        """The rows of the proof in this order."""
        machine = self.proof.machine
        severity = {CFA_TARGET: 0, machine.ra: 1, machine.fp: 2}
        return sorted(self.proof.mismatches.tolist(), key=lambda row: (severity.get(row[4], 3), -row[3], row[2]))

    def worst(self, limit: int | None = None) -> list[Mismatch]:
        """The worst mismatch of each wrong function, and of these the first."""
        return self._mismatches(list(islice(self._worst.values(), limit)))

    def patterns(self, without: Iterable[int] = ()) -> Counter[Pattern]:
        """How many wrong functions have each pattern as their worst mismatch, but for those at some addresses.

        The addresses are those of the image, as `wrong_functions` has them. One unit is looked at after the other, so
        that a file with many of them takes no more memory.
        """
        left_out, found = frozenset(without), Counter[Pattern]()
        by_unit: dict[int, list[tuple[int, int]]] = {}
        for (_, unit, address, _, what), begin in zip(self._worst.values(), self.wrong_functions, strict=True):
            if begin not in left_out:
                by_unit.setdefault(unit, []).append((address, what))
        for unit, places in by_unit.items():
            found.update(one.pattern for one in wrong_places(self.proof, unit, places).values())
        return found

    @property
    def wrong_functions(self) -> list[int]:
        """Where wrong functions begin in the image, in the order of `worst`; of a million wrong places."""
        starts: list[int] = self.proof.ranges.start[list(self._worst)].tolist()
        return starts

    @cached_property
    def _worst(self) -> dict[int, list[int]]:
        """The first of the rows of each range."""
        first: dict[int, list[int]] = {}
        for row in self._rows:
            first.setdefault(row[0], row)
        return first

    def columns(self) -> NamedColumns:
        """A row for each function: where it is, and its bytes by verdict."""
        ranges = self.proof.ranges
        found = NamedColumns(address=ranges.start, size=ranges.size)
        for verdict in Verdict:
            found[verdict.name.lower()] = self.proof.verdicts[:, verdict]
        return found

    def _mismatches(self, rows: list[list[int]]) -> list[Mismatch]:
        """Rows of the proof with their words; each unit is walked through once more."""
        by_unit: dict[int, list[tuple[int, int]]] = {}
        for _, unit, address, _, what in rows:
            by_unit.setdefault(unit, []).append((address, what))
        found: dict[tuple[int, int], Wrong] = {}
        for unit, places in by_unit.items():
            found |= wrong_places(self.proof, unit, places)
        return [self._mismatch(row, found[row[2], row[4]]) for row in rows]

    def _mismatch(self, row: list[int], wrong: Wrong) -> Mismatch:
        number, _, address, size, what = row
        ranges, state = self.proof.ranges, wrong.state
        section, place = self.prover.section_of(int(ranges.start[number]))
        claimed = self.proof.claims_at(number, address).get(what, "nothing")
        computed = state.where(what) if state is not None else NOT_KNOWN
        if claimed == computed:  # it is the row of a call's last byte
            claimed = self.proof.claims_at(number, address + size - 1).get(what, "nothing")
        return Mismatch(
            function=self.prover.symbols.describe(place, section),
            start=place,
            size=int(ranges.size[number]),
            section=self.elf.section_name(section) if section >= 0 else None,
            address=self.prover.section_of(address)[1],
            bytes=size,
            what=register_word(self.proof.machine, what),
            claimed=claimed,
            computed=computed,
            path=tuple(self.prover.section_of(one)[1] for one in state.path) if state is not None else (),
            pattern=wrong.pattern,
        )

    def explain(self, function: int) -> Explanation:
        """The instructions of the function that holds an address of the image."""
        return Explanation(self.proof, self.prover, function)


def verify(source: Input, *, table: str | None = None, function: str | None = None) -> Iterator[Verified]:
    """Prove each unwind table of a file, or of each ELF file in an archive or package, against its machine code.

    `table` chooses one by the name of its section, `function` the functions of that name.

    >>> [verified] = walkback.verify("hello")
    >>> verified.proved, verified.wrong, verified.reasons
    (38, 0, {'expression': 6})
    """
    some = has_go = False
    errors: list[WalkbackError] = []
    for elf in found_elf_files(source, errors):
        try:
            for one in verified_tables(elf, table=table, function=function):
                some = True
                yield one
            has_go = has_go or (not some and is_go(elf) and go_source(elf) is not None)
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        raise MissingError(_nothing(table, function, has_go=has_go), file=input_name(source))


def explained(source: Input, wanted: str, *, table: str | None = None) -> Iterator[tuple[Verified, Explanation]]:
    """The functions of a name, or the one that holds an address, given as `0x1234` or `.text+0x12`, from each table."""
    some = absent = is_given = False
    errors: list[WalkbackError] = []
    for elf in found_elf_files(source, errors):
        try:
            prover = Prover(elf)
            given = [prover.image_address(*place) for place in _given(elf, wanted)]
            is_given |= bool(given)
            stretches = [(address, address + 1) for address in given] or _named(prover, wanted)
            for one, only in _verified_tables(prover, table, stretches):
                for address in distinct(only).tolist():
                    if one.proof.unit_of(address) is None:
                        absent = True
                        continue
                    some = True
                    yield one, one.explain(address)
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        message = f"the code of {wanted} is not in the file" if absent else _nothing(table, wanted, is_code=is_given)
        raise MissingError(message, file=input_name(source))


def _nothing(table: str | None, function: str | None, *, is_code: bool = False, has_go: bool = False) -> str:
    """What was looked for in vain: a function by its name, code by its address, or any table."""
    if is_code:
        return f"no table describes code at {function}"
    if function is not None:
        where = f"in the table {table}" if table is not None else "with a table"
        return f"there is no function {function!r} {where}"
    if table is not None:
        return f"there is no table {table}"
    return "there is no .eh_frame, .debug_frame or .sframe section" + (_GO_HINT if has_go else "")


def verified_tables(
    elf: ElfFile, *, table: str | None = None, function: str | None = None, sources: Iterable[FrameSource] | None = None
) -> Iterator[Verified]:
    """What `verify` yields for one ELF file; nothing where it has no such table or function."""
    prover = Prover(elf, sources)
    stretches = None if function is None else _named(prover, function)
    for verified, _ in _verified_tables(prover, table, stretches):
        yield verified


def _verified_tables(
    prover: Prover, table: str | None, stretches: Sequence[_Stretch] | None
) -> Iterator[tuple[Verified, U64]]:
    """Each table, or those that describe code in these stretches, with the functions there."""
    elf = prover.elf
    if stretches is not None and not stretches:
        return
    sources: list[tuple[str, UnwindTable, FrameSource | None]] = []
    own = other_table(elf, ENTRIES if table is None else table) if table in {None, *OTHERS} else None
    sources += [] if own is None else [(own.name, own.table, None)]
    if table in OTHERS:
        pass
    elif table is None or "sframe" not in table:
        chosen = prover.sources if table is None else frame_sources(elf, section=table)
        sources += [(source.name, source.table, source) for source in chosen]
    if table is None or "sframe" in table:
        found = sframe_table(elf, section=table)
        sources += [] if found is None else [(found.name, found.table, None)]
    for name, unwind, source in sources:
        only = np.zeros(0, np.uint64) if stretches is None else _described(prover, unwind, stretches)
        if stretches is None or len(only):
            proof = prover.prove(unwind, source, only=None if stretches is None else only)
            yield Verified(elf, name, proof, prover), only


def mismatches_at(elf: ElfFile, addresses: U64) -> Iterator[Mismatch]:
    """What is wrong in the call frame information of a linked file at one of these addresses."""
    prover = Prover(elf)
    for source in prover.sources:
        number, _ = source.table.find_many(addresses)
        only = source.table.range_start[number[number >= 0]]
        verified = Verified(elf, source.name, prover.prove(source.table, source, only=only), prover)
        for one in verified.mismatches:
            away = addresses - np.uint64(one.address)  # of those in front it is larger than all code
            if (away < np.uint64(one.bytes)).any():
                yield one


def _named(prover: Prover, function: str) -> list[_Stretch]:
    """The code of the functions of a name: FDEs may begin within it, or before it."""
    found = []
    for section, place in {*prover.symbols.lookup(function), *prover.symbols.lookup_shown(function)}:
        begin = prover.image_address(section, place)
        found.append((begin, begin + max(1, prover.symbols.size_at(place, section))))
    return found


def _described(prover: Prover, table: UnwindTable, stretches: Iterable[_Stretch]) -> U64:
    """Where the functions of a table begin that hold the beginnings of stretches, or begin within them."""
    start = prover.image.addresses(table.range_start, table.range_section)
    last = start + np.minimum(table.range_size.astype(np.uint64) - np.uint64(1), ~start)
    some = (table.range_size > 0) & (start <= last)
    chosen = np.zeros(len(start), np.bool_)
    for begin, end in stretches:
        if begin >= 2**64:
            continue
        behind = some & (last >= np.uint64(begin))
        holding = behind & (start <= np.uint64(begin))
        chosen |= holding if holding.any() else behind & (start < np.uint64(min(end, 2**64 - 1)))
    found: U64 = start[chosen]
    return found


def _given(elf: ElfFile, wanted: str) -> set[tuple[int, int]]:
    """The sections, -1 in a linked file, and the place of an address; in an object one without a section is in all."""
    name, plus, number = wanted.rpartition("+")
    try:
        place = int(number, 0)
    except ValueError:
        return set()
    if place < 0 or bool(name) != bool(plus) or (name and not elf.is_relocatable):
        return set()
    if not elf.is_relocatable:
        return {(-1, place)}
    executable = np.flatnonzero(elf.sections["flags"] & layout.SHF_EXECINSTR != 0).tolist()
    return {(one, place) for one in (elf.sections_named(name) if name else executable)}
