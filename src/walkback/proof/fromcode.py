"""A table made from the code alone, for functions that no other table describes.

The code is walked through as a proof does it, and the rules are those that hold in the states found. Then the table is
proved like any other, and what is not proved is left out. Nothing is guessed: a range gets rules only with `evidence`
that it is entered as the ABI says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, U32, U64, Bools, are_among, changes, distinct, ranked
from walkback.proof._scan import Scan
from walkback.proof.evidence import BEGINS, among_others, judged
from walkback.proof.finding import Finder
from walkback.proof.findings import Findings
from walkback.proof.functions import Starts, Stretches, function_starts
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.ranges import Ranges, range_at
from walkback.proof.values import (
    AT_CFA,
    AT_POINTER,
    BY_B,
    CFA_SAVED,
    CFA_SHIFT,
    KEPT,
    PART_BIAS,
    PART_SHIFT,
    WITH_SIGNATURE,
    Verdict,
    Why,
)
from walkback.table.rule import OUTERMOST, UNCHANGED, Part, PartKind, Reason, Rule, inexpressible
from walkback.table.settle import settled
from walkback.table.source import Kind, TableSource
from walkback.table.table import UnwindTable, joined, rule_array

NAME = "code"
"""Used in place of a section's name."""
_PROOFS = 4
"""After how many proofs whole ranges are left out where something is doubtful."""
_MOST_PROOFS = 16
"""And after how many whatever is together with these."""
_ROUNDS = 8
"""How often code that nothing leads to is taken for further functions."""
_EARLY = 2
"""How many of these take only what looks like functions, and the first place of each stretch."""
_HALF = (1 << 32) - 1


class CodeSource(TableSource):
    """The machine code of a file, where no other table describes it."""

    kind: ClassVar[Kind] = "code"

    def __init__(self, prover: Prover, stretches: Stretches, *, fills: bool) -> None:
        """If it `fills` the holes of other tables, what nothing shows to be code is left out."""
        super().__init__(prover.elf, NAME, memoryview(b""), 0)
        self._prover, self._stretches, self._fills = prover, stretches, fills

    @property
    def bytes(self) -> None:
        """A table that is made takes no bytes in the file."""
        return

    @cached_property
    def table(self) -> UnwindTable:
        """The rules that the code shows; code that has none has a rule that says why."""
        return table_of_code(self._prover, self._stretches, known_only=self._fills)


def table_of_code(prover: Prover, stretches: Stretches, *, known_only: bool = False) -> UnwindTable:
    """The rules of some code; if `known_only`, nothing of what may be data between functions."""
    starts = function_starts(prover, stretches)
    entries = distinct(np.append(starts.sure, starts.framing))
    finder = Finder(prover, starts)
    entries = distinct(np.append(entries, finder.jumped_to(_without_rules(prover, stretches, entries))))
    for turn in range(_ROUNDS):
        ranges, found = finder.found(_without_rules(prover, stretches, entries))
        more = _next_starts(ranges, found, starts, entries, late=turn >= _EARLY)
        if not len(more):
            break
        entries = distinct(np.append(entries, more))
    reasons = judged(prover, ranges, found, starts, finder)
    chosen = np.flatnonzero(reasons == 0)
    rules = _with_rules(prover, ranges, found, chosen, *finder.doubtful(ranges, found, reasons != 0))
    proved = _proved(prover, rules, finder.seen)
    proved.range_origin = chosen[proved.range_origin]
    is_other = reasons != 0
    if known_only:
        is_other &= (reasons != Reason.NOT_ENTERED) | are_among(ranges.start, starts.named)
    others = np.flatnonzero(is_other)
    words, number = ranked(reasons[others])
    why = [OUTERMOST if word == BEGINS else inexpressible(Reason(word)) for word in words.tolist()]
    start, end = ranges.start[others], np.where(reasons == BEGINS, found.straight, found.ends)[others]
    left_out = _table(prover, start, end - start, number.reshape(-1).astype(np.uint32), why)
    left_out.range_origin = others
    return settled(joined([left_out, proved]), merge=True)


