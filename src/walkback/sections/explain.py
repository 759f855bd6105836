"""What the proof says of each instruction of a function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from walkback.base.arch import MACHINES
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import Flow
from walkback.elf import layout
from walkback.proof.prove import Proof, Prover
from walkback.proof.relocate import UNDEFINED_STEP
from walkback.proof.values import Verdict, Why
from walkback.proof.words import NOT_KNOWN, StateWords, register_word
from walkback.symbols.plt import PltNames

_LEADING = {Flow.CALL, Flow.JUMP, Flow.BRANCH}


@dataclass(frozen=True, slots=True)
class Explained:
    """One instruction."""

    address: int
    """In an object the offset in its section."""
    section: str | None
    """In an object the section of the code."""
    code: bytes
    verdict: Verdict
    what: str | None
    """Where the table is wrong: `cfa`, `ra`, `fp`, or the name of a register."""
    why: Why | None
    """Why the proof does not know."""
    rule: str
    """What the table says."""
    computed: str
    """What the code does; where all that the table says is proved, the same."""
    target: int | None
    """Where it calls or jumps out of the function, counted as `address` is."""
    target_name: str | None
    """The symbol there."""


def explain(proof: Proof, prover: Prover, function: int) -> Iterator[Explained]:
    """Each instruction of the function that holds an address of the image."""
    unit = proof.unit_of(function)
    if unit is None:
        return
    machine, elf, number = proof.machine, prover.elf, proof.range_of(function)
    start, size = int(proof.ranges.start[number]), int(proof.ranges.size[number])
    section, place = prover.section_of(start)
    names = _TargetNames(prover)
    inside = [one for one in proof.instructions(unit) if start <= one[0] < start + size]
    states = proof.states_at(unit, [address for address, _, _, _ in inside])
    for (address, length, verdict, cause), state in zip(inside, states, strict=True):
        code = proof.code_at(address, length)
        target = _target(MACHINES.index(machine), code, address)
        outside = target is not None and not start <= target < start + size
        claims = proof.claims_at(number, address)
        rule = _listed(proof, claims)
        yield Explained(
            address=address - start + place,
            section=elf.section_name(section) if section >= 0 else None,
            code=code,
            verdict=verdict,
            what=register_word(machine, cause) if verdict is Verdict.WRONG else None,
            why=Why(cause) if verdict is Verdict.UNKNOWN else None,
            rule=rule,
            computed=rule if verdict is Verdict.PROVED else _computed(proof, claims, state),
            target=target - start + place if outside and target is not None else None,
            target_name=names.at(target) if outside and target is not None else None,
        )


def _target(machine: int, code: bytes, address: int) -> int | None:
    """Where an instruction calls or jumps to."""
    one = dict(zip(COLUMNS, listing(machine, code, address)[0].tolist(), strict=True))
    return one["target"] & 2**64 - 1 if one["flow"] in _LEADING else None


class _TargetNames:
    """Names of functions, also of those that other files define."""

    def __init__(self, prover: Prover) -> None:
        self._prover, elf = prover, prover.elf
        self._imported: dict[int, str] = {}
        if not elf.is_relocatable:
            starts, _, stubs = PltNames(elf).entries()
            self._imported = {start: name for start, name in zip(starts, stubs, strict=True) if name}
            return
        for table in elf.sections_of_type(layout.SHT_SYMTAB):
            symbols = elf.symbols(table)
            numbers = np.flatnonzero(symbols["section"] == layout.SHN_UNDEF).tolist()
            names = elf.strings(int(elf.sections["link"][table]), symbols["name_offset"][numbers].tolist())
            places = [int(prover.image.base[-1]) + UNDEFINED_STEP * number for number in numbers]
            self._imported |= dict(zip(places, names, strict=True))

    def at(self, address: int) -> str | None:
        """The name of what is at an address of the image."""
        section, place = self._prover.section_of(address)
        return self._imported.get(address) or self._prover.symbols.describe(place, section)


def _listed(proof: Proof, places: dict[int, str]) -> str:
    """Where values are, as `CFA = rsp+16, ra = *(CFA-8)`; registers that are unchanged are left out."""
    words = [
        f"{register_word(proof.machine, target)} = {place}"
        for target, place in places.items()
        if place not in {"unchanged", "undefined"}
    ]
    return ", ".join(words).replace("cfa = ", "CFA = ")


def _computed(proof: Proof, claims: dict[int, str], state: StateWords | None) -> str:
    """Where the code has what the table claims."""
    return NOT_KNOWN if state is None else _listed(proof, {target: state.where(target) for target in claims})
