"""The answers of a server: each is reckoned once, as the verbs of the command do it, and kept while there is room."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from threading import Lock
from typing import Any

from walkback.base.errors import MissingError
from walkback.base.text import printable
from walkback.export.flamegraph import FlameGraph, flame_graph, flame_graph_of_difference
from walkback.pages.page import plain_data
from walkback.serving.question import Question, Side
from walkback.stacks.changes import difference
from walkback.stacks.profile import Profile
from walkback.stacks.top import hottest
from walkback.store.moments import span
from walkback.store.naming import Naming
from walkback.store.selection import wanted_samples
from walkback.store.store import Store
from walkback.store.timeline import sample_times

MOST_FUNCTIONS = 300
"""Rows of a table of functions."""
_MOST_SPANS = 300
_MOST_VALUES = 1000
"""Hosts, processes, and values of a label."""
_MOST_NOTES = 20
_MOST_FRAMES = 200_000
"""Boxes of a flame graph, more than any screen shows."""
_PATIENCE = 300.0
"""Seconds that a request waits for those before it."""
_KEPT_BYTES = 64 << 20
_KEPT = 256


class BusyError(Exception):
    """There are too many questions, or this one waited until nobody wanted the answer."""


class Answers:
    """Answers questions to a store, one at a time; `naming` gives how each looks up names."""

    def __init__(self, store: Store, naming: Callable[[], Naming]) -> None:
        self._store = store
        self._naming = naming
        self._working = Lock()
        self._kept: OrderedDict[tuple[bytes, Question], bytes] = OrderedDict()

    def answer(self, asked: Question, is_gone: Callable[[], bool] = lambda: False) -> bytes:
        """The answer as JSON: what was kept, unless the store has changed.

        Nothing is done for who `is_gone` when those before have their answers.
        """
        if not self._working.acquire(timeout=_PATIENCE):
            raise BusyError
        try:
            if is_gone():
                raise BusyError
            key = self._state(), asked
            known = self._kept.pop(key, None)
            if known is None:
                known = plain_data(self._reckoned(asked)).encode()
            self._keep(key, known)
            return known
        finally:
            self._working.release()

    def _state(self) -> bytes:
        """What is another as soon as the store has other samples or names."""
        with self._store.snapshot() as snapshot:
            parts = [repr(block.name) for block in snapshot.blocks] + [str(path) for path in snapshot.names]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).digest()

    def _keep(self, key: tuple[bytes, Question], answer: bytes) -> None:
        self._kept[key] = answer
        while len(self._kept) > _KEPT or sum(map(len, self._kept.values())) > _KEPT_BYTES:
            self._kept.popitem(last=False)

    def _reckoned(self, asked: Question) -> dict[str, Any]:
        try:
            match asked.kind:
                case "store":
                    return self._overview()
                case "timeline":
                    return self._timeline(asked.side)
                case _:
                    return self._stacks(asked.side) if asked.before is None else self._changes(asked.before, asked.side)
        except MissingError as error:
            return {"missing": str(error)}

    def _overview(self) -> dict[str, Any]:
        found = self._store.overview()
        blocks = self._store.blocks()
        return {
            "store": printable(self._store.folder.name),
            "samples": found.samples,
            "stacks": found.stacks,
            "bytes": found.bytes,
            "span": span(blocks[0].counts.first, max(block.counts.last for block in blocks)) if blocks else "",
            "hosts": found.hosts[:_MOST_VALUES],
            "processes": found.processes[:_MOST_VALUES],
            "labels": {name: values[:_MOST_VALUES] for name, values in found.labels.items()},
        }

    def _timeline(self, side: Side) -> dict[str, Any]:
        wanted = wanted_samples(**side.words())
        with self._store.snapshot(since=wanted.since, until=wanted.until) as snapshot:
            found = sample_times(snapshot.blocks, wanted, _MOST_SPANS)
        # Milliseconds, which JavaScript has no smaller ones of.
        return {"first": found.first / 10**6, "step": found.step / 10**6, "counts": found.counts.tolist()}

    def _stacks(self, side: Side) -> dict[str, Any]:
        found, notes = self._profile(side)
        functions = hottest(found)
        table = {"whole": int(found.weight.sum()), "functions": [asdict(one) for one in functions[:MOST_FUNCTIONS]]}
        return _shown(_title(found), flame_graph(found, most=_MOST_FRAMES), notes) | table | {"all": len(functions)}

    def _changes(self, before: Side, after: Side) -> dict[str, Any]:
        sides = [self._profile(side) for side in (before, after)]
        (old, old_notes), (new, new_notes) = sides
        found = difference(old, new)
        notes = list(dict.fromkeys((*old_notes, *new_notes)))
        table = {
            "before": found.before,
            "after": found.after,
            "functions": [asdict(one) for one in found.functions[:MOST_FUNCTIONS]],
            "all": len(found.functions),
        }
        title = f"{_title(old)} \u2192 {_title(new)}"
        return _shown(title, flame_graph_of_difference(old, new, most=_MOST_FRAMES), notes) | table

    def _profile(self, side: Side) -> tuple[Profile, list[str]]:
        """The samples of a side, and why names of some are not known."""
        naming = self._naming()
        found = self._store.select(**side.words(), naming=naming).profile()
        if not len(found.stack):
            raise MissingError("there are no such samples")
        return found, [f"{name}: {why}" for name, why in naming.troubles.items()][:_MOST_NOTES]


def _shown(title: str, graph: FlameGraph, notes: list[str]) -> dict[str, Any]:
    if not graph.is_whole:
        notes = [f"the graph draws what weighs least together: it has {_MOST_FRAMES} frames at most", *notes]
    return {"title": title, "about": graph.about, "graph": graph.data, "notes": [printable(note) for note in notes]}


def _title(found: Profile) -> str:
    return span(found.start, found.start + found.duration)
