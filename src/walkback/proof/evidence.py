"""Which code without a table is entered as the ABI says: what shows it, and what speaks against it.

Only with such evidence a range gets rules. That is one of these:

- it is called by such a range, or by the C library, and never with its return address where the ABI has none;
- it returns with the stack as it was at the entry;
- it saves registers, and ends so with a jump to a function elsewhere; or puts them back, and jumps anywhere, as long as
  that is not to code which goes on as no function does;
- its address is taken, or it has the symbol of a function, and it saves registers as functions do: so that it can give
  them other values. Where it goes with a frame, or where what is not known goes, that does not count;
- it jumps to a range with such evidence with the stack as it was at the entry, or such a range does so to it.

Where the code of a file jumps to a place that is not known with a frame on the stack, the third and the fourth of these
do not count for code to which data or code points.

Against it speaks what no function does: a jump to a place that is not known with other values in registers that calls
keep, or through a register that nobody gave a value. All of this counts for little where most ranges only jump on, even
if they save registers: that is code that nothing calls. Nor does it count for code that has its own ideas of the
callee-saved registers, as that of OCaml and GHC has.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U8, U16, U64, Bools, are_among
from walkback.proof.finding import Finder
from walkback.proof.findings import Findings
from walkback.proof.functions import Starts, begins_at_entry
from walkback.proof.prove import Prover
from walkback.proof.ranges import Ranges, range_at, reached_from
from walkback.proof.values import Seen, Way
from walkback.table.rule import Reason

BEGINS = 255
"""In the place of a reason: the range where the program begins, which has no caller."""
_NEAR = 128
"""How many ranges on both sides are looked at, to see whether code is entered by calls."""
_PART = re.compile(r"\.(cold|warm|part)\b")
"""In the name of a part of a function, as compilers and BOLT give it; what is called as a function is shown by that."""
_REASONS = (
    (Seen.COMPLEX, Reason.TOO_COMPLEX),
    (Seen.SWITCHES, Reason.OTHER_STACK),
    (Seen.FORKS, Reason.FORKS),
    (Seen.ASTRAY, Reason.ASTRAY),
    (Seen.CATCHES, Reason.UNPROVED),
)
"""Why a range is left out, the first reason that holds."""
_WRONG = np.uint16(Seen.COMPLEX | Seen.SWITCHES | Seen.FORKS | Seen.ASTRAY | Seen.CATCHES)


class _Leads(NamedTuple):
    """Ways from ranges to the beginnings of others."""

    source: I64
    target: I64


def judged(prover: Prover, ranges: Ranges, found: Findings, starts: Starts, finder: Finder) -> U8:
    """For each range the `Reason` why it is left out; 0 if it is entered as the ABI says, or is part of one that is.

    `BEGINS` stands for the range where the program begins, unless something calls it.
    """
    all_calls, all_tails = found.calls(), found.tails()
    usual = all_calls[:, 2] != 0
    calls, tails = _to_beginnings(ranges, all_calls[usual]), _to_beginnings(ranges, all_tails)
    passing = _passing(found.seen, calls) | _going_on(found.seen, tails)
    passing |= are_among(ranges.start, all_calls[~usual, 1])
    wrong = ((found.seen & _WRONG) != 0) | passing
    supported = _supported(prover, ranges, found.seen, all_tails, starts, finder)
    outside, ending = are_among(ranges.start, starts.outside), _ending(prover, found.seen, all_tails)
    if (found.seen & Seen.LEADS).any():  # perhaps to these
        aimed = finder.aimed(ranges)
        supported, ending = supported & ~aimed, ending & ~aimed
    shown = _shown(found.seen, outside, ending, supported, calls, tails, wrong)
    reasons = np.where(((ranges.is_entry == 0) | shown) & ~passing, np.uint8(0), np.uint8(Reason.NOT_ENTERED))
    for bit, reason in reversed(_REASONS):
        reasons[(found.seen & bit) != 0] = reason
    # What saves registers, and goes wrong on some ways only, may go on behind a call that does not come back.
    own = _to_beginnings(ranges, _through_stubs(all_calls, prover.indirect.own_stubs))
    calls = _Leads(np.append(calls.source, own.source), np.append(calls.target, own.target))
    called = found.seen[calls.target]
    moves = (called & (Seen.MOVES | Seen.SWITCHES)) != 0
    moved = calls.source[moves & (((called & Seen.RETURNS) == 0) | ((called & (Seen.SAVES | Seen.SWITCHES)) == 0))]
    reasons[moved[reasons[moved] == 0]] = Reason.ASTRAY
    if begins_at_entry(prover.elf):
        begins = ranges.start == np.uint64(prover.elf.entry)
        begins[calls.target[reasons[calls.source] == 0]] = False
        reasons[begins] = BEGINS
    return reasons


def _shown(
    seen: U16, outside: Bools, ending: Bools, supported: Bools, calls: _Leads, tails: _Leads, wrong: Bools
) -> Bools:
    """For which ranges there is evidence that they are entered as the ABI says; those that are `wrong` are none.

    Of what only jumps on to places that are not known, that another range jumps to it says nothing of either.
    """
    saves, returns, restores, jumps = (
        (seen & bit) != 0 for bit in (Seen.SAVES, Seen.RETURNS, Seen.RESTORES, Seen.JUMPS)
    )
    saves |= restores  # what is put back was saved
    saves &= (seen & Seen.SPARES) == 0
    only_jumps = jumps & ~returns & ~restores
    shown = outside | returns | (saves & ((supported & ~only_jumps) | ending))
    wrong = wrong | (among_others(seen) & ~(returns & restores))
    known = ~only_jumps[tails.target]
    one, other = tails.source[known], tails.target[known]
    source, target = np.concatenate((calls.source, one, other)), np.concatenate((calls.target, other, one))
    right = ~(wrong[source] | wrong[target])
    return reached_from(shown & ~wrong, source[right], target[right])


def _ending(prover: Prover, seen: U16, tails: U64) -> Bools:
    """Which ranges end as functions do that jump on, with registers put back, or to a function elsewhere."""
    ending: Bools = (seen & Seen.JUMPS) != 0
    ending[tails[:, 0].astype(np.int64)] = True
    ending &= (seen & Seen.RESTORES) != 0
    ending[tails[are_among(tails[:, 1], prover.elsewhere), 0].astype(np.int64)] = True
    return ending


def _supported(prover: Prover, ranges: Ranges, seen: U16, tails: U64, starts: Starts, finder: Finder) -> Bools:
    """Which ranges have the symbol of a function or their address is taken, and nothing speaks against that.

    That is code which goes there with a frame, or was not walked through; or a range behind the call at their end that
    cannot be right, as it is part of them.
    """
    named = are_among(ranges.start, starts.named)
    names = prover.names_at(ranges.start[named])
    named[named] = [_PART.search(name or "") is None for name in names]
    jumps = finder.ways[finder.ways[:, 2] == Way.JUMP, :2]
    is_part = ranges.is_entry[jumps[:, 0].astype(np.int64)] == 0
    is_tail = is_part | _are_rows_among(jumps, tails)
    otherwise = are_among(ranges.start, np.concatenate((jumps[~is_tail, 1], finder.framed)))
    goes_on = np.zeros(len(ranges.start), np.bool_)
    goes_on[:-1] = (ranges.is_entry[1:] != 1) & ((seen[1:] & _WRONG) != 0)
    goes_on[:-1] &= ranges.start[:-1] + ranges.size[:-1].astype(np.uint64) == ranges.start[1:]
    found_so: Bools = (named | are_among(ranges.start, starts.taken)) & ~otherwise & ~goes_on
    return found_so


def _are_rows_among(rows: U64, others: U64) -> Bools:
    """Which rows of two numbers are among others."""
    both, number = np.unique(np.concatenate((rows, others)), axis=0, return_inverse=True)
    has = np.zeros(len(both), np.bool_)
    has[number.reshape(-1)[len(rows) :]] = True
    among: Bools = has[number.reshape(-1)[: len(rows)]]
    return among


def _passing(seen: U16, calls: _Leads) -> Bools:
    """Which ranges have their own ideas of the callee-saved registers, as OCaml and GHC have.

    Those that follow what such a register had at the entry, and their callers that put none back.
    """
    careless = (seen[calls.source] & Seen.RESTORES) == 0
    return reached_from((seen & Seen.FOLLOWS) != 0, calls.target[careless], calls.source[careless])


def _going_on(seen: U16, tails: _Leads) -> Bools:
    """Which ranges go on as no function does, and never return: by themselves, or in what they jump to."""
    never = (seen & Seen.RETURNS) == 0
    goes_on = never & ((seen & (Seen.LOSES | Seen.GOES_THROUGH)) != 0)
    only = never[tails.source]
    return reached_from(goes_on, tails.target[only], tails.source[only])


def among_others(seen: U16) -> Bools:
    """Which ranges are among many that only jump on to places that are not known, as code does that nothing calls.

    There are more of these than of those that return. Between them is data, and some of that looks like functions.
    """
    returns = (seen & Seen.RETURNS) != 0
    jumps = ~returns & ((seen & Seen.JUMPS) != 0)
    more = np.concatenate(([0], np.cumsum(jumps.astype(np.int64) - returns)))
    number = np.arange(len(seen))
    found: Bools = more[np.minimum(number + _NEAR, len(seen))] > more[np.maximum(number - _NEAR, 0)]
    return found


def _through_stubs(calls: U64, stubs: U64) -> U64:
    """The calls of entries of the procedure linkage table for functions of this file, as calls of these."""
    if not len(stubs):
        return calls[:0]
    row = np.minimum(np.searchsorted(stubs[:, 0], calls[:, 1]), len(stubs) - 1)
    is_stub = stubs[row, 0] == calls[:, 1]
    found: U64 = calls[is_stub]
    found[:, 1] = stubs[row[is_stub], 1]
    return found


def _to_beginnings(ranges: Ranges, leads: U64) -> _Leads:
    """Those of rows of a range and an address that lead to where a range begins."""
    source, target = leads[:, 0].astype(np.int64), range_at(ranges, leads[:, 1])
    kept = target >= 0
    kept[kept] = ranges.start[target[kept]] == leads[kept, 1]
    return _Leads(source[kept], target[kept])
