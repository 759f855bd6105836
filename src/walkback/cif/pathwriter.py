"""Writes the paths of a Compact Image Map.

Which instructions make a path is a choice, and what is written raw teaches prefixes to the paths behind it. There are
two ways to choose: Swift's, which takes the longest prefix again and again and then the rest raw; and the one of the
fewest bytes for each path, but for what teaches the longest folder that it shares with later ones, if that pays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal

from walkback.cif import layout
from walkback.cif.prefixes import LONGEST_KNOWN, KnownPrefixes

Way = Literal["swift", "taught"]
Step = tuple[int, int | None]
"""Up to where, and by what code, or None for raw bytes. The steps of a path may leave a framework to its end."""

_LONGEST = 4096
_DEEPEST = 64
"""Of longer paths, which Linux does not have, and of more folders no instructions are looked for."""


def written(paths: Sequence[bytes], ways: Iterable[Way]) -> list[bytes]:
    """The instructions of each path of a map, in the way that takes the fewest bytes together."""
    return min((_PathWriter(way, paths).all() for way in ways), key=lambda made: sum(map(len, made)))


class _PathWriter:
    """Writes the paths of one map, in their order."""

    def __init__(self, way: Way, paths: Sequence[bytes]) -> None:
        self._way, self._paths = way, paths
        self._prefixes = KnownPrefixes()
        self._later = Counter(folder for path in paths for folder in _folders(path)) if way == "taught" else Counter()

    def all(self) -> list[bytes]:
        return [self._write(path) if path else bytes((layout.END,)) for path in self._paths]

    def _write(self, path: bytes) -> bytes:
        out = bytearray()
        place, teaches = 0, -1
        for end, code in _joined(self._steps(path)):
            if code is not None:
                out += _expand(code)
            else:
                teaches = place if teaches < 0 else teaches
                self._write_raw(out, path, place, end, teaches)
            place = end
        return bytes(out + (_frameworks(path)[place] if place < len(path) else bytes((layout.END,))))

    def _steps(self, path: bytes) -> list[Step]:
        if len(path) > _LONGEST or sum(map(path.count, layout.SEPARATORS)) > _DEEPEST:
            return [(len(path), None)]
        return self._as_swift_does(path) if self._way == "swift" else self._teaching(path)

    def _write_raw(self, out: bytearray, path: bytes, start: int, end: int, teaches: int) -> None:
        for place in range(start, end, layout.LONGEST_STRING):
            piece = path[place : min(place + layout.LONGEST_STRING, end)]
            out.append(len(piece))
            out += piece
        for place in range(max(start, teaches + 1), end):
            if path[place] in layout.SEPARATORS:
                self._prefixes.learn(path, teaches, place)

    def _as_swift_does(self, path: bytes) -> list[Step]:
        steps: list[Step] = []
        place = 0
        while place < len(path):
            found = self._prefixes.at(path, place)
            if not found:
                if place not in _frameworks(path):
                    steps.append((len(path), None))
                break
            length, code = max(found)
            place += length
            steps.append((place, code))
        return steps

    def _fewest(self, path: bytes, start: int = 0) -> list[Step]:
        """Found backwards: the best way on from a place does not depend on the way to it."""
        size = len(path)
        costs = [0] * size + [1]
        steps: list[Step] = [(size, None)] * size
        turns = [size]
        """Where raw bytes would end: something shorter follows."""
        frameworks = _frameworks(path)
        for place in range(size - 1, start - 1, -1):
            furthest = min(place + layout.LONGEST_STRING, size)
            ends = [furthest, *takewhile(lambda end: end < furthest, reversed(turns))]  # noqa: B023 - used up at once
            # The furthest of the best: raw bytes teach.
            best = min(ends, key=lambda end: (costs[end] + end, -end))
            costs[place], steps[place] = 1 + best - place + costs[best], (best, None)
            for length, code in self._prefixes.at(path, place):
                cost = len(_expand(code)) + costs[place + length]
                if cost < costs[place]:
                    costs[place], steps[place] = cost, (place + length, code)
            if place in frameworks and len(frameworks[place]) < costs[place]:
                costs[place], steps[place] = len(frameworks[place]), (place, None)
            if steps[place][1] is not None or steps[place][0] == place:
                turns.append(place)
        chosen, place = [], start
        while place < size and steps[place][0] > place:
            chosen.append(steps[place])
            place = steps[place][0]
        return chosen

    def _teaching(self, path: bytes) -> list[Step]:
        """Raw up to the longest folder that later paths share, from where that costs least with what they will take."""
        folders = _folders(path)
        self._later.subtract(folders)
        shared = next((folder for folder in reversed(folders) if self._later[folder] > 0), b"")
        if not shared:
            return self._fewest(path)
        later, end = self._later[shared], len(shared)
        ways = self._by_codes(shared)
        taught = 1 if self._prefixes.next <= layout.OPERAND_MASK else 2

        def cost(start: int) -> int:
            codes = ways[start][0] * (1 + later)
            return codes if start == end else codes + 1 + end - start + taught * later

        start = min(ways, key=cost)
        head = ways[start][1]
        if start == end:
            return head + self._fewest(path, end)
        return [*head, (end + 1, None), *self._fewest(path, end + 1)]

    def _by_codes(self, path: bytes) -> dict[int, tuple[int, list[Step]]]:
        """Each place of a path that codes alone lead to, with the bytes and the steps that this takes."""
        ways: dict[int, tuple[int, list[Step]]] = {0: (0, [])}
        for place in range(len(path)):
            if place not in ways:
                continue
            size, steps = ways[place]
            for length, code in self._prefixes.at(path, place):
                more = size + len(_expand(code))
                if place + length not in ways or more < ways[place + length][0]:
                    ways[place + length] = more, [*steps, (place + length, code)]
        return ways


def _folders(path: bytes) -> list[bytes]:
    """What a path has before its separators, the shortest first."""
    places = [place for place in range(1, len(path)) if path[place] in layout.SEPARATORS]
    return [path[:place] for place in places if place <= LONGEST_KNOWN]


def _joined(steps: list[Step]) -> list[Step]:
    """Raw bytes that follow each other, as one step."""
    joined: list[Step] = []
    for step in steps:
        if joined and joined[-1][1] is None and step[1] is None:
            joined.pop()
        joined.append(step)
    return joined


def _expand(code: int) -> bytes:
    if code <= layout.OPERAND_MASK:
        return bytes((layout.EXPAND | code,))
    value = code - layout.FIRST_EXTENDED
    operand = value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")
    return bytes((layout.EXPAND | layout.EXTENDED | len(operand) - 1,)) + operand


def _frameworks(path: bytes) -> dict[int, bytes]:
    """The instructions that can end a path, by where they begin: it may be that of a framework."""
    name = path.rpartition(b"/")[2]
    if not 1 <= len(name) <= layout.LONGEST_FRAMEWORK:
        return {}
    opcode = bytes((layout.FRAMEWORK | len(name) - 1,))
    folder, version = b"/" + name + b".framework", path[-len(name) - 2 : -len(name) - 1]
    found = {}
    if path.endswith(versioned := folder + b"/Versions/" + version + b"/" + name) and version != bytes((layout.FLAT,)):
        found[len(path) - len(versioned)] = opcode + version + name
    if path.endswith(flat := folder + b"/" + name):
        found[len(path) - len(flat)] = opcode + bytes((layout.FLAT,)) + name
    return found
