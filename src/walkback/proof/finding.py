"""What the code of ranges shows that no table describes, found in rounds; most of each is as it was in the last."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, are_among, changes, distinct, distinct_rows, ranked
from walkback.base.bits import WORD
from walkback.base.dataclass import dataclass
from walkback.proof._claims import Claims
from walkback.proof._code import Code
from walkback.proof._found import found_rules
from walkback.proof._scan import Scan, bits_at, of_code
from walkback.proof._state import State
from walkback.proof._walk import Walk
from walkback.proof.entries import parts_among, pointers_between
from walkback.proof.findings import Findings
from walkback.proof.functions import Starts
from walkback.proof.known import KnownCode
from walkback.proof.prove import Prover, kept_by_calls
from walkback.proof.ranges import Ranges, Units, range_at, together
from walkback.proof.sets import ClaimSets, no_claims
from walkback.proof.values import UNCALLED, Back, Seen, Way
from walkback.proof.walks import Walks
from walkback.table.table import UnwindTable

_PARTS = 8
"""How often ranges that functions lead to with their frames are taken for parts of these."""
_BARE_RETURN = 1
"""Byte of a function that only returns; other machines have none of this size."""
_THUNKS = frozenset({"__x86_return_thunk"})


@dataclass(slots=True)
class _Round:
    """What a walk through all units found."""

    start: U64
    size: I64
    is_entry: U8
    unit: I64
    """For each range the number of its unit."""
    count: I64
    """How many ranges each unit has."""
    known: KnownCode


class Finder:
    """The code of one file, in ranges that get smaller from round to round."""

    def __init__(self, prover: Prover, starts: Starts) -> None:
        """Ranges at addresses that are `sure` are entered as the ABI says, if nothing denies it.

        Others are only if nothing leads to them. Those `within` functions begin no others.
        """
        self._prover, self._sure, self._within = prover, starts.sure, starts.within
        self._unnamed = starts.others[~starts.pointed]
        self._likely = starts.framing[are_among(starts.framing, starts.others[starts.pointed])]
        self._findings = Findings(starts.others)
        start, end = (column[prover.image.executable != 0] for column in (prover.image.start, prover.image.end))
        linked = len(start) > 0 and not prover.elf.is_relocatable
        pointed = pointers_between(prover.elf, start.min(), end.max()) if linked else np.zeros(0, np.uint64)
        self._pointed = distinct(pointed)
        self._last: _Round | None = None
        self._seen = of_code(starts.seen)
        self._parts = np.zeros(0, np.uint64)
        self._supposed = self._parts
        """Parts that nothing shows yet; to functions others jump, too."""
        self.ways = np.zeros((0, 3), np.uint64)
        """How control leaves the ranges, as the last look at them saw it: rows of a range, an address, and a `Way`."""
        self.framed = np.zeros(0, np.uint64)
        """Addresses that control goes to from other ranges, with more on the stack than a call leaves there."""

    @property
    def seen(self) -> Scan:
        """What all looks have seen that does not depend on the ranges."""
        return of_code(self._seen)

    def jumped_to(self, table: UnwindTable) -> U64:
        """Where code begins within ranges that only others jump to: parts of functions, which compilers put elsewhere.

        Those of one place belong to many functions, which would be walked together as long as these are one range.
        """
        ranges, _, known = self._look(table)
        calls, image = self._seen.calls, self._prover.image
        calls = calls[(calls[:, 2] > 0) & are_among(calls[:, 1], known.functions[known.back == Back.NEVER])]
        begins = np.concatenate((self._unnamed, image.at(calls[:, 2].astype(np.int64))))
        places = self.ways[self.ways[:, 2] == Way.JUMP, 1]
        self._supposed = distinct(places[are_among(places, distinct(begins)) & ~are_among(places, ranges.start)])
        self._parts = self._supposed
        return self._supposed

    def found(self, table: UnwindTable) -> tuple[Ranges, Findings]:
        """What the code of ranges without rules shows.

        Units that are as they were are not walked again, unless more is known by now of the functions that they call.
        """
        prover = self._prover
        ranges, sets, known = self._look(table)
        ranges.is_entry[are_among(ranges.start, self._parts)] = 0
        if len(self._within):  # as if something jumped there
            places = prover.image.places(self._within, np.ones(len(self._within), np.int64))
            known.targets = known.targets.copy()
            np.bitwise_or.at(known.targets, places >> 3, (1 << (places & 7)).astype(np.uint8))
        known.pointed = self._pointed
        for _ in range(_PARTS):
            units = together(ranges, self.ways)

            def walk(units: Units = units) -> Walk:
                code, claims = Code(prover.image, known), Claims(sets, table.machine)
                state = State(table.machine, kept_by_calls(table), WORD, aligned=False)
                return Walk(code, claims, state, ranges, units.members, free=True)

            walks = Walks(walk, units)
            found = self._walked(walks, ranges, units, known)
            self.framed = distinct(np.append(self.framed, framed := walks.led_to()))
            parts = parts_among(prover.elf, ranges, framed) & (ranges.is_entry != 0)
            functions = self._functions(ranges, found)
            if not (parts | functions).any():
                break
            ranges.is_entry[parts], ranges.is_entry[functions] = 0, UNCALLED
            kept = self._parts[~are_among(self._parts, ranges.start[functions])]
            self._parts = distinct(np.append(kept, ranges.start[parts]))
        else:
            found.seen[parts] |= np.uint16(Seen.COMPLEX)
        found.seen[self._by_thunks(ranges, found)] |= np.uint16(Seen.RETURNS)
        return ranges, found

    def doubtful(self, ranges: Ranges, found: Findings, left_out: Bools) -> tuple[I64, U64]:
        """Parts, rising, and from where on it is not known how control comes there.

        Another function jumps there in code that was not walked, or a range that is `left_out`; and of what was walked
        only what goes on behind it leads there, or what is behind the bound of an index. Where that cannot happen,
        compilers let it go on in whatever is put behind the function.
        """
        jumps = distinct_rows(self.ways[self.ways[:, 2] == Way.JUMP, :2])
        jumps = jumps[~are_among(jumps[:, 1], distinct(found.jumps()[:, 1]))]
        source, target = jumps[:, 0].astype(np.int64), range_at(ranges, jumps[:, 1])
        rows = found.rows()
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        root = rows[np.searchsorted(rows[:, 1], jumps[:, 1], "right") - 1, 4].astype(np.int64) if len(rows) else source
        _, number = ranked(jumps[:, 1])
        several = (np.bincount(number) > 1)[number]
        apart = left_out[source] | ((ranges.is_entry[source] != 0) & (source != root))
        chosen = (target >= 0) & (ranges.is_entry[target] == 0)
        chosen &= np.where(jumps[:, 1] == ranges.start[target], several, apart)
        part, first = target[chosen], jumps[chosen, 1]
        order = np.lexsort((first, part))
        is_first = changes(part[order])
        return part[order][is_first], first[order][is_first]

    def aimed(self, ranges: Ranges) -> Bools:
        """Which ranges data points to, or the code takes the address of; in an object file it may be of any."""
        if self._prover.elf.is_relocatable:
            return np.ones(len(ranges.start), np.bool_)
        return are_among(ranges.start, self._pointed) | bits_at(self._seen.taken, ranges.pos)

    def _functions(self, ranges: Ranges, found: Findings) -> Bools:
        """Which of the supposed parts are functions: others jump to them with the stack as it was at their entry.

        Only the first walk shows that: what is walked later may be no function.
        """
        supposed, self._supposed = self._supposed, self._supposed[:0]
        if not len(supposed):
            return np.zeros(len(ranges.start), np.bool_)
        return are_among(ranges.start, supposed[are_among(supposed, distinct(found.tails()[:, 1]))])

    def _look(self, table: UnwindTable) -> tuple[Ranges, ClaimSets, KnownCode]:
        """The ranges, without claims, and what a first look at their code finds."""
        prover, sets = self._prover, no_claims(len(table.row_offset))
        ranges = prover.ranges(table, sets)
        ranges.is_entry[:] = np.where(are_among(ranges.start, self._sure), 1, UNCALLED)
        ranges.is_likely[are_among(ranges.start, self._likely)] = 1
        names = prover.names_of_careless(table)
        known, self.ways, self._seen = prover.look_at(table, ranges, sets, names, self._seen)
        known.silent_words = prover.indirect.silent_by_name  # of others more is known in each round
        return ranges, sets, known

    def _by_thunks(self, ranges: Ranges, found: Findings) -> I64:
        """Ranges that return by a jump to a function which does nothing else, as Linux does for AMD64."""
        bare = (found.seen & Seen.RETURNS != 0) & (found.ends - ranges.start == _BARE_RETURN)
        thunks = np.concatenate((ranges.start[bare], self._prover.called_as(_THUNKS)))
        tails = found.tails()
        by_thunks: I64 = tails[are_among(tails[:, 1], thunks), 0].astype(np.int64)
        return by_thunks

    def _walked(self, walks: Walks, ranges: Ranges, units: Units, known: KnownCode) -> Findings:
        """What all units show; those that are as they were are not walked."""
        last, unit = self._last, units.number
        former = np.full(len(unit), -1, np.int64)
        if last is not None:
            former = _unchanged(last, ranges, units, self._findings.calling(known, last.known))
        is_new = np.zeros(len(units.count), np.uint8)
        is_new[unit[former < 0]] = 1
        prover = self._prover
        found = found_rules(walks, prover.machine.name, ranges, units.first, is_new, prover.catching)
        self._findings.add(found, former)
        self._last = _Round(ranges.start, ranges.size, ranges.is_entry.copy(), unit, units.count, known)
        return self._findings


def _unchanged(last: _Round, ranges: Ranges, units: Units, is_other: Bools) -> I64:
    """For each range its number in the last round; -1 if its unit is another one now, or one of it `is_other`."""
    place = np.searchsorted(last.start, ranges.start).clip(max=len(last.start) - 1)
    same = (last.start[place] == ranges.start) & (last.size[place] == ranges.size)
    same &= last.is_entry[place] == ranges.is_entry
    same &= ~is_other[place]
    is_same = units.unchanged(np.where(same, last.unit[place], -1), last.count)
    return np.where(is_same[units.number], place, -1)
