"""What the proof says of a table: a verdict for each byte of its ranges, and for each instruction where it is asked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, U8, U64, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.proof import _tally
from walkback.proof._walk import Walk
from walkback.proof.ranges import Ranges, Units, range_at
from walkback.proof.sets import ClaimSets
from walkback.proof.values import UNDEFINED, Verdict
from walkback.proof.words import StateWords

_VERDICTS = tuple(Verdict)
_FROM_BEST = (Verdict.PROVED, Verdict.ASSUMED, Verdict.UNKNOWN, Verdict.WRONG)
_ALL = 1 << 62
"""More instructions and bytes than there are."""

Instruction = tuple[int, int, Verdict, int]
"""Its address, length and verdict, and the cause: the register that is wrong, or why nothing is known."""


@dataclass(slots=True)
class Proof:
    """What the proof says of the ranges of a table."""

    machine: Machine
    ranges: Ranges
    verdicts: I64
    """Bytes of each range by `Verdict`."""
    reasons: I64
    """Bytes of all ranges by `Why`, of those that are not known or not reached."""
    runs: U64
    """Rows of a range, an address, bytes, a `Verdict`, and its cause, of code that is reached and not proved.

    There are a million at most; half of them are kept for what is wrong.
    """
    code: U8
    """The bytes of the image."""
    units: Units
    sets: ClaimSets
    walk: Walk
    absent: U64
    """Rows of an address and bytes, of the ranges whose code the file does not have."""
    careless: int = 0
    """How many ranges return with other values in callee-saved registers, by a convention of the file: no claim is made
    of what calls of them keep where the table says nothing of it."""

    @property
    def mismatches(self) -> U64:
        """Rows of a range, its unit, an address, bytes, and the register that is wrong."""
        wrong = self.runs[self.runs[:, 3] == Verdict.WRONG]
        member = np.argsort(self.units.members)[wrong[:, 0].astype(np.int64)]
        unit = np.searchsorted(self.units.first, member, "right") - 1
        return np.column_stack((wrong[:, 0], unit.astype(np.uint64), wrong[:, 1:3], wrong[:, 4]))

    def instructions(self, unit: int) -> list[Instruction]:
        """Each instruction of a unit that is reached."""
        first, end = self.units.first[unit : unit + 2].tolist()
        rows, _ = _tally.instructions(self.walk, first, end, None, _ALL, _ALL)
        return _with_verdicts(rows)

    def instructions_from(self, address: int, size: int, most: int) -> tuple[list[Instruction], list[int]] | None:
        """The first ones of a stretch of a range, and how many it has by `Verdict`; None where it is too complex."""
        first, end = self.units.first[(unit := self._unit_of(self.range_of(address))) : unit + 2].tolist()
        rows, counts = _tally.instructions(self.walk, first, end, address, size, most)
        return None if counts is None else (_with_verdicts(rows), counts.tolist())

    def unit_of(self, address: int) -> int | None:
        """The unit that holds an address of the image."""
        number = self.range_of(address)
        if number < 0 or address - int(self.ranges.start[number]) >= int(self.ranges.size[number]):
            return None
        return self._unit_of(number)

    def _unit_of(self, number: int) -> int:
        """The unit of a range."""
        member = int(np.flatnonzero(self.units.members == number)[0])
        return int(np.searchsorted(self.units.first, member, "right")) - 1

    def states_at(self, unit: int, addresses: Sequence[int]) -> list[StateWords | None]:
        """The states at addresses of a unit, rising; None where the code is not reached."""
        first, end = self.units.first[unit : unit + 2].tolist()
        found = _tally.states(self.walk, first, end, addresses)
        return [None if one is None else StateWords(self.machine, *one) for one in found]

    def verdicts_of(self, address: U64, size: U64) -> list[Verdict | None]:
        """The verdict on the rule of each of some stretches of the image; None if no range holds where one begins.

        If a stretch has several it is the worst: what is wrong somewhere is wrong. A rule that holds at no instruction,
        as one between instructions or within one, is not reached.
        """
        found: list[Verdict | None] = [None] * len(address)
        number = range_at(self.ranges, address)
        unit = np.where(number < 0, -1, self.units.number[number]) if len(self.ranges.start) else number
        for one in distinct(unit[unit >= 0]).tolist():
            chosen = np.flatnonzero(unit == one)
            worst = self._worst(one, address[chosen], size[chosen])
            for at, verdict in zip(chosen.tolist(), worst.tolist(), strict=True):
                found[at] = Verdict(verdict)
        return found

    def _worst(self, unit: int, address: U64, size: U64) -> I64:
        """The worst verdicts on stretches of a unit."""
        first, end = self.units.first[unit : unit + 2].tolist()
        judged = _tally.judged(self.walk, first, end)
        if judged is None:
            return np.full(len(address), Verdict.UNKNOWN)
        begin, verdict = judged[:, 0], judged[:, 2]
        after = np.searchsorted(begin, address + size)
        before = np.searchsorted(begin + judged[:, 1], address, "right")
        worst = np.full(len(address), Verdict.NOT_REACHED)
        for one in _FROM_BEST:
            count = np.append(0, np.cumsum(verdict == one))
            worst[count[after] > count[before.clip(max=after)]] = one
        return worst

    @property
    def is_outermost(self) -> Bools:
        """Which ranges have no caller, as their last rows say."""
        sets, ranges = self.sets, self.ranges
        claims = np.zeros(len(sets), np.bool_)
        undefined = (sets.target == self.machine.ra) & (sets.base == UNDEFINED)
        claims[np.searchsorted(sets.first, np.flatnonzero(undefined), "right") - 1] = True
        last = np.maximum(ranges.first_row + ranges.rows - 1, 0)
        return (ranges.rows > 0) & claims[ranges.row_claims[last]] if len(last) else np.zeros(0, np.bool_)

    def range_of(self, address: int) -> int:
        """The number of the last range that begins at an address of the image or before it."""
        return bisect_right(self.ranges.start.data, address) - 1

    def code_at(self, address: int, size: int) -> bytes:
        """Bytes of a range."""
        number = self.range_of(address)
        pos = int(self.ranges.pos[number]) + address - int(self.ranges.start[number])
        return self.code[pos : pos + size].tobytes()

    def row_at(self, number: int, address: int) -> int:
        """The number of the row of a range that holds at an address."""
        ranges = self.ranges
        offset = address - int(ranges.start[number])
        offset = offset % int(ranges.block[number]) if ranges.block[number] else offset
        first, count = int(ranges.first_row[number]), int(ranges.rows[number])
        return first + int(np.searchsorted(ranges.row_offset[first : first + count], offset, "right")) - 1

    def claims_at(self, number: int, address: int) -> dict[int, str]:
        """What the table claims at an address of a range, of the CFA and of each register."""
        entries = self.entries_at(number, address)
        return {target: self.sets.text(entry, self.machine) for target, entry in entries.items()}

    def entries_at(self, number: int, address: int, away: int = 0) -> dict[int, int]:
        """The claims by their targets of the row that holds at an address, or of another row of the range near it."""
        row, first = self.row_at(number, address) + away, int(self.ranges.first_row[number])
        if not first <= row < first + int(self.ranges.rows[number]):
            return {}
        chosen = int(self.ranges.row_claims[row])
        entries = range(int(self.sets.first[chosen]), int(self.sets.first[chosen + 1]))
        return {int(self.sets.target[entry]): entry for entry in entries}


def _with_verdicts(rows: Iterable[tuple[int, int, int, int]]) -> list[Instruction]:
    return [(address, size, _VERDICTS[verdict], cause) for address, size, verdict, cause in rows]
