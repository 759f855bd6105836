"""Code that a process made at run time and dumped for perf: a module for each dump, and where its code was when.

Pieces of code come one after the other, and may take the place of earlier ones. Those that overlap nothing are mapped
together with those before them, so that mappings change as rarely as possible.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, U64, concatenated
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.owned import read_owned
from walkback.naming.modules import Module, Modules
from walkback.symbols.spans import SettledSpans
from walkback.walking.samples import Space

if TYPE_CHECKING:
    from walkback.jitdump.decoding import JitDump

_LARGEST = 1 << 28
"""Bytes of a dump that are read at once."""
_MOST = 1 << 29
"""Bytes of all dumps of one capture."""
_MOST_TROUBLES = 100
_MOST_TIMED = 1 << 17
"""Pieces of code whose times count."""
NO_CODE = Space.of([], [], [], [])


class Layer(NamedTuple):
    """Code that holds from some time on, until other code takes its place."""

    time: int
    code: Space


class Dumps:
    """The dumps of one capture."""

    def __init__(self, modules: Modules, machine: Machine) -> None:
        self.modules = modules
        self.machine = machine
        self.left = _MOST
        """Bytes that may still be read."""
        self.troubles: list[str] = []
        """What is wrong with them, a line each."""

    def report(self, trouble: str) -> None:
        """Something is wrong; a recording may name any number of dumps."""
        if len(self.troubles) < _MOST_TROUBLES:
            self.troubles.append(trouble)


class DumpedCode:
    """The code of one dump, to which its process may still add."""

    def __init__(self, dumps: Dumps, path: str, owners: set[int], name: str) -> None:
        """It is read at `path` if one of these users owns it; `name` is what the process calls it."""
        self._dumps = dumps
        self._path, self._owners, self._name = path, owners, name
        self._header = b""
        self._place = 0
        """In the file: how far it was read."""
        self._ended = False
        self.newest = NO_CODE
        """All of its code, each address with what came there last."""

    def layers(self, *, by_time: bool) -> list[Layer]:
        """What can be read, in the order of its times; all at once if these are not `by_time` as those of samples."""
        dump, rows = self._read()
        if dump is None or not len(rows.start):
            return []
        newest = rows.settled()
        is_replaced = (rows.end - rows.start).sum() != (newest.last - newest.start + np.uint64(1)).sum()
        if not (by_time and dump.is_monotonic and is_replaced):
            return [Layer(0, newest)]
        if len(rows.start) > _MOST_TIMED:
            self._end(f"it has more than {_MOST_TIMED} pieces of code, and of those at one address the last is taken")
            return [Layer(0, newest)]
        return list(_layers(dump.moves.time, rows))

    def read_on(self) -> bool:
        """Take what was added since the last time into `newest`; whether there was anything."""
        _, rows = self._read()
        if len(rows.start):
            self.newest = overlaid(self.newest, rows.settled())
        return len(rows.start) > 0

    def _read(self) -> tuple[JitDump | None, _Rows]:
        """What was added since the last time."""
        from walkback.jitdump.decoding import decode  # which hardly a process needs
        from walkback.jitdump.image import image_of
        from walkback.jitdump.lines import DumpLines

        if self._ended:
            return None, _Rows.none()
        try:
            most = min(_LARGEST, self._dumps.left)
            data = self._header + read_owned(self._path, self._owners, most, self._place)
            dump = decode(data, self._name)
        except UnreadableError as error:
            self._end(error.message)
            return None, _Rows.none()
        if len(data) - len(self._header) >= most:
            self._end(f"only {most} bytes of it are read")
        elif dump.trouble is not None:
            self._end(dump.trouble)
        self._dumps.left -= dump.end - len(self._header)
        self._place += dump.end - len(self._header)
        self._header = data[: dump.begin]
        if not len(dump.loads.address):
            return dump, _Rows.none()
        image, start = image_of(dump, self._dumps.machine)
        module = Module(self._name, image=memoryview(image), is_made=True, lines=DumpLines(dump, start))
        number = self._dumps.modules.add(module, ("dump", self, self._place))
        return dump, _Rows.of(dump, number, start)

    def _end(self, trouble: str) -> None:
        self._ended = True
        self._dumps.report(f"{self._name}: {trouble}")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where code came, in the order of time; later rows hold where earlier ones overlap them."""

    start: U64
    end: U64
    module: I64
    bias: U64

    @classmethod
    def none(cls) -> _Rows:
        return cls.of_space(NO_CODE)

    @classmethod
    def of(cls, dump: JitDump, module: int, image: U64) -> _Rows:
        """Of a dump with a module whose file has each piece of code at these addresses."""
        start, load = dump.moves.address, dump.moves.load
        return cls(start, start + dump.size()[load], np.full(len(start), module), start - image[load])

    @classmethod
    def of_space(cls, space: Space) -> _Rows:
        """What is mapped; that the last address has none behind it does no harm."""
        end = space.last + (space.last < np.uint64(2**64 - 1))
        return cls(space.start, end, space.module.astype(np.int64), space.bias)

    def chosen(self, which: I64) -> _Rows:
        return _Rows(self.start[which], self.end[which], self.module[which], self.bias[which])

    def settled(self) -> Space:
        """Rising and disjoint."""
        spans = SettledSpans(self.start, self.end)
        module = self.module[spans.number].astype(np.int32)
        return Space(spans.start, spans.end - np.uint64(1), module, self.bias[spans.number])


def overlaid(below: Space, above: Space) -> Space:
    """What is mapped where the second takes the place of what it overlaps of the first."""
    if not len(above.start):
        return below
    return concatenated([_Rows.of_space(below), _Rows.of_space(above)]).settled()


def _layers(times: U64, rows: _Rows) -> Iterator[Layer]:
    """Each begins with the first code that overlaps earlier code; the first of them holds from the beginning."""
    starts: list[int] = []
    ends: list[int] = []
    begin, time = 0, 0
    for number, (start, end) in enumerate(zip(rows.start.tolist(), rows.end.tolist(), strict=True)):
        low, high = bisect_right(ends, start), bisect_left(starts, end)
        if low < high:
            yield Layer(time, rows.chosen(np.arange(begin, number)).settled())
            begin, time = number, int(times[number])
            # What is left of the code that was there.
            rest = [(start, end)]
            if starts[low] < start:
                rest.insert(0, (starts[low], start))
            if ends[high - 1] > end:
                rest.append((end, ends[high - 1]))
            starts[low:high], ends[low:high] = [one for one, _ in rest], [other for _, other in rest]
        elif start < end:
            starts.insert(low, start)
            ends.insert(low, end)
    yield Layer(time, rows.chosen(np.arange(begin, len(times))).settled())
