"""Functions of real programs that are proved, each with one rule changed by chance: the proof has to see the change."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from effort import rounds
from peers import root
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict
from walkback.table.rule import RULE, Part, PartKind, Rule

if TYPE_CHECKING:
    from walkback.table.table import UnwindTable

FILES = {
    "AMD64": "usr/lib/x86_64-linux-gnu/libc.so.6",
    "AArch64": "usr/lib/aarch64-linux-gnu/libc.so.6",
    "s390x": "usr/lib/s390x-linux-gnu/libc.so.6",
}
ROOTS = {"AArch64": "arm64", "s390x": "s390x"}


class Edit(NamedTuple):
    """A rule that was changed."""

    row: int
    start: int
    """The function."""
    instructions: set[int]
    """Those that the row is about."""
    rule: Rule
    what: str


@pytest.mark.parametrize("machine", FILES)
def test_a_changed_rule_of_a_proved_function_is_wrong(machine: str) -> None:
    path = Path("/") if machine == "AMD64" else root(ROOTS[machine])
    if not (path / FILES[machine]).exists():
        pytest.skip("this system has its libraries elsewhere")
    elf = ElfFile(path / FILES[machine])
    [source] = frame_sources(elf)
    proof = Prover(elf).prove(source.table, source)
    rng = random.Random(20261123)
    edits = [chosen_edit(rng, proof, source.table) for _ in range(rounds(200, 40))]
    edited = changed(source.table, edits)
    found = Prover(elf).prove(edited)
    wrong = [(one[2], one[3]) for one in found.mismatches.tolist()]
    for edit in edits:
        seen = any(address <= place < address + size for place in edit.instructions for address, size in wrong)
        assert seen, (hex(edit.start), edit.what, edit.rule.text(machine))


def chosen_edit(rng: random.Random, proof: Proof, table: UnwindTable) -> Edit:
    """A change of some row of some proved function, of which instructions are reached."""
    while True:
        number = rng.randrange(len(proof.ranges.start))
        verdicts = proof.verdicts[number]
        start = int(proof.ranges.start[number])
        own = np.flatnonzero(table.range_start == start)
        if not verdicts[Verdict.PROVED] or verdicts[Verdict.WRONG :].any() or len(own) != 1:
            continue
        first, count = int(table.range_first_row[own[0]]), int(table.range_rows[own[0]])
        row = first + rng.randrange(count)
        ends = [*table.row_offset[first + 1 : first + count].tolist(), int(table.range_size[own[0]])]
        begin, end = start + int(table.row_offset[row]), start + ends[row - first]
        unit = proof.unit_of(start)
        assert unit is not None
        places = {address for address, *_ in proof.instructions(unit) if begin <= address < end}
        rule = Rule.from_record(table.rules[table.row_rule[row]])
        if places and rule.cfa.kind is PartKind.REGISTER and not rule.outermost:
            what, other = edited_rule(rng, rule, table)
            return Edit(row, start, places, other, what)


def edited_rule(rng: random.Random, rule: Rule, table: UnwindTable) -> tuple[str, Rule]:
    by = rng.choice([-16, -8, 8, 16])
    moved = Part(rule.cfa.kind, rule.cfa.register, rule.cfa.offset + by)
    choices = {"cfa": replace(rule, cfa=moved)}
    at_sp = rule.cfa.register == table.machine.sp
    choices["base"] = replace(rule, cfa=Part(PartKind.REGISTER, 3 if at_sp else table.machine.sp, rule.cfa.offset + 24))
    if rule.ra.kind is PartKind.AT_CFA:
        choices["ra"] = replace(rule, ra=Part(PartKind.AT_CFA, 0, rule.ra.offset + by))
    if rule.fp.kind is PartKind.AT_CFA:
        choices["fp"] = replace(rule, fp=Part(PartKind.AT_CFA, 0, rule.fp.offset + by))
    return rng.choice(list(choices.items()))


def changed(table: UnwindTable, edits: list[Edit]) -> UnwindTable:
    """The table with all changes; each is in a function of its own, or it would be two changes of one."""
    rules = np.concatenate((table.rules, np.array([edit.rule.record() for edit in edits], RULE)))
    row_rule = table.row_rule.copy()
    for number, edit in enumerate(edits):
        row_rule[edit.row] = len(table.rules) + number
    return replace(table, rules=rules, row_rule=row_rule)
