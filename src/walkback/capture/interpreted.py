"""Stacks of processes and core files in which the functions stand that interpreters run."""

from __future__ import annotations

import numpy as np

from walkback.capture.snapshot import Snapshot
from walkback.naming.modules import Modules
from walkback.runtimes.chains import RuntimeFrames
from walkback.runtimes.interpreters import Interpreters
from walkback.runtimes.merging import merged
from walkback.stacks.stacks import Stacks


class Interpreted:
    """The interpreters of one capture."""

    def __init__(self, modules: Modules, *, limit: int, evaluators: bool = False) -> None:
        """At most `limit` frames of a thread are followed; with `evaluators` their frames stay."""
        self._modules, self._limit, self._evaluators = modules, limit, evaluators
        self.frames = RuntimeFrames()
        """All functions that were met."""
        self.troubles: list[str] = []
        """What could not be had, a line each."""

    def interpreters(self, *, tasks: bool = False) -> Interpreters:
        """Those of one more process; with `tasks` those of Python's asyncio are read as well."""
        return Interpreters(
            lambda number: self._modules[number].elf,
            limit=self._limit,
            frames=self.frames,
            troubles=self.troubles,
            tasks=tasks,
        )

    def merged(self, snapshot: Snapshot) -> Stacks:
        """The stacks of a snapshot, with functions in the place of the evaluators that run them."""
        assert snapshot.stacks is not None
        return merged(
            snapshot.stacks, snapshot.chains, self._is_handler, self._is_trampoline, evaluators=self._evaluators
        )

    def _is_trampoline(self, module: int) -> bool:
        """Whether code is made at run time, and of a form that is known, as what calls Python's evaluator is."""
        return self._modules[module].is_made and self._modules[module].rules is not None

    def _is_handler(self, module: int, address: int) -> bool:
        """Whether a frame belongs to the evaluator that it was called by."""
        symbols = self._modules[module].symbols
        names = symbols.names_of(symbols.holders(np.array([address], np.uint64))) if symbols is not None else [None]
        return Interpreters.is_handler(names[0])
