"""A store that takes what is captured for as long as that goes on: an append every few seconds.

What was appended is safe, whatever happens to the capture.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from walkback.base.errors import WalkbackError
from walkback.capture.recorder.renewed import Renewed
from walkback.stacks.distinct import Distinct
from walkback.store.append import Append
from walkback.store.capturing import Capture
from walkback.store.known import KnownNames
from walkback.store.opening import open_folder

if TYPE_CHECKING:
    import os

    from walkback.stacks.profile import SampleBatch
    from walkback.store.capturing import Captured

_MOST_NAMED = 1 << 20
_NAMES_KEPT = 24 * 3600
"""Seconds for which names that were appended are taken for kept."""


class Often:
    """Takes the batches of one capture."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        labels: Mapping[str, str],
        capture: Capture,
        seconds: float,
        *,
        by_period: bool = False,
        on_failure: Callable[[OSError | WalkbackError], None] | None = None,
    ) -> None:
        """All samples get these labels; an append comes when `seconds` have passed.

        Once an append has succeeded, `on_failure` is given the error of one that does not: its samples are lost.
        """
        self._folder = open_folder(folder, create=True)
        self._labels, self._capture, self._seconds, self._by_period = labels, capture, seconds, by_period
        self._append: Append | None = None
        self._taken: Captured | None = None
        self._named, self._known = Distinct(), KnownNames()
        self._on_failure = on_failure
        self._names_end = time.monotonic() + _NAMES_KEPT
        self._due = 0.0
        self._waiting = 0
        self.samples = self.appends = self.lost = 0
        """What is in the store, in how many appends, and the samples that are not."""

    def each(self, batches: Iterable[SampleBatch]) -> Iterator[SampleBatch]:
        """Give batches back, each when it has been added."""
        for batch in batches:
            self.add(batch)
            yield batch

    def renew(self) -> None:
        """Append what has come; the capture numbers its files anew."""
        self.publish()
        self._named = Distinct()

    def add(self, batch: SampleBatch) -> None:
        """Add the samples of a batch."""
        if self._append is None or self._taken is None:
            self._append = Append(self._folder, labels=self._labels, known=self._known)
            self._taken = self._append.captured(self._capture, by_period=self._by_period, named=self._named)
            self._due = time.monotonic() + self._seconds
        self._taken.add(batch)
        self._waiting += len(batch)
        self.publish_due()

    def publish_due(self) -> None:
        """Append what has come, if it is time for that."""
        if time.monotonic() >= self._due:
            self.publish()

    def publish(self) -> None:
        """Append what has come since the last time."""
        if self._append is None:
            return
        append, self._append, self._taken = self._append, None, None  # also if that fails
        waiting, self._waiting = self._waiting, 0
        try:
            append.publish()
        except (OSError, WalkbackError) as error:
            if self._on_failure is None or not self.appends:
                raise
            self.lost += waiting
            self._named, self._known = Distinct(), KnownNames()
            self._on_failure(error)
        else:
            self.samples += waiting
            self.appends += 1
        if isinstance(self._capture, Renewed):
            self._capture.forget_frames()
        if len(self._named) > _MOST_NAMED or (self._folder.is_far and time.monotonic() > self._names_end):
            # Where a store is far nobody looks whether it still has the names that it was given.
            self._named, self._known = Distinct(), KnownNames()
            self._names_end = time.monotonic() + _NAMES_KEPT
