"""Samples of groups of events: one event is sampled, and with each sample all counters of its group are read.

As perf has it, each counter then has a sample of its own, whose period is what it has counted since it was read before;
one that has counted nothing has none.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I32, I64, U64, changes, distinct
from walkback.capture.perfdata import layout
from walkback.capture.perfdata._samples import readings
from walkback.capture.perfdata.batch import SampleColumns
from walkback.capture.perfdata.events import Events


class Groups:
    """The counters of a recording, and what they showed last."""

    def __init__(self, events: Events, *, big: bool) -> None:
        self._events = events
        self._big = big
        self._last: dict[tuple[int, int], int] = {}
        self.unknown = 0
        """Readings of counters that no event has."""

    def samples(self, words: memoryview | U64, columns: SampleColumns, event: I32) -> tuple[I64, I32, U64] | None:
        """The samples that some come to: the row, the event and the period of each; None if they stay as they are."""
        formats = self._formats(event)
        if not formats.any():
            return None
        alone = np.flatnonzero(formats == 0)
        found: list[tuple[I64, I32, U64]] = [(alone, event[alone], columns.period[alone])]
        found += [self._read(words, columns, formats, int(one)) for one in distinct(formats[formats > 0])]
        row, its_event, period = (np.concatenate([one[place] for one in found]) for place in range(3))
        order = np.argsort(row, kind="stable")
        return row[order], its_event[order], period[order]

    def _formats(self, event: I32) -> I64:
        """Of each sample the `read_format` of its counters; 0 if it has none that can be distinguished."""
        read = layout.SAMPLE_READ
        every = [one.read_format if one.sample_type & read else 0 for one in self._events.all]
        found: I64 = np.array([one if one & layout.READ_ID else 0 for one in every], np.int64)[event]
        return found

    def _read(
        self, words: memoryview | U64, columns: SampleColumns, formats: I64, read_format: int
    ) -> tuple[I64, I32, U64]:
        """The samples of those that were read in one way."""
        rows = np.flatnonzero(formats == read_format)
        sample, identity, value = readings(words, self._big, columns.reading_at[rows], read_format)
        ids, events = self._events.counters
        place = np.searchsorted(ids, identity).clip(max=max(len(ids) - 1, 0))
        known = ids[place] == identity if len(ids) else np.zeros(len(identity), np.bool_)
        self.unknown += int((~known).sum())
        rows, place, value = rows[sample[known]], place[known], value[known]
        event = events[place]
        inherit = np.array([one.inherit for one in self._events.all], np.bool_)[event]
        thread = np.where(inherit, columns.tid[rows].astype(np.int64), 0)
        period = self._since(place, thread, value)
        some = period > 0
        return rows[some], event[some], period[some]

    def _since(self, counter: I64, thread: I64, value: U64) -> U64:
        """What each counter has counted since it was read before, if it did not begin anew."""
        order = np.lexsort((thread, counter))
        sorted_counter, sorted_thread, now = counter[order], thread[order], value[order]
        begins = changes(sorted_counter, sorted_thread)
        before = np.zeros(len(order), np.uint64)
        before[1:] = now[:-1]
        keys = list(zip(sorted_counter[begins].tolist(), sorted_thread[begins].tolist(), strict=True))
        before[begins] = np.array([self._last.get(key, 0) for key in keys], np.uint64)
        ends = np.append(np.flatnonzero(begins)[1:], len(order)) - 1 if len(order) else np.zeros(0, np.int64)
        self._last.update(zip(keys, now[ends].tolist(), strict=True))
        period = np.zeros(len(order), np.uint64)
        period[order] = np.where(now > before, now - before, np.uint64(0))
        return period
