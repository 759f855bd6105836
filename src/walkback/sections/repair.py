"""A table made right: rules that the machine code contradicts are found, and replaced by those that it proves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.values import CFA_TARGET, Verdict
from walkback.table.rule import Rule
from walkback.table.table import UnwindTable, rule_array

if TYPE_CHECKING:
    from walkback.elf import ElfFile
    from walkback.proof.words import StateWords


class Righted(NamedTuple):
    """A table whose rules the machine code does not contradict."""

    table: UnwindTable
    """With as many ranges as before."""
    wrong: list[int]
    """Ranges that are still wrong, and have to be left out."""
    mended: list[int]
    """Ranges that were, and have other rules now."""


def righted(elf: ElfFile, table: UnwindTable, *, repair: bool) -> Righted:
    """Find the ranges of a table that are wrong, and mend those that can be if that is wanted."""
    prover = Prover(elf)
    proof = prover.prove(table)
    wrong = _wrong(prover, proof, table)
    if not wrong or not repair:
        return Righted(table, list(wrong), [])
    rows = {index: rows for index, number in wrong.items() if (rows := _proved_rows(proof, table, number)) is not None}
    mended = _with_rows(table, rows)
    still = _wrong(prover, prover.prove(mended), mended)
    left = [index for index in wrong if index in still or index not in rows]
    return Righted(mended, left, [index for index in rows if index not in still])


def _wrong(prover: Prover, proof: Proof, table: UnwindTable) -> dict[int, int]:
    """The ranges that are wrong, and their numbers in the proof."""
    numbers = np.flatnonzero(proof.verdicts[:, Verdict.WRONG])
    start = prover.image.addresses(table.range_start, table.range_section)
    order = np.argsort(start, kind="stable")
    place = np.searchsorted(start[order], proof.ranges.start[numbers])
    return dict(zip(order[place].tolist(), numbers.tolist(), strict=True))


def _proved_rows(proof: Proof, table: UnwindTable, number: int) -> list[tuple[int, Rule]] | None:
    """The rows of a range: the former rule at each instruction, or where it is wrong the one that the code proves."""
    start, size = int(proof.ranges.start[number]), int(proof.ranges.size[number])
    unit = proof.unit_of(start)
    if unit is None or proof.ranges.block[number]:
        return None
    wrong = [
        (address, address + length)
        for address, length, verdict, _ in proof.instructions(unit)
        if verdict is Verdict.WRONG and start <= address < start + size
    ]
    states = proof.states_at(unit, [address for address, _ in wrong])
    first, count = int(proof.ranges.first_row[number]), int(proof.ranges.rows[number])
    rules = {int(table.row_offset[row]): table.rule(row) for row in range(first, first + count)}
    for (address, end), state in zip(wrong, states, strict=True):
        rule = None if state is None else _rule(state)
        if rule is None:
            return None
        behind = rules[max(offset for offset in rules if offset <= end - start)]
        rules = {offset: rule for offset, rule in rules.items() if not address <= start + offset < end}
        rules[address - start] = rule
        if end < start + size:
            rules.setdefault(end - start, behind)
    return _merged(sorted(rules.items(), key=lambda row: row[0]))


def _rule(state: StateWords) -> Rule | None:
    """The rule that is right in a state, if there is one."""
    machine = state.machine
    cfa, ra, fp = (state.found(target) for target in (CFA_TARGET, machine.ra, machine.fp))
    return None if cfa is None or ra is None or fp is None else Rule(cfa[0], ra[0], fp[0], ra[1] is not None)


def _merged(rows: list[tuple[int, Rule]]) -> list[tuple[int, Rule]]:
    """Rows that change the rule."""
    return [row for place, row in enumerate(rows) if not place or rows[place - 1][1] != row[1]]


def _with_rows(table: UnwindTable, rows: dict[int, list[tuple[int, Rule]]]) -> UnwindTable:
    """The table with other rows for some ranges, which stand behind all others."""
    added = [row for its in rows.values() for row in its]
    first, count = table.range_first_row.copy(), table.range_rows.copy()
    at = len(table.row_offset)
    for index, its in rows.items():
        first[index], count[index] = at, len(its)
        at += len(its)
    distinct = list(dict.fromkeys(rule for _, rule in added))
    number = {rule: len(table.rules) + place for place, rule in enumerate(distinct)}
    offsets = np.array([offset for offset, _ in added], table.row_offset.dtype)
    rules = np.array([number[rule] for _, rule in added], table.row_rule.dtype)
    return replace(
        table,
        range_first_row=first,
        range_rows=count,
        row_offset=np.concatenate((table.row_offset, offsets)),
        row_rule=np.concatenate((table.row_rule, rules)),
        rules=np.concatenate((table.rules, rule_array(distinct))),
    )
