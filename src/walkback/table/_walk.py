"""Two tables side by side, from address to address; and a table's rows, cut to disjoint ranges (compiled).

A *piece* is a stretch of addresses in which one range of a table holds; pieces are disjoint and in order. Rows are read
where they stand.
"""

import cython
import numpy as np

from walkback.base.arrays import distinct
from walkback.base.bits import WORD
from walkback.base.views import takes_views
from walkback.table.verdict import Verdict

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
else:
    from walkback.base.cursor import as_signed

_END = cython.declare(cython.ulonglong, WORD)
_NEITHER = cython.declare(cython.int, int(Verdict.NEITHER))
_EQUAL = cython.declare(cython.int, int(Verdict.EQUAL))
_DIFFERENT = cython.declare(cython.int, int(Verdict.DIFFERENT))
_ONLY_ONE = cython.declare(cython.int, int(Verdict.ONLY_ONE))
_ONLY_OTHER = cython.declare(cython.int, int(Verdict.ONLY_OTHER))
_VERDICTS = len(Verdict)


@cython.final
@cython.cclass
class TablePlace:
    """A place in one table: the rule that holds there, and where the next change is."""

    def __init__(self, pieces, table):
        section, start, last, source = pieces
        self.piece_section = memoryview(section)
        self.piece_start = memoryview(start)
        self.piece_last = memoryview(last)
        self.piece_range = memoryview(source)
        self.range_start = memoryview(table.range_start)
        self.first_row = memoryview(table.range_first_row)
        self.rows = memoryview(table.range_rows)
        self.block = memoryview(table.range_block)
        self.row_offset = memoryview(table.row_offset)
        self.row_rule = memoryview(table.row_rule)
        self.piece = 0
        self.range = -1
        self.rule = -1

    def leave(self, section: cython.int) -> cython.int:
        """Go before the next piece, or before the end of the section."""
        self.range = -1
        self.rule = -1
        if self.piece < self.piece_section.shape[0] and self.piece_section[self.piece] == section:
            self.next = self.piece_start[self.piece]
        else:
            self.next = _END
        return 0

    def step(self, section: cython.int) -> cython.int:
        """Go on to where the next change is; pieces that touch have no gap between them."""
        place: cython.ulonglong = self.next
        if self.range >= 0 and place == self.end:
            self.piece += 1
            self.leave(section)
            if self.next != place or place == _END:
                return 0
        if self.range < 0:
            self.range = self.piece_range[self.piece]
            self.end = self.piece_last[self.piece]
            self.end += self.end != _END
            self.base = self.range_start[self.range]
            self.row = -1
        if self.block[self.range]:
            self.base += (place - self.base) // self.block[self.range] * self.block[self.range]
            self.row = -1
        return self.settle(place)

    def settle(self, place: cython.ulonglong) -> cython.int:
        """Find the row that holds at a place of the present range, and where it ends."""
        first: cython.Py_ssize_t = self.first_row[self.range]
        count: cython.Py_ssize_t = self.rows[self.range]
        away: cython.ulonglong = place - self.base
        low: cython.Py_ssize_t = self.row + 1
        high: cython.Py_ssize_t = count
        middle: cython.Py_ssize_t
        if low < count and self.row_offset[first + low] <= away:
            # Mostly the next row; far away only where a range was cut.
            low += 1
            while low < high and self.row_offset[first + low] <= away:
                middle = low + (high - low) // 2
                if self.row_offset[first + middle] <= away:
                    low = middle + 1
                else:
                    high = middle
        self.row = low - 1
        self.rule = self.row_rule[first + self.row] if self.row >= 0 else -1
        self.next = self.end
        if low < count and self.row_offset[first + low] < self.end - self.base:
            self.next = self.base + self.row_offset[first + low]
        if self.block[self.range] and self.next - self.base > self.block[self.range]:
            self.next = self.base + self.block[self.range]
        return 0


@cython.final
@cython.cclass
class Meaning:
    """What the rules of a table mean, as numbers that two tables share; -1 is no rule."""

    def __init__(self, of_rule, signed, signal, key):
        self.of_rule = memoryview(of_rule)
        self.signed = memoryview(signed)
        self.signal = memoryview(signal)
        self.key = memoryview(key)

    def at(self, walk: TablePlace) -> cython.Py_ssize_t:
        """The number of what holds where the walk is."""
        if walk.rule < 0 or self.of_rule[walk.rule] < 0:
            return -1
        marks: cython.longlong = 2 * (self.signal[walk.range] != 0)
        if self.signed[walk.rule]:
            marks += self.key[walk.range] & 1
        return 4 * self.of_rule[walk.rule] + marks


@cython.final
@cython.cclass
class UnequalStretches:
    """What is found: sums for each verdict, and every stretch whose rules are not equal."""

    def __init__(self, ones, others):
        self.numbers = memoryview(np.zeros((64, 8), np.int64))
        self.count = 0
        self.sums = memoryview(np.zeros(_VERDICTS, np.uint64))
        self.one = memoryview(np.zeros(ones, np.uint8))
        self.other = memoryview(np.zeros(others, np.uint8))

    def add(
        self,
        section: cython.int,
        start: cython.ulonglong,
        size: cython.ulonglong,
        verdict: cython.int,
        one: TablePlace,
        other: TablePlace,
    ) -> cython.int:
        self.sums[verdict] += size
        if one.range >= 0:
            self.one[one.range] |= 1 << verdict
        if other.range >= 0:
            self.other[other.range] |= 1 << verdict
        if verdict == _EQUAL:
            return 0
        if self.count == self.numbers.shape[0]:
            self.grow()
        self.numbers[self.count, 0] = section
        self.numbers[self.count, 1] = as_signed(start)
        self.numbers[self.count, 2] = as_signed(size)
        self.numbers[self.count, 3] = verdict
        self.numbers[self.count, 4] = one.rule
        self.numbers[self.count, 5] = other.rule
        self.numbers[self.count, 6] = one.range
        self.numbers[self.count, 7] = other.range
        self.count += 1
        return 0

    def grow(self) -> cython.int:
        """Make room."""
        more = np.zeros((2 * self.count, 8), np.int64)
        more[: self.count] = np.asarray(self.numbers)
        self.numbers = memoryview(more)
        return 0


