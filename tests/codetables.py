"""Tables made from code, beside the call frame information of the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.elf import ElfFile
from walkback.proof.fromcode import table_of_code
from walkback.proof.functions import undescribed_code
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict
from walkback.sections.pairs import call_frame_table
from walkback.table.rule import PartKind
from walkback.table.settle import settled

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.table.table import UnwindTable


def table_of(elf: ElfFile) -> UnwindTable:
    """The rules of all of its code, as if nothing described it."""
    prover = Prover(elf, ())
    nothing = np.zeros(0, np.uint64)
    return table_of_code(prover, undescribed_code(prover, nothing, nothing))


def compared(path: Path) -> tuple[int, int, int]:
    """Bytes that both tables describe, those of them where the rules contradict each other, and those of the former.

    Two rules agree if the CFA is at other offsets only from other registers, and if a value is unchanged where the
    other rule has it in the frame, as in the last instructions of a function.
    """
    elf = ElfFile(path)
    former = call_frame_table(elf)
    assert former is not None
    one, other = settled(former.table), table_of(elf)
    if not len(one.row_rule) or not len(other.row_rule):
        return 0, 0, int(one.range_size.sum())
    # What only exceptions lead to cannot be found without their tables.
    reached = Prover(elf, ()).prove(former.table).runs
    reached = reached[(reached[:, 3] == Verdict.ASSUMED) | (reached[:, 3] == Verdict.NOT_REACHED)]
    starts = [np.repeat(table.range_start, table.range_rows) + table.row_offset for table in (one, other)]
    ends = [table.range_start + table.range_size for table in (one, other)]
    places = np.unique(np.concatenate((*starts, *ends, reached[:, 1], reached[:, 1] + reached[:, 2])))
    size = np.append(np.diff(places), 0).astype(np.int64)
    rules, known = [], []
    for table in (one, other):
        _, row = table.find_many(places)
        rules.append(table.rules[table.row_rule[row]])
        known.append((row >= 0) & (rules[-1]["cfa"]["kind"] != PartKind.INEXPRESSIBLE))
    order = np.argsort(reached[:, 1])
    last = np.searchsorted(reached[order, 1], places, "right") - 1
    left_out = np.zeros(len(places), np.bool_)
    if len(order):
        begin, length = reached[order[last.clip(min=0)], 1], reached[order[last.clip(min=0)], 2]
        left_out = (last >= 0) & (places < begin + length)
    stubs = np.zeros(len(places), np.bool_)
    for number, name in enumerate(elf.section_names()):
        if name.startswith((".plt", ".iplt")):
            stubs |= places - elf.sections["addr"][number] < elf.sections["size"][number]
    first = known[0] & ~left_out & ~stubs
    both = first & known[1]
    agree = (rules[0]["ra"]["kind"] == PartKind.UNDEFINED) | (rules[1]["ra"]["kind"] == PartKind.UNDEFINED)
    same = [rules[0][name] == rules[1][name] for name in ("cfa", "ra", "fp")]
    other_base = rules[0]["cfa"]["register"] != rules[1]["cfa"]["register"]
    moved = [
        (rules[0][name]["kind"] == PartKind.UNCHANGED) != (rules[1][name]["kind"] == PartKind.UNCHANGED)
        for name in ("ra", "fp")
    ]
    agree |= (same[0] | other_base) & (same[1] | moved[0]) & (same[2] | moved[1])
    return int(size[both].sum()), int(size[both & ~agree].sum()), int(size[first].sum())
