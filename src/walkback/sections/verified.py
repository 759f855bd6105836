"""The verdicts on one table of a file, and where it is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from functools import cached_property
from itertools import islice

import numpy as np

from walkback.base.columns import NamedColumns
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.elf import ElfFile
from walkback.proof.patterns import Pattern
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.values import CFA_TARGET, Verdict, Why
from walkback.proof.words import NOT_KNOWN, OVERWRITTEN, TITLES, register_word
from walkback.proof.wrong import Wrong, wrong_places
from walkback.sections.explain import Explanation
from walkback.sections.undescribed import Undescribed, undescribed


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
    def functions_careless(self) -> int:
        """Those that return with other values in callee-saved registers, as many of the file do: these go unchecked."""
        return self.proof.careless

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
        if claimed == computed:
            computed = OVERWRITTEN
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