def compare(pieces, tables, meanings):
    """Walk through both tables.

    `pieces` are those of each table, `meanings` the columns of each `Meaning`. Returns (a row for each stretch whose
    rules are not equal: section, start, size, verdict, rules, ranges; bytes of each verdict; for each range of each
    table the verdicts that it has, as bits).
    """
    found = UnequalStretches(len(tables[0]), len(tables[1]))
    one, other = (TablePlace(*both) for both in zip(pieces, tables, strict=True))
    sections = distinct(np.append(pieces[0][0], pieces[1][0])).astype(np.int32)
    _compare(sections, one, other, Meaning(*meanings[0]), Meaning(*meanings[1]), found)
    return (
        np.asarray(found.numbers)[: found.count].copy(),
        np.asarray(found.sums),
        np.asarray(found.one),
        np.asarray(found.other),
    )


@takes_views
def _compare(
    sections: cython.const[cython.int][::1],
    one: TablePlace,
    other: TablePlace,
    one_means: Meaning,
    other_means: Meaning,
    found: UnequalStretches,
):
    s: cython.Py_ssize_t
    place: cython.ulonglong
    following: cython.ulonglong
    mine: cython.longlong
    theirs: cython.longlong
    verdict: cython.int
    with cython.nogil:
        for s in range(sections.shape[0]):
            one.leave(sections[s])
            other.leave(sections[s])
            place = 0
            while True:
                following = min(one.next, other.next)
                if following > place and (one.range >= 0 or other.range >= 0):
                    mine = one_means.at(one)
                    theirs = other_means.at(other)
                    if mine < 0:
                        verdict = _NEITHER if theirs < 0 else _ONLY_OTHER
                    elif theirs < 0:
                        verdict = _ONLY_ONE
                    else:
                        verdict = _EQUAL if mine == theirs else _DIFFERENT
                    found.add(sections[s], place, following - place, verdict, one, other)
                place = following
                if place == _END:
                    break
                if one.next == place:
                    one.step(sections[s])
                if other.next == place:
                    other.step(sections[s])
            # A range may end with the address space.
            one.piece += one.range >= 0
            other.piece += other.range >= 0
    return 0


def lay_rows(pieces, table, merge):
    """The rows of each piece, from its start on: (how many, offset and rule number of each).

    The first is the one that holds where the piece starts, if there is one. Of rows at one offset only the last is
    kept, and with `merge` of neighbours that have one rule only the first.
    """
    _, start, last, source = pieces
    # A row stands in one piece; but the one that holds where a piece starts may begin in another.
    most = int(table.range_rows.sum()) + len(start)
    offset, rule = np.empty((2, most), np.uint32)
    rows = np.zeros(len(start), np.int64)
    total = _lay_rows(
        start, last, source, table.range_start, table.range_first_row, table.range_rows, table.range_block,
        table.row_offset, table.row_rule, merge, rows, offset, rule,
    )  # fmt: skip
    if total < most // 2:  # else what is not used costs less than a copy
        return rows, offset[:total].copy(), rule[:total].copy()
    return rows, offset[:total], rule[:total]


@takes_views
def _lay_rows(
    start: cython.const[cython.ulonglong][::1],
    last: cython.const[cython.ulonglong][::1],
    source: cython.const[cython.longlong][::1],
    range_start: cython.const[cython.ulonglong][::1],
    first_row: cython.const[cython.longlong][::1],
    range_rows: cython.const[cython.longlong][::1],
    block: cython.const[cython.uint][::1],
    row_offset: cython.const[cython.uint][::1],
    row_rule: cython.const[cython.uint][::1],
    merge: cython.bint,
    rows: cython.longlong[::1],
    offset: cython.uint[::1],
    rule: cython.uint[::1],
):
    p: cython.Py_ssize_t
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    first: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    out: cython.Py_ssize_t = 0
    away: cython.ulonglong
    span: cython.ulonglong
    here: cython.uint
    with cython.nogil:
        for p in range(start.shape[0]):
            r = source[p]
            away = start[p] - range_start[r]
            if block[r]:
                away %= block[r]
            span = last[p] - start[p]
            begin = out
            first = first_row[r]
            j = _last_at(row_offset, first, range_rows[r], away) if away else 0
            while j < range_rows[r]:
                here = 0
                if block[r] and row_offset[first + j] >= block[r]:
                    break
                if row_offset[first + j] > away:
                    if row_offset[first + j] - away > span:
                        break
                    here = cython.cast(cython.uint, row_offset[first + j] - away)
                if out > begin and offset[out - 1] == here:
                    out -= 1  # a later row at the same place holds
                if not (merge and out > begin and rule[out - 1] == row_rule[first + j]):
                    offset[out] = here
                    rule[out] = row_rule[first + j]
                    out += 1
                j += 1
            rows[p] = out - begin
    return out


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _last_at(
    row_offset: cython.const[cython.uint][::1],
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    away: cython.ulonglong,
) -> cython.Py_ssize_t:
    """The number of the last row at or before an offset; 0 if there is none."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = count
    middle: cython.Py_ssize_t
    while low < high:
        middle = low + (high - low) // 2
        if row_offset[first + middle] <= away:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low else 0
