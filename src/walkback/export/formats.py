"""The formats by name, and what each needs."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import BinaryIO

from walkback.base.dataclass import dataclass
from walkback.stacks.profile import Profile, SampleBatch


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write stacks."""

    name: str
    about: str
    module: str
    """Where `write(profile, out)` or, if the format is streamed, `write(batches, out)` is; `out` takes bytes.

    It is imported when something is written, so that each command only imports the format that it writes.
    """
    streamed: bool = False
    """Writes each sample, and needs no sums."""
    timeline: bool = False
    """Shows time where the profile has a timeline."""
    binary: bool = False
    """Not for a terminal."""

    def export(self, source: Profile | Iterable[SampleBatch], out: BinaryIO, **options: bool | int) -> None:
        """Write a `Profile`; if the format is streamed, batches of samples, as those of `Unwinding`."""
        if self.streamed == isinstance(source, Profile):
            wanted = "batches of samples" if self.streamed else "a Profile"
            raise TypeError(f"{self.name} is written from {wanted}")
        import_module(self.module).write(source, out, **options)


FORMATS = {
    one.name: one
    for one in (
        Format("folded", "a line for each distinct stack, for flame graph programs", "walkback.export.folded"),
        Format("top", "tables of the hottest functions, callers and places", "walkback.stacks.top"),
        Format("perf-script", "the text of perf script", "walkback.export.perfscript", streamed=True),
        Format("json", "an object for each sample, a line each", "walkback.export.jsonlines", streamed=True),
        Format("pprof", "profile.proto, compressed", "walkback.export.pprof", binary=True),
        Format("speedscope", "the file format of speedscope", "walkback.export.speedscope", timeline=True),
        Format("firefox", "a profile for the Firefox Profiler", "walkback.export.firefox", timeline=True),
        Format(
            "cbf",
            "a backtrace in Compact Backtrace Format for each sample",
            "walkback.export.cbf",
            streamed=True,
            binary=True,
        ),
        Format("html", "a flame graph in one file", "walkback.export.flamegraph"),
    )
}
"""The formats by name."""
