"""Profiles made by hand, and the batches that say the same sample by sample."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from walkback.stacks.distinct import Distinct
from walkback.stacks.profile import NamedFrames, Profile, SampleBatch, Timeline, Totals

NASTY = [
    None,
    "",
    "plain",
    "a;b",
    "line\nend",
    "</script><b>&\"'",
    "bytes \udcff\udc80",
    "lone \ud800",
    "snow \u2603",
    "x" * 5000,
    "tab\there",
    "[brackets]",
    "\u2028",
]
MODULES = ["", "/usr/lib/libc.so.6", "/odd;name\n/</script>", "[kernel.kallsyms]", "[vdso]", "/bin/\udcfe"]


@dataclass
class Recording:
    """Samples as a test says them: each a comm, a stack of numbers of frames (innermost first), and more."""

    symbols: Sequence[str | None]
    modules: list[str]
    samples: list[tuple[str, list[int]]]
    weights: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    threads: list[tuple[int, int]] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    kernel: list[bool] = field(default_factory=list)
    files: list[str | None] | None = None
    lines: list[int] | None = None
    comms: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.samples)
        self.weights = self.weights or [1] * count
        self.ends = self.ends or [0] * count
        self.threads = self.threads or [(10, 10)] * count
        self.times = self.times or [1000 * number for number in range(count)]
        self.comms = list(dict.fromkeys(comm for comm, _ in self.samples))

    @property
    def frames(self) -> NamedFrames:
        count = len(self.symbols)
        return NamedFrames(
            list(self.symbols),
            self.modules,
            np.arange(count, dtype=np.uint64) * np.uint64(16) + np.uint64(0x1000),
            np.array(self.kernel or [False] * count, np.bool_),
            np.arange(count, dtype=np.uint64),
            self.files,
            self.lines,
        )

    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        sizes = [len(stack) for _, stack in self.samples]
        first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return first, np.array([frame for _, stack in self.samples for frame in stack], np.int64)

    def columns(self) -> dict[str, np.ndarray]:
        return {
            "comm": np.array([self.comms.index(comm) for comm, _ in self.samples], np.int32),
            "weight": np.array(self.weights, np.uint64),
            "end": np.array(self.ends, np.uint8),
            "pid": np.array([pid for pid, _ in self.threads], np.int64),
            "tid": np.array([tid for _, tid in self.threads], np.int64),
        }

    def profile(self, *, threads: bool = False, timeline: bool = False, **more: Any) -> Profile:
        stacks, totals, columns = Distinct(), Totals(threads=threads), self.columns()
        stack = stacks.add(*self.csr())
        totals.add(stack=stack, **columns)
        if timeline:
            time = np.array(self.times, np.uint64)
            more["timeline"] = Timeline(time=time, stack=stack, **columns)
        from dataclasses import replace

        return replace(Profile.of(self.frames, stacks, self.comms, totals), **more)

    def batches(self, size: int = 3) -> list[SampleBatch]:
        first, frame = self.csr()
        columns = self.columns()
        columns["period"] = columns.pop("weight")
        columns["time"] = np.array(self.times, np.uint64)
        found = []
        for at in range(0, len(self.samples), size):
            part = slice(at, at + size)
            bounds = first[at : at + size + 1]
            inside = slice(int(bounds[0]), int(bounds[-1]))
            lookup = self.frames.address[frame[inside]]
            found.append(
                SampleBatch(
                    frames=self.frames,
                    comms=self.comms,
                    events=["cpu-clock"],
                    first=bounds - bounds[0],
                    frame=frame[inside],
                    pc=lookup + np.uint64(1),
                    lookup=lookup,
                    how=(frame[inside] % 8).astype(np.uint8),
                    event=np.zeros(len(bounds) - 1, np.int32),
                    **{name: column[part] for name, column in columns.items()},
                )
            )
        return found


def nasty() -> Recording:
    """A recording with every name that could break a format, in every place."""
    symbols = [symbol for symbol in NASTY for _ in MODULES]
    modules = [module for _ in NASTY for module in MODULES]
    samples = [(str(NASTY[number % len(NASTY)] or ""), [number, (7 * number) % len(symbols)]) for number in range(78)]
    return Recording(symbols, modules, samples, ends=[number % 12 for number in range(78)])


def written(write: Callable[..., object], source: object, **options: Any) -> bytes:
    """What a format writes."""
    out = io.BytesIO()
    write(source, out, **options)
    return out.getvalue()