def _next_starts(ranges: Ranges, found: Findings, starts: Starts, entries: U64, *, late: bool) -> U64:
    """The first place of each stretch of code that nothing leads to, and what functions go on in.

    If it is `late`, all that may be functions.
    """
    last, has_rule = found.last_rows()
    has_rule |= among_others(found.seen)[range_at(ranges, starts.others)]  # these lead nowhere that is wanted
    pointed = starts.others[~has_rule & starts.pointed]
    pointed = pointed[~are_among(pointed, entries)]
    if len(pointed):  # all others may be parts of these
        return pointed
    bare = np.flatnonzero(~has_rule)
    is_next = (starts.padded if late else starts.likely) & ~has_rule
    is_next[bare[changes(last[bare])]] = True  # the last row is the same for all places of a stretch
    tails = found.tails()[:, 1]
    more = distinct(np.append(starts.others[is_next], tails[are_among(tails, starts.others)]))
    return more[~are_among(more, entries)]


def _without_rules(prover: Prover, stretches: Stretches, entries: U64) -> UnwindTable:
    """A table of the pieces of all stretches that begin at these entries."""
    start, size = stretches.cut(entries)
    return _table(prover, start, size.astype(np.uint64), np.zeros(len(start), np.uint32), [OUTERMOST])


def _table(prover: Prover, start: U64, size: U64, rule: U32, rules: list[Rule]) -> UnwindTable:
    """A table of ranges at addresses of the image, each with one row."""
    count = len(start)
    return UnwindTable(
        machine=prover.machine,
        **_places(prover, start),
        range_size=size,
        range_first_row=np.arange(count),
        range_rows=np.ones(count, np.int64),
        range_signal=np.zeros(count, np.bool_),
        range_pauth_key=np.zeros(count, np.uint8),
        range_block=np.zeros(count, np.uint32),
        range_origin=np.arange(count),
        row_offset=np.zeros(count, np.uint32),
        row_rule=rule,
        rules=rule_array(rules),
    )


def _places(prover: Prover, address: U64) -> dict[str, np.ndarray]:
    """The sections of addresses of the image, and the places in them."""
    section, place = prover.sections_of(address)
    return {"range_section": section, "range_start": place}


