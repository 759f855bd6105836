"""What the proof says of each instruction of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from walkback.base.arch import MACHINES
from walkback.base.dataclass import dataclass
from walkback.code._listing import listing
from walkback.proof.proof import Instruction, Proof
from walkback.proof.prove import Prover
from walkback.proof.values import CFA_TARGET, Verdict, Why
from walkback.proof.words import NOT_KNOWN, UNCHANGED, StateWords, register_word
from walkback.sections.codetext import LONGEST, CodeText

_PIECE = 1 << 10
_LARGEST_PIECE = 1 << 15
"""Instructions that are in memory at once: pieces grow, because the unit is walked anew for each."""
_TOO_COMPLEX = (Verdict.UNKNOWN, int(Why.TOO_COMPLEX))
"""What all instructions of a unit are, if one is."""
_SILENT = {UNCHANGED, "undefined"}
"""What is left out of a whole rule."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One instruction."""

    address: int
    """In an object the offset in its section."""
    section: str | None
    """In an object the section of the code."""
    code: bytes
    """As the file has it."""
    text: str
    verdict: Verdict
    what: str | None
    """Where the table is wrong: `cfa`, `ra`, `fp`, or the name of a register."""
    why: Why | None
    """Why the proof assumes or does not know."""
    rules: Mapping[str, str]
    """Where the table says that values are, by `cfa`, `ra`, `fp`, or the name of a register."""
    state: Mapping[str, str]
    """Where the code has these, and always the CFA and the return address; empty where the proof does not know."""

    @property
    def rule(self) -> str:
        """What the table says, in words."""
        return listed(self.rules)

    @property
    def computed(self) -> str:
        """What the code has, in words."""
        return listed(self.state) if self.state else NOT_KNOWN


class Explanation:
    """The instructions of the function that holds an address of the image; they are read as they are asked for."""

    def __init__(self, proof: Proof, prover: Prover, function: int) -> None:
        self._proof, self._prover = proof, prover
        self._number = proof.range_of(function)
        self._start = int(proof.ranges.start[self._number])
        self._end = self._start + (int(proof.ranges.size[self._number]) if proof.unit_of(function) is not None else 0)
        self._text = CodeText(proof, prover)
        self._words = Words(proof)

    @cached_property
    def counts(self) -> dict[Verdict, int]:
        """How many instructions have each verdict."""
        found = self._proof.instructions_from(self._start, self._end - self._start, 0)
        if found is None:
            return {Verdict.UNKNOWN: sum(map(len, self._pieces(self._end - self._start)))}
        return {verdict: count for verdict, count in zip(Verdict, found[1], strict=False) if count}

    def instructions(self, most: int | None = None) -> Iterator[Explained]:
        """The first instructions, or all."""
        for piece in self._pieces(self._end - self._start if most is None else most):
            yield from self._explained(piece)

    def _pieces(self, left: int) -> Iterator[Sequence[Instruction]]:
        at, size = self._start, _PIECE
        while left > 0 and at < self._end:
            found = self._proof.instructions_from(at, self._end - at, min(size, left))
            rows = self._not_walked(at, min(size, left)) if found is None else found[0]
            if not rows:
                return
            yield rows
            left -= len(rows)
            at = rows[-1][0] + max(rows[-1][1], 1)
            size = min(2 * size, _LARGEST_PIECE)

    def _not_walked(self, address: int, most: int) -> list[Instruction]:
        """Instructions of code that is too complex, as they stand one behind the other."""
        code = self._proof.code_at(address, min(self._end - address, most * LONGEST))
        found = []
        for size in listing(MACHINES.index(self._proof.machine), code, address)[:most, 0].tolist():
            found.append((address, size, *_TOO_COMPLEX))
            address += size
        return found

    def _explained(self, rows: Sequence[Instruction]) -> Iterator[Explained]:
        proof, unit = self._proof, self._proof.unit_of(self._start)
        states: Sequence[StateWords | None] = [None] * len(rows)
        if unit is not None and rows[0][2:] != _TOO_COMPLEX:
            states = proof.states_at(unit, [address for address, *_ in rows])
        texts = self._text.texts([(address, size) for address, size, _, _ in rows])
        section, place = self._prover.section_of(self._start)
        name = self._prover.elf.section_name(section) if section >= 0 else None
        for (address, _, verdict, cause), (code, text), state in zip(rows, texts, states, strict=True):
            yield Explained(
                address=address - self._start + place,
                section=name,
                code=code,
                text=text,
                verdict=verdict,
                what=register_word(proof.machine, cause) if verdict is Verdict.WRONG else None,
                why=Why(cause) if verdict in {Verdict.ASSUMED, Verdict.UNKNOWN} else None,
                rules=self._words.rules(self._number, address),
                state=self._words.state(self._number, address, verdict, state),
            )


class Words:
    """What the table and the code have at instructions, by `cfa`, `ra`, `fp`, or the name of a register."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof
        self._claims: dict[tuple[int, int], dict[int, str]] = {}
        self._found: dict[object, dict[str, str]] = {}

    def rules(self, number: int, address: int) -> dict[str, str]:
        """Where the table says that values are, at an address of a range."""
        return self._by_word(self._claimed(number, self._proof.row_at(number, address), address))

    def state(self, number: int, address: int, verdict: Verdict, state: StateWords | None) -> Mapping[str, str]:
        """Where the code has the CFA, the return address, and what the table claims besides."""
        if state is None:
            return {}
        is_proved, row = verdict is Verdict.PROVED, self._proof.row_at(number, address)
        known = is_proved, number, row, tuple(state.of_caller), tuple(state.saved.items())
        if known not in self._found:  # most instructions change nothing of it
            places = self._places(state, self._claimed(number, row, address), is_proved=is_proved)
            self._found[known] = self._by_word(places)
        return self._found[known]

    def _places(self, state: StateWords, claims: Mapping[int, str], *, is_proved: bool) -> dict[int, str]:
        found = {target: state.where(target) for target in dict.fromkeys((CFA_TARGET, self._proof.machine.ra, *claims))}
        if is_proved:  # a register may have its value at several places
            found |= {target: claims[target] for target, at in found.items() if at == UNCHANGED and target in claims}
        return found

    def _claimed(self, number: int, row: int, address: int) -> dict[int, str]:
        if (number, row) not in self._claims:
            self._claims[number, row] = self._proof.claims_at(number, address)
        return self._claims[number, row]

    def _by_word(self, places: Mapping[int, str]) -> dict[str, str]:
        return {register_word(self._proof.machine, target): place for target, place in places.items()}


def listed(places: Mapping[str, str], before: Mapping[str, str] | None = None) -> str:
    """Where values are, as `CFA = rsp+16, ra = *(CFA-8)`: those that changed since, or that the caller has not."""
    if before is None:
        return ", ".join(_said(word, place) for word, place in places.items() if place not in _SILENT)
    gone = {word: UNCHANGED for word, place in before.items() if word not in places and place not in _SILENT}
    changed = {word: place for word, place in places.items() if place != before.get(word, UNCHANGED)}
    return ", ".join(_said(word, place) for word, place in (changed | gone).items())


def _said(word: str, place: str) -> str:
    title = "CFA" if word == "cfa" else word
    return f"{title} {place}" if place in _SILENT else f"{title} = {place}"
