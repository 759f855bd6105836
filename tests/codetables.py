"""Tables made from code, beside the call frame information of the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from walkback.elf import ElfFile
from walkback.proof.fromcode import table_of_code
from walkback.proof.functions import undescribed_code
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict, Why
from walkback.sections.pairs import call_frame_table
from walkback.table.rule import PartKind
from walkback.table.settle import settled

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.base.arrays import U64, Bools
    from walkback.table.table import UnwindTable


def table_of(elf: ElfFile) -> UnwindTable:
    """The rules of all of its code, as if nothing described it."""
    prover = Prover(elf, ())
    nothing = np.zeros(0, np.uint64)
    return table_of_code(prover, undescribed_code(prover, nothing, nothing))


class Compared(NamedTuple):
    """Bytes of code, beside the table that was there before."""

    both: int
    """Those that both describe."""
    contradicting: int
    """Those of these where the rules contradict each other."""
    unexplained: int
    """Those of these where the proof does not hold the former rules wrong."""
    former: int
    """Those that the former describes, and to which its proof finds a way."""


def compared(path: Path) -> Compared:
    """Compare the table made from the code of a file with the call frame information of that file.

    Two rules agree if the CFA is at other offsets only from other registers, and if a value is unchanged where the
    other rule has it in the frame, as in the last instructions of a function.
    """
    elf = ElfFile(path)
    former = call_frame_table(elf)
    assert former is not None
    one, other = settled(former.table), table_of(elf)
    if not len(one.row_rule) or not len(other.row_rule):
        return Compared(0, 0, 0, int(one.range_size.sum()))
    # What only exceptions lead to cannot be found without their tables.
    runs = Prover(elf, ()).prove(former.table).runs
    no_way = (runs[:, 3] == Verdict.UNKNOWN) & (runs[:, 4] == Why.INDIRECT_JUMP)
    unreached = runs[no_way | np.isin(runs[:, 3], (Verdict.ASSUMED, Verdict.NOT_REACHED))]
    wrong = runs[runs[:, 3] == Verdict.WRONG]
    starts = [np.repeat(table.range_start, table.range_rows) + table.row_offset for table in (one, other)]
    ends = [table.range_start + table.range_size for table in (one, other)]
    edges = [column for rows in (unreached, wrong) for column in (rows[:, 1], rows[:, 1] + rows[:, 2])]
    places = np.unique(np.concatenate((*starts, *ends, *edges)))
    size = np.append(np.diff(places), 0).astype(np.int64)
    rules, known, begins = [], [], np.zeros(len(places), np.bool_)
    for table in (one, other):
        within, row = table.find_many(places)
        if table is one:  # its first instruction is before the directive that says so
            begins = (within >= 0) & (one.range_start[within] == np.uint64(elf.entry))
        rules.append(table.rules[table.row_rule[row]])
        known.append((row >= 0) & (rules[-1]["cfa"]["kind"] != PartKind.INEXPRESSIBLE))
    stubs = np.zeros(len(places), np.bool_)
    for number, name in enumerate(elf.section_names()):
        if name.startswith((".plt", ".iplt")):
            stubs |= places - elf.sections["addr"][number] < elf.sections["size"][number]
    first = known[0] & ~_within(unreached, places) & ~stubs
    both = first & known[1]
    outermost = [one["ra"]["kind"] == PartKind.UNDEFINED for one in rules]
    same = [rules[0][name] == rules[1][name] for name in ("cfa", "ra", "fp")]
    other_base = rules[0]["cfa"]["register"] != rules[1]["cfa"]["register"]
    moved = [
        (rules[0][name]["kind"] == PartKind.UNCHANGED) != (rules[1][name]["kind"] == PartKind.UNCHANGED)
        for name in ("ra", "fp")
    ]
    alike = (same[0] | other_base) & (same[1] | moved[0]) & (same[2] | moved[1])
    agree = (outermost[1] & (outermost[0] | begins)) | (alike & ~(outermost[0] | outermost[1]))
    against = both & ~agree
    parts = both, against, against & ~_within(wrong, places), first
    return Compared(*(int(size[part].sum()) for part in parts))


def _within(rows: U64, places: U64) -> Bools:
    """Which places are in ranges of an address and bytes, the second and third columns of rows."""
    if not len(rows):
        return np.zeros(len(places), np.bool_)
    rows = rows[np.argsort(rows[:, 1])]
    last = np.searchsorted(rows[:, 1], places, "right") - 1
    found: Bools = (last >= 0) & (places < rows[last.clip(min=0), 1] + rows[last.clip(min=0), 2])
    return found
