"""Procedure linkage tables of AMD64: one FDE for the first entry and for all that follow it.

The CFA of the latter is an expression of the program counter's low bits, which is a repeating block of the table: so
the FDE becomes several ranges.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walkback.dwarf.expressions import ExpressionSteps
from walkback.table.rule import Part, PartKind, Reason, Rule, inexpressible
from walkback.table.table import UnwindTable, rule_array


def with_blocks(table: UnwindTable, stepped: dict[int, ExpressionSteps]) -> UnwindTable:
    """The table with ranges of repeating blocks in place of the rules that have steps."""
    has_steps = np.zeros(len(table.rules), np.bool_)
    has_steps[list(stepped)] = True
    sums = np.zeros(len(table.row_rule) + 1, np.uint32)
    np.cumsum(has_steps[table.row_rule], out=sums[1:])
    affected = np.flatnonzero(sums[table.range_first_row + table.range_rows] > sums[table.range_first_row])
    if not len(affected):
        return table
    ranges: list[tuple[int, int, int, int, int, int]] = []
    rows: list[tuple[int, int]] = []
    rules: dict[Rule, int] = {}
    for index in affected.tolist():
        for offset, size, block, own in _parts(table, index, stepped):
            ranges.append((index, offset, size, block, len(table.row_rule) + len(rows), len(own)))
            for at, rule in own:
                number = rule if isinstance(rule, int) else rules.setdefault(rule, len(table.rules) + len(rules))
                rows.append((at, number))
    keep = np.ones(len(table), np.bool_)
    keep[affected] = False
    source, offset, sizes, blocks, first, count = np.array(ranges, np.uint64).T
    origin = np.concatenate((np.flatnonzero(keep), source.astype(np.int64)))
    order = np.argsort(origin, kind="stable")
    new_rows = np.array(rows, np.uint32).reshape(-1, 2)

    def joined(column: np.ndarray, more: np.ndarray) -> np.ndarray:
        both = np.concatenate((column[keep], more.astype(column.dtype)))
        return both[order]

    return replace(
        table,
        range_section=table.range_section[origin][order],
        range_start=joined(table.range_start, table.range_start[source] + offset),
        range_size=joined(table.range_size, sizes),
        range_first_row=joined(table.range_first_row, first),
        range_rows=joined(table.range_rows, count),
        range_signal=table.range_signal[origin][order],
        range_pauth_key=table.range_pauth_key[origin][order],
        range_block=joined(table.range_block, blocks),
        range_origin=table.range_origin[origin][order],
        row_offset=np.concatenate((table.row_offset, new_rows[:, 0])),
        row_rule=np.concatenate((table.row_rule, new_rows[:, 1])),
        rules=np.concatenate((table.rules, rule_array(list(rules)))),
    )


Own = list[tuple[int, int | Rule]]
"""Rows: offset, and the rule or the number of one."""


def _parts(table: UnwindTable, index: int, stepped: dict[int, ExpressionSteps]) -> list[tuple[int, int, int, Own]]:
    """The ranges that one FDE becomes: offset in it, size, size of the repeating block, rows."""
    size = int(table.range_size[index])
    first = int(table.range_first_row[index])
    numbers = table.row_rule[first : first + int(table.range_rows[index])].tolist()
    offsets = table.row_offset[first : first + len(numbers)].tolist()
    parts: list[tuple[int, int, int, Own]] = []
    for number, offset, following in zip(numbers, offsets, [*offsets[1:], size], strict=True):
        end = min(following, size)
        if end <= offset:
            continue
        step = stepped.get(number)
        own: Own
        if step is None:
            own, block = [(0, number)], 0
        elif (int(table.range_start[index]) + offset) % step.block:
            own, block = [(0, inexpressible(Reason.STEPS))], 0
        else:
            rule = Rule.from_record(table.rules[number])
            cfa = [Part(PartKind.REGISTER, step.register, step.offset + more) for more in (0, step.more)]
            own, block = [(0, replace(rule, cfa=cfa[0])), (step.start, replace(rule, cfa=cfa[1]))], step.block
        if not block and parts and not parts[-1][2]:
            begin, length, _, before = parts[-1]
            parts[-1] = (begin, length + end - offset, 0, [*before, (offset - begin, own[0][1])])
        else:
            parts.append((offset, end - offset, block, own))
    return parts or [(0, size, 0, [])]
