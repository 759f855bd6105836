"""Recordings of `perf record`: files and pipes, of any age and either byte order."""

from walkback.capture.perfdata.batch import Batch
from walkback.capture.perfdata.recording import Counts, Recording
from walkback.capture.perfdata.state import KernelMap

__all__ = ["Batch", "Counts", "KernelMap", "Recording"]
