"""Makes samples for stores, and says of them what a store must say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from walkback.store.append import Append
from walkback.store.builder import SampleOrigin

Sample = tuple[int, Sequence[tuple[str | None, str | None, int, str | None]], int]
"""A time, frames (build ID, path, address, name), innermost first, and a weight."""
HOUR = 3600 * 10**9
NOON = 490_000 * HOUR
"""2025-11-24T16:00:00Z."""


def put(append: Append, samples: Sequence[Sample], **origin: Any) -> Counter[Any]:
    """Add samples (time, frames, weight) of one origin; a frame is (build ID, path, address, name), innermost first.

    What comes back is what the plain reader must find of them.
    """
    builder = append.builder
    source = builder.sources([SampleOrigin(**origin)])[0]
    expected: Counter[Any]
    first, words, expected = [0], [], Counter()
    for time, frames, weight in samples:
        for build_id, path, address, name in frames:
            module = builder.module(build_id, path) if build_id or path else -1
            words += builder.frames(np.array([module]), np.array([address], np.uint64), [name]).tolist()
        first.append(len(words))
        told = tuple((build_id or path, address, name) for build_id, path, address, name in frames)
        expected[told_sample(time, told, weight, **origin)] += 1
    times, _, weights = (list(column) for column in zip(*samples, strict=True)) if samples else ([], [], [])
    count = len(samples)
    stacks = builder.stacks.add(np.array(first), np.array(words, np.int64))
    builder.add(np.array(times, np.int64), stacks, np.array(weights, np.int64), np.full(count, source), np.zeros(count))
    return expected


def told_sample(
    time: int,
    frames: tuple[tuple[str | None, int, str | None], ...],
    weight: int,
    *,
    host: str | None = None,
    process: str | None = None,
    pid: int = -1,
    tid: int = -1,
    event: str | None = None,
    labels: tuple[Any, ...] = (),
    end: int = 0,
) -> tuple[Any, ...]:
    """A sample as the plain reader tells it."""
    known = [None if number == -1 else number for number in (pid, tid)]
    return (time, frames, weight, end, host, process, *known, event, tuple(labels))


def named(*names: str) -> list[tuple[None, None, int, str]]:
    """Frames that are only names, innermost first."""
    return [(None, None, 0, name) for name in names]


def random_samples(rng: random.Random, count: int, *, hours: int = 3) -> list[Sample]:
    """Samples with all that there can be."""
    files = [("ab" * 20, "/usr/lib/libc.so.6"), ("cd" * 20, None), (None, "/opt/without an id"), (None, None)]

    def frame() -> tuple[str | None, str | None, int, str | None]:
        build_id, path = rng.choice(files)
        name = rng.choice(("spin", "wörk", "a;b 'c\"", None)) if build_id is None else None
        return build_id, path, rng.choice((0, 16, 2**64 - 1, rng.randrange(64))), name

    frames = [frame() for _ in range(12)]
    return [
        (
            NOON + rng.randrange(hours * HOUR),
            [rng.choice(frames) for _ in range(rng.randrange(7))],
            rng.choice((1, 1, 1, 0, 2**62)),
        )
        for _ in range(count)
    ]
