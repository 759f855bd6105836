"""A function, instruction by instruction: what the code has done to the stack, and what unwind tables say of it.

The stack is the state that the proof follows through the machine code; the rules are those of the tables. Neither knows
of the other.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import walkback
from walkback.base.arch import AMD64
from walkback.proof.values import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, Known, Verdict
from walkback.sections.verify import explained

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from walkback.proof.words import StateWords
    from walkback.sections.explain import Explained
    from walkback.sections.verified import Verified

CFI, SFRAME = ".eh_frame", ".sframe"


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction that is about to run."""

    offset: int
    code: bytes
    text: str
    cfi: Mapping[str, str]
    """Where call frame information finds each value."""
    sframe: str
    """The rule of SFrame."""
    row: bytes
    """The bytes of its row."""
    depth: int
    """The stack pointer, from the CFA."""
    fp: int | None
    """The frame pointer, from the CFA; None while it is the caller's."""
    slots: Mapping[int, str]
    """The registers whose values are on the stack, by place from the CFA; also below the stack pointer."""

    @property
    def linked(self) -> bool:
        """Whether the frame pointer leads to this frame: beside the caller's frame pointer is the return address."""
        return self.fp is not None and self.slots.get(self.fp) == "rbp" and self.slots.get(self.fp + 8) == "rip"


def assembled(source: Path, folder: Path) -> Path:
    """An object of a file of assembly, with SFrame beside its call frame information."""
    path = folder / f"{source.stem}.o"
    subprocess.run(["gcc", "-c", "-o", path, source], check=True)
    walkback.add(path)
    return path


def steps(path: Path, function: str) -> list[Step]:
    """The instructions of a function of an object; both tables have to be proved at each."""
    found: dict[str, list[Explained]] = {}
    states: list[StateWords] = []
    for verified, explanation in explained(path, function):
        instructions = list(explanation.instructions())
        assert {one.verdict for one in instructions} == {Verdict.PROVED}, f"{verified.table} is not proved"
        found[verified.table] = instructions
        states = list(_states(verified, instructions))
    start = found[CFI][0].address
    rows = [next(walkback.find(path, f"{function}+{one.address - start}")) for one in found[CFI]]
    return [
        Step(
            offset=cfi.address - start,
            code=cfi.code,
            text=cfi.text,
            cfi=cfi.rules,
            sframe=row.found.rule.text(AMD64),
            row=row.row_bytes,
            depth=_cfa_offset(state.registers[AMD64.sp]),
            fp=None if _entry(state.registers[AMD64.fp]) == AMD64.fp else _cfa_offset(state.registers[AMD64.fp]),
            slots=_slots(state),
        )
        for cfi, row, state in zip(found[CFI], rows, states, strict=True)
    ]


def _states(verified: Verified, instructions: Sequence[Explained]) -> Iterator[StateWords]:
    """What the proof knows before each instruction."""
    prover = verified.prover
    section = next(n for n in range(len(prover.elf.sections)) if prover.elf.section_name(n) == instructions[0].section)
    addresses = [prover.image_address(section, one.address) for one in instructions]
    unit = verified.proof.unit_of(addresses[0])
    assert unit is not None
    for state in verified.proof.states_at(unit, addresses):
        assert state is not None
        yield state


def _slots(state: StateWords) -> dict[int, str]:
    saved = {_cfa_offset(place): _entry(value) for place, value in state.saved.items() if _is(place, Known.CFA)}
    return {place: AMD64.register_name(register) for place, register in saved.items() if register is not None}


def _is(value: int, kind: Known) -> bool:
    return (value & KIND_MASK) == kind


def _cfa_offset(value: int) -> int:
    assert _is(value, Known.CFA)
    return value >> OFFSET_SHIFT


def _entry(value: int) -> int | None:
    """The register that had this value when the function was entered."""
    return (value >> ID_SHIFT) & ID_MASK if _is(value, Known.ENTRY) and not value >> OFFSET_SHIFT else None