def _with_rules(prover: Prover, ranges: Ranges, found: Findings, chosen: I64, part: I64, doubtful: U64) -> UnwindTable:
    """A table of some ranges with the rules that were found; where none was, a rule says so.

    So it does in a part from where on it is doubtful.
    """
    place = np.full(len(ranges.start), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    first = np.zeros((len(chosen), 5), np.uint64)  # whether the code is reached where a range begins or not
    first[:, 0], first[:, 1] = chosen, ranges.start[chosen]
    rows, stops = found.rows(), np.zeros((len(part), 5), np.uint64)
    stops[:, 0], stops[:, 1] = part, doubtful
    rows = np.concatenate((first, rows, stops))
    rows = rows[place[rows[:, 0].astype(np.int64)] >= 0]
    is_out = (place[rows[:, 4].astype(np.int64)] < 0) | (ranges.is_entry[rows[:, 4].astype(np.int64)] == 0)
    limit = np.full(len(ranges.start), 2**64 - 1, np.uint64)
    limit[part] = doubtful
    is_out |= rows[:, 1] >= limit[rows[:, 0].astype(np.int64)]
    rows[is_out, 2:4] = 0  # how it was entered is not known
    rows = rows[rows[:, 1] < found.ends[rows[:, 0].astype(np.int64)]]
    rows = rows[np.lexsort((np.arange(len(rows)), rows[:, 1], place[rows[:, 0].astype(np.int64)]))]
    last = np.append((rows[1:, :2] != rows[:-1, :2]).any(axis=1), True)[: len(rows)]
    rows = rows[last]
    number = place[rows[:, 0].astype(np.int64)]
    order = np.lexsort((rows[:, 3], rows[:, 2]))
    is_new = changes(rows[order, 2], rows[order, 3])
    words, rule = rows[order[is_new], 2:4], np.empty(len(rows), np.uint32)
    rule[order] = np.cumsum(is_new) - 1
    rules = [_rule(prover.machine, *one) if one[1] else inexpressible(Reason.UNPROVED) for one in words.tolist()]
    count = np.bincount(number, minlength=len(chosen))
    start = ranges.start[chosen]
    table = _table(prover, start, found.ends[chosen] - start, np.zeros(len(chosen), np.uint32), rules)
    offset = (rows[:, 1] - start[number]).astype(np.uint32)
    keyed = (words[:, 1] >> np.uint64(32)) & np.uint64(BY_B) != 0
    key = np.zeros(len(chosen), np.uint8)
    np.maximum.at(key, number, keyed[rule].astype(np.uint8))
    laid = {"range_first_row": np.cumsum(count) - count, "range_rows": count, "row_offset": offset}
    return replace(table, row_rule=rule, range_pauth_key=key, **laid)


def _rule(machine: Machine, cfa: int, rest: int) -> Rule:
    """The rule of two words."""
    kind = PartKind.AT_REGISTER if cfa & CFA_SAVED else PartKind.REGISTER
    ra, fp = rest >> 32, rest & _HALF
    parts = Part(kind, cfa >> CFA_SHIFT, _offset(cfa)), _part(ra, machine), _part(fp, machine)
    return Rule(*parts, bool(ra & WITH_SIGNATURE))


def _offset(word: int) -> int:
    return (word & (2 * PART_BIAS - 1)) - PART_BIAS


def _part(word: int, machine: Machine) -> Part:
    kind = word >> PART_SHIFT
    if kind == AT_CFA:
        return Part(PartKind.AT_CFA, 0, _offset(word))
    if kind == AT_POINTER:
        return Part(PartKind.AT_REGISTER, machine.fp, _offset(word))
    return UNCHANGED if kind == KEPT else Part(PartKind.REGISTER, word & 0xFF)


def _proved(prover: Prover, table: UnwindTable, seen: Scan) -> UnwindTable:
    """The table with a rule that says so where its own is not proved: nothing of a range that is wrong somewhere is.

    What is left out leads nowhere any more, so the rest of such a unit is proved again, until all of it is.
    """
    only = None
    for turn in range(1, _MOST_PROOFS + 1):
        proof, former = prover.prove(table, only=only, apart=True, seen=seen), len(table)
        wrong = proof.verdicts[:, Verdict.WRONG] > 0
        doubtful = wrong | (proof.verdicts[:, Verdict.ASSUMED] > 0)
        unproved = proof.runs[proof.runs[:, 3] != Verdict.NOT_REACHED]
        # Where there is no rule yet, it is unknown as an expression is that is not followed.
        has_none = (unproved[:, 3] == Verdict.UNKNOWN) & (unproved[:, 4] == Why.EXPRESSION)
        unit = proof.units.number
        changed = np.isin(unit, np.concatenate((unit[doubtful], unit[unproved[:, 0].astype(np.int64)])))
        out = wrong
        if turn >= _PROOFS:  # it may not end otherwise
            out = doubtful if turn < _MOST_PROOFS else changed
        table = _without(prover, table, proof, unproved, out)
        if has_none.all() and not doubtful.any() and len(table) == former:
            break
        only = proof.ranges.start[changed]
    return table


def _without(prover: Prover, table: UnwindTable, proof: Proof, unproved: U64, out: Bools) -> UnwindTable:
    """The table with `UNPROVED` in place of each rule that is not proved, and of all rules of ranges that are `out`."""
    start = np.concatenate((unproved[:, 1], proof.ranges.start[out]))
    size = np.concatenate((unproved[:, 2], proof.ranges.size[out].astype(np.uint64)))
    holes = _table(prover, start, size, np.zeros(len(start), np.uint32), [inexpressible(Reason.UNPROVED)])
    begins = prover.image.addresses(table.range_start, table.range_section)
    holes.range_origin = table.range_origin[np.searchsorted(begins, start, "right") - 1]
    return settled(joined([table, holes]))
