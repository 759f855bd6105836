"""Makes a store that a server shows."""

from __future__ import annotations

import random
from pathlib import Path

from store.made import HOUR, NOON, Sample, named, put
from walkback.store.store import Store

HOSTS = ("web1", "web2")
PROCESSES = ("server", "a b&c", "w\u00f6rker")
VERSIONS = ("1.1", "1.2=x")
FUNCTIONS = ("main", "work", "sort.cold", "hash<T, U>", "</script>", "w\u00f6rk", "idle", "run")


def samples(rng: random.Random, count: int, since: int = NOON, hours: int = 3) -> list[Sample]:
    """Samples of functions that have names and no file."""
    return [
        (
            since + rng.randrange(hours * HOUR),
            named(*rng.choices(FUNCTIONS, k=rng.randrange(6))),
            rng.choice((1, 1, 1, 1, 5)),
        )
        for _ in range(count)
    ]


def fill(folder: Path, rng: random.Random, count: int) -> None:
    """Add samples of every host, process and version."""
    store = Store(folder, create=True)
    for host in HOSTS:
        for process in PROCESSES:
            for version in VERSIONS:
                with store.append() as new:
                    labels = (("version", version), ("host", process))
                    put(new, samples(rng, count // 12), host=host, process=process, labels=labels)
