"""What a recorder sees for as long as it runs, by several unwindings, one after the other, so that memory stays flat.

Each unwinding keeps what it learns of processes, files and tables. When that is much, or old, another one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from walkback.capture.frames import DistinctFrames
from walkback.capture.perfdata.recording import Recording
from walkback.capture.recorder.recorder import Recorder
from walkback.capture.unwinding import Unwinding
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.stacks.profile import SampleBatch

_MOST_MODULES, _MOST_SPACES, _LONGEST = 1000, 10_000, 3600.0
"""Files, sets of mappings, and seconds, after which another one begins."""


class Renewed:
    """Iterated once; the attributes are those of the unwinding that gives batches now."""

    def __init__(self, recorder: Recorder, **options: Any) -> None:
        """The options are those of `Unwinding`."""
        self._recorder, self._options = recorder, options
        self._unwinding = Unwinding(recorder, **options)
        self._began = time.monotonic()
        self.on_renewal: Callable[[], None] = lambda: None
        """Called when all batches of an unwinding were given, and before another one takes its place."""

    def __repr__(self) -> str:
        return f"Renewed({self._recorder!r})"

    def __iter__(self) -> Iterator[SampleBatch]:
        while True:
            for batch in self._unwinding:
                yield batch
                if self._is_large():
                    self._recorder.renew()
            if self._recorder.has_ended:
                return
            self.on_renewal()
            former = self._unwinding.recording
            self._unwinding, self._began = Unwinding(self._recorder, **self._options), time.monotonic()
            self.recording.counts.add(former.counts)

    def _is_large(self) -> bool:
        return (
            len(self.modules) > _MOST_MODULES
            or len(self.recording.spaces) > _MOST_SPACES
            or time.monotonic() - self._began > _LONGEST
        )

    @property
    def name(self) -> str:
        """What is recorded."""
        return self._recorder.name

    @property
    def recording(self) -> Recording:
        """The records that are read now, with the counts of all."""
        return self._unwinding.recording

    @property
    def modules(self) -> Modules:
        """The files."""
        return self._unwinding.modules

    @property
    def names(self) -> Names:
        """What names their code."""
        return self._unwinding.names

    @property
    def names_last(self) -> bool:
        """Whether batches have the numbers of frames without names."""
        return self._unwinding.names_last

    @property
    def distinct(self) -> DistinctFrames:
        """The frames that were met."""
        return self._unwinding.distinct

    def forget_frames(self) -> None:
        """Number frames anew: what is done with them goes by how many were met."""
        self._unwinding.distinct = DistinctFrames(self._unwinding.names)

    @property
    def comms(self) -> list[str]:
        """The names of threads."""
        return self._unwinding.comms

    @property
    def troubles(self) -> list[str]:
        """What could not be had, a line each."""
        return self._unwinding.troubles
