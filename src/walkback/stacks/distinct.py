"""Equal lists of words get equal small numbers, while more and more lists come.

A recording of a million samples has some thousand different frames and stacks. With both numbered, names are looked up
once a frame and text is made once a stack. A frame is a list of two words, and a stack a list of the numbers of frames.
"""

from __future__ import annotations

import os

import numpy as np

from walkback.base.arrays import I64, U64, Bools, Numbers, longer
from walkback.stacks import _distinct

_LISTS = 1 << 10
"""Lists that there is room for at first."""
_MOST = 2**31 - 1
_MIX, _BASE = (int.from_bytes(os.urandom(8), "little") | 1 for _ in range(2))


class Distinct:
    """The distinct lists of all that were added, numbered in the order of their first appearance.

    The `Interner` hashes bytes one by one, and would take six to nine times as long for words.
    """

    def __init__(self) -> None:
        self._state = np.zeros(2, np.int64)
        self._hashes = np.empty(_LISTS, np.uint64)
        self._first = np.zeros(_LISTS + 1, np.int64)
        self._words = np.empty(4 * _LISTS, np.uint64)
        self._slots = np.full(4 * _LISTS, -1, np.int32)

    def __len__(self) -> int:
        return int(self._state[1])

    @property
    def first(self) -> I64:
        """Where each distinct list begins among `words`; one more than there are lists. Valid until more is added."""
        return self._first[: len(self) + 1]

    @property
    def words(self) -> U64:
        """The words of the distinct lists, one list after the other. Valid until more is added."""
        return self._words[: self._first[len(self)]]

    @property
    def table(self) -> U64:
        """The distinct records, a row each, where all that was added has one width."""
        count = len(self)
        return self.words.reshape(count, -1) if count else np.empty((0, 0), np.uint64)

    def add(self, first: I64, words: Numbers) -> I64:
        """The numbers of lists; list i has the words from `first[i]` up to `first[i + 1]`."""
        if len(first) == 0 or first[0] < 0 or first[-1] > len(words) or (np.diff(first) < 0).any():
            raise ValueError("offsets of lists must rise from 0 to at most the number of words")
        return self._add(np.ascontiguousarray(first, np.int64), 0, words, len(first) - 1)

    def add_records(self, records: Numbers) -> I64:
        """The numbers of records, which are the rows of an array with at least one column."""
        count, width = records.shape
        if width == 0:
            raise ValueError("a record has at least one word")
        return self._add(np.zeros(1, np.int64), width, records.reshape(-1), count)

    def _add(self, first: I64, width: int, words: Numbers, count: int) -> I64:
        words = np.ascontiguousarray(words).astype(np.uint64, copy=False)
        numbers = np.empty(count, np.int64)
        self._state[0] = 0
        while full := _distinct.number(
            first, width, words, numbers,
            self._state, self._slots, self._hashes, self._first, self._words, _MIX, _BASE,
        ):  # fmt: skip
            if full == _distinct.FULL_LISTS:
                self._more_lists()
            else:
                at = int(self._state[0])
                needed = width or int(first[at + 1] - first[at])
                self._words = longer(self._words, max(2 * len(self._words), len(self._words) + needed))
        return numbers

    def _more_lists(self) -> None:
        room = 2 * len(self._hashes)
        if room > _MOST:
            raise MemoryError("too many distinct lists")
        self._hashes = longer(self._hashes, room)
        self._first = longer(self._first, room + 1)
        self._slots = np.full(4 * room, -1, np.int32)
        _distinct.fill(self._slots, self._hashes, len(self))


def leading(first: I64, numbers: Numbers, kinds: int) -> Bools:
    """Which of the numbers, all below `kinds`, are the first of their kind in their list."""
    marks = np.zeros(len(numbers), np.bool_)
    if len(numbers) and kinds:
        _distinct.leading(
            np.ascontiguousarray(first, np.int64),
            np.ascontiguousarray(numbers, np.int64),
            np.full(kinds, -1, np.int64),
            marks.view(np.uint8),
        )
    return marks
