"""Recordings of `perf record`: files and pipes, of any age and either byte order."""

from walkback.capture.perfdata.batch import RecordedBatch
from walkback.capture.perfdata.counts import RecordingCounts
from walkback.capture.perfdata.recording import Recording
from walkback.capture.perfdata.state import KernelMap

__all__ = ["KernelMap", "RecordedBatch", "Recording", "RecordingCounts"]
