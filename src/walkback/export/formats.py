"""The formats by name, and what each needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from walkback.base.dataclass import dataclass
from walkback.export import cbf, firefox, flamegraph, folded, jsonlines, perfscript, pprof, speedscope
from walkback.stacks import top
from walkback.stacks.profile import Profile, SampleBatch


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write stacks."""

    name: str
    about: str
    write: Callable[..., Any]
    """`write(profile, out)` or, if the format is streamed, `write(batches, out)`; `out` takes bytes."""
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
        self.write(source, out, **options)


FORMATS = {
    one.name: one
    for one in (
        Format("folded", "a line for each distinct stack, for flame graph programs", folded.write),
        Format("top", "tables of the hottest functions, callers and places", top.write),
        Format("perf-script", "the text of perf script", perfscript.write, streamed=True),
        Format("json", "an object for each sample, a line each", jsonlines.write, streamed=True),
        Format("pprof", "profile.proto, compressed", pprof.write, binary=True),
        Format("speedscope", "the file format of speedscope", speedscope.write, timeline=True),
        Format("firefox", "a profile for the Firefox Profiler", firefox.write, timeline=True),
        Format("cbf", "a backtrace in Compact Backtrace Format for each sample", cbf.write, streamed=True, binary=True),
        Format("html", "a flame graph in one file", flamegraph.write),
    )
}
"""The formats by name."""
