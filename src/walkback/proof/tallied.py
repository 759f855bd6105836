"""The verdicts of walks through the units of a table, range by range."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools
from walkback.base.dataclass import dataclass
from walkback.proof import _tally
from walkback.proof.ranges import Ranges, Units
from walkback.proof.values import MOST_RUNS, Why
from walkback.proof.walks import Walks


@dataclass(slots=True)
class Tally:
    """What was found of each range."""

    verdicts: I64
    """Bytes of each range by `Verdict`."""
    reason_rows: U64
    """Rows of a range, a `Why` and bytes, of those that are not known or not reached."""
    runs: U64
    """Rows of a range, an address, bytes, a `Verdict`, and its cause, of code that is reached and not proved.

    There are a million at most; half of them are kept for what is wrong.
    """

    @property
    def has_all_runs(self) -> bool:
        """Whether none were left out because there are too many."""
        return len(self.runs) < MOST_RUNS // 2

    @property
    def reasons(self) -> I64:
        """Bytes of all ranges by `Why`."""
        found = np.zeros(len(Why), np.int64)
        np.add.at(found, self.reason_rows[:, 1].astype(np.int64), self.reason_rows[:, 2].astype(np.int64))
        return found

    def of(self, chosen: Bools) -> Tally:
        """That of some ranges."""
        of_chosen = (rows[chosen[rows[:, 0].astype(np.int64)]] for rows in (self.reason_rows, self.runs))
        return Tally(np.where(chosen[:, None], self.verdicts, 0), *of_chosen)

    def and_of(self, others: Tally, units: Units) -> Tally:
        """All ranges of both, which have none in common, with the runs in the order of the units."""
        runs, place = np.concatenate((self.runs, others.runs)), np.argsort(units.members)
        runs = runs[np.argsort(place[runs[:, 0].astype(np.int64)], kind="stable")]
        reason_rows = np.concatenate((self.reason_rows, others.reason_rows))
        return Tally(self.verdicts + others.verdicts, reason_rows, _tally.kept(runs))


def tally(walks: Walks, ranges: Ranges, units: Units, wanted: U8) -> Tally:
    """Walk through all units with ranges that are wanted."""
    return Tally(*_tally.tally(walks, ranges, units.first, wanted))
