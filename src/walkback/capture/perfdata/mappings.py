"""Where the processes of a recording have code mapped, as its records say one after the other.

No record says that something was unmapped. A later mapping takes the place of what it overlaps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from hashlib import blake2b

import numpy as np

from walkback.capture.dumps import overlaid
from walkback.capture.perfdata import layout
from walkback.capture.trampolines import within
from walkback.walking.samples import Space

ANONYMOUS = -1
"""Instead of a module: code that is in no file, as compilers at run time make it."""
_FEW = 64
"""Of mappings: more are laid over others all at once."""
_MOST_ROWS = 1 << 22
"""Of all spaces together."""


class CodeMaps:
    """The mappings with code of one process, rising and disjoint."""

    __slots__ = ("_bias", "_last", "_module", "_start", "dumped", "has_anonymous", "is_new", "laid", "number", "shared")

    def __init__(self) -> None:
        self._start: list[int] = []
        self._last: list[int] = []
        self._module: list[int] = []
        self._bias: list[int] = []
        self.number: int | None = None
        """Of the space that says the same; None if there is none yet."""
        self.shared = False
        """Whether several processes have it, so that it must not be changed."""
        self.dumped: CodeMaps | None = None
        """The code that was made at run time and dumped; anonymous memory does not take its place."""
        self.has_anonymous = False
        """Whether any of it was anonymous memory."""
        self.is_new = False
        """Whether such memory came since something was laid there."""
        self.laid: Space | None = None
        """What was laid there last."""

    def __len__(self) -> int:
        return len(self._start)

    def copy(self) -> CodeMaps:
        """The same, to be changed."""
        other = CodeMaps()
        other._start, other._last = self._start.copy(), self._last.copy()
        other._module, other._bias = self._module.copy(), self._bias.copy()
        other.dumped = self.dumped.copy() if self.dumped is not None else None
        other.has_anonymous, other.is_new, other.laid = self.has_anonymous, self.is_new, self.laid
        return other

    def covers(self, start: int, last: int, module: int, bias: int) -> bool:
        """Whether this is mapped just so already."""
        i = bisect_right(self._start, start) - 1
        return i >= 0 and self._last[i] >= last and self._module[i] == module and self._bias[i] == bias

    def add(self, start: int, last: int, module: int, bias: int) -> None:
        """Another mapping. What is left of those that it overlaps stays, and it grows together with its neighbours."""
        low = bisect_left(self._last, start)
        high = bisect_right(self._start, last)
        rows = [(start, last, module, bias)]
        if low < high:
            before, after = self._row(low), self._row(high - 1)
            if before[0] < start:
                rows.insert(0, (before[0], start - 1, before[2], before[3]))
            if after[1] > last:
                rows.append((last + 1, after[1], after[2], after[3]))
        # Also the neighbours that it touches.
        if low and self._last[low - 1] + 1 == rows[0][0]:
            low -= 1
            rows.insert(0, self._row(low))
        if high < len(self) and self._start[high] == rows[-1][1] + 1:
            rows.append(self._row(high))
            high += 1
        joined = rows[:1]
        for row in rows[1:]:
            if row[2:] == joined[-1][2:]:
                joined[-1] = (joined[-1][0], row[1], *row[2:])
            else:
                joined.append(row)
        self._start[low:high] = [row[0] for row in joined]
        self._last[low:high] = [row[1] for row in joined]
        self._module[low:high] = [row[2] for row in joined]
        self._bias[low:high] = [row[3] for row in joined]
        self.number = None

    def _row(self, i: int) -> tuple[int, int, int, int]:
        return self._start[i], self._last[i], self._module[i], self._bias[i]

    def space(self) -> Space:
        """As the walker wants it."""
        return Space.of(self._start, self._last, self._module, self._bias)

    def between(self, start: int, last: int) -> Space:
        """What is mapped there."""
        low, high = bisect_left(self._last, start), bisect_right(self._start, last)
        return Space.of(*(column[low:high] for column in (self._start, self._last, self._module, self._bias)))

    def modules(self) -> set[int]:
        """Whose code is mapped."""
        return set(self._module)

    def lay(self, code: Space) -> None:
        """Map code in the place of anonymous memory only."""
        self.is_new, self.laid = False, code
        rows = [i for i, module in enumerate(self._module) if module == ANONYMOUS]
        start, last = (np.array([column[i] for i in rows], np.uint64) for column in (self._start, self._last))
        self.overlay(within(code, start, last))

    def overlay(self, code: Space) -> None:
        """Map code in the place of what it overlaps."""
        if len(code.start) <= _FEW:
            columns = (code.start, code.last, code.module, code.bias)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                self.add(*row)
            return
        space = overlaid(self.space(), code)
        self._start, self._last = space.start.tolist(), space.last.tolist()
        self._module, self._bias = space.module.tolist(), space.bias.tolist()
        self.number = None


class Spaces:
    """All spaces of a recording, each once."""

    def __init__(self) -> None:
        self.all: list[Space] = []
        self.full = False
        """Whether they have become too many; later changes of mappings are not followed."""
        self._known: dict[bytes, int] = {}
        self._rows = 0

    def number(self, maps: CodeMaps) -> int:
        """The number of the space that says what these mappings say; -1 where there is none."""
        if not len(maps):
            return -1
        if maps.number is None:
            space = maps.space()
            digest = blake2b(digest_size=16)
            for column in (space.start, space.last, space.module, space.bias):
                digest.update(column.tobytes())
            key = digest.digest()
            if key not in self._known:
                if self._rows + len(maps) > _MOST_ROWS:
                    self.full = True
                    return -1
                self._known[key] = len(self.all)
                self._rows += len(maps)
                self.all.append(space)
            maps.number = self._known[key]
        return maps.number


class RecordedProcess:
    """One process: its mappings and what its threads are called."""

    __slots__ = ("comms", "ended", "maps", "space")

    def __init__(self) -> None:
        self.maps = CodeMaps()
        self.space = -1
        """The number of its last space."""
        self.comms: dict[int, int] = {}
        """By thread."""
        self.ended = False

    def map(self, start: int, last: int, module: int, bias: int) -> None:
        """Another mapping, if it changes anything."""
        if self.maps.covers(start, last, module, bias) or len(self.maps) >= layout.MOST_MAPPINGS:
            return
        self._own_maps()
        self.maps.add(start, last, module, bias)
        if module == ANONYMOUS:
            self.maps.has_anonymous = self.maps.is_new = True
            if self.maps.dumped is not None:
                self.maps.overlay(self.maps.dumped.between(start, last))

    def lay(self, code: Space) -> None:
        """Map code that was made at run time where memory with code is in no file."""
        if len(code.start) and (self.maps.is_new or code is not self.maps.laid):
            self._own_maps()
            self.maps.lay(code)

    def dump(self, code: Space) -> None:
        """Code that was made at run time and dumped."""
        self._own_maps()
        if self.maps.dumped is None:
            self.maps.dumped = CodeMaps()
        self.maps.dumped.overlay(code)
        self.maps.overlay(code)

    def _own_maps(self) -> None:
        if self.maps.shared:
            self.maps = self.maps.copy()

    def inherit(self, parent: RecordedProcess) -> None:
        """Have the mappings of another one."""
        parent.maps.shared = True
        self.maps = parent.maps
        self.space = parent.space
