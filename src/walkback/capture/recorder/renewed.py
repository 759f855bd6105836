"""What a recorder sees for as long as it runs, by several unwindings, one after the other, so that memory stays flat.

Each unwinding keeps what it learns of processes, files and tables. When that is much, or old, another one begins.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from walkback.capture.frames import DistinctFrames
from walkback.capture.perfdata.recording import Recording
from walkback.capture.recorder.recorder import Recorder
from walkback.capture.unwinding import Unwinding
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.stacks.profile import SampleBatch

_MORE_MEMORY, _MORE_SPACES = 128 << 20, 10_000
"""Bytes, and sets of mappings, beyond what was needed when most files were known, after which another one begins."""
_SETTLED, _LONGEST = 60.0, 3600.0
"""Seconds after which most files are known, and after which another one begins at the latest."""


class Renewed:
    """Iterated once; the attributes are those of the unwinding that gives batches now."""

    def __init__(self, recorder: Recorder, **options: Any) -> None:
        """The options are those of `Unwinding`."""
        self._recorder, self._options = recorder, options
        self._unwinding = Unwinding(recorder, **options)
        self._began = time.monotonic()
        self._settled: tuple[int, int] | None = None
        """The memory and the sets of mappings when most files were known."""
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
            counts = self._unwinding.recording.counts
            self._unwinding = Unwinding(self._recorder, **self._options)
            self._began, self._settled = time.monotonic(), None
            self.recording.counts.add(counts)
            _give_back_memory()

    def _is_large(self) -> bool:
        age = time.monotonic() - self._began
        now = _memory(), len(self.recording.spaces)
        if self._settled is None:
            self._settled = now if age > _SETTLED else None
            return False
        memory, spaces = self._settled
        return age > _LONGEST or now[0] > memory + _MORE_MEMORY or now[1] > spaces + _MORE_SPACES

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

    def read_kernel(self) -> None:
        """Read the names of the kernel that runs before any batch."""
        self._unwinding.read_kernel()

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


def _memory() -> int:
    """The bytes of memory that this process has in use and that are of no file."""
    resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * mmap.PAGESIZE


def _give_back_memory() -> None:
    """What was let go of is kept by the C library, between what is still in use, unless it is asked."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # musl has no such function
        ctypes.CDLL(None).malloc_trim(0)
