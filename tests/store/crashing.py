"""What the processes do that are killed: they append, compact, expire and read until then."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store.made import HOUR, NOON, Sample, named, put
from walkback.segments.database import connect
from walkback.store.store import Store
from walkback.store.tables import read_block

EXPIRED = NOON - 5 * HOUR
"""Samples of this hour are there to expire."""


def samples_of(number: int) -> list[Sample]:
    """The samples of one append: of two hours, with weights that no other append has."""
    return [
        (NOON + number, named(f"leaf {number % 7}", "main"), number),
        (NOON + number + 1, named("main"), number),
        (NOON + HOUR + number, named(f"leaf {number % 5}", "other", "main"), number),
    ]


def tell(path: Path | str, text: object) -> None:
    """One line at the end of a file; what was told stays told when this is killed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def left(store: Store) -> list[str]:
    """The folders in staging whose writer is gone: nobody holds the lock in them."""
    found = []
    for alive in sorted((store.path / "staging").glob("*/alive")):
        with alive.open() as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            found.append(alive.parent.name)
    return found


def _append_forever(store: Store, acknowledged: Path, begin: int) -> None:
    number = begin
    while True:
        with store.append() as new:
            put(new, samples_of(number))
        tell(acknowledged, number)
        with store.append() as new:
            put(new, [(EXPIRED + number, named("old"), 1)])
        number += 1


def _compact_forever(store: Store, every: bool) -> None:
    while True:
        store.compact(every=every)
        store.expire(EXPIRED + HOUR)


def _read_forever(store: Store, acknowledged: Path) -> None:
    with connect() as db:
        while True:
            known = acknowledgements(acknowledged)
            found: Counter[Any] = Counter()
            with store.snapshot() as snapshot:
                for block in snapshot.blocks:
                    if block.counts.first >= NOON:
                        found.update(read_block(db, block).weight.tolist())
            wrong = {number: count for number, count in found.items() if count != 3}
            assert not wrong, f"appends that are not there once: {wrong}"
            assert not known - found.keys(), f"appends that are gone: {known - found.keys()}"


def forever(work: str, store: Path, *rest: Any) -> None:
    """Until it is killed; a process that ends by an error says so in a file beside the store."""
    works: dict[str, Callable[..., None]] = {
        "append": _append_forever,
        "compact": _compact_forever,
        "read": _read_forever,
    }
    try:
        works[work](Store(store), *rest)
    except Exception:
        tell(f"{store}.failed", traceback.format_exc())


def acknowledgements(path: Path) -> set[int]:
    """What appends were acknowledged; a line that was cut short by the kill is none."""
    try:
        lines = Path(path).read_text().split("\n")[:-1]
    except FileNotFoundError:
        return set()
    return {int(line) for line in lines}


_STEPS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir"}


def dies_at(step: int, store: Path, work: str, acknowledged: Path) -> None:
    """Do something, and be killed just before the so-manyth change of the store's files."""
    path = Store(store).path
    left = step

    def count(event: str, details: tuple[Any, ...]) -> None:
        nonlocal left
        changes = event in _STEPS or (event == "open" and details[2] & (os.O_RDWR | os.O_WRONLY))
        # Files in a folder that goes anyway are taken away by names that are not whole paths.
        if changes and str(details[0]).startswith(str(path)):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    if work == "append":
        append_once(path)
    elif work == "compact":
        Store(path).compact()
    else:
        Store(path).expire(NOON + HOUR)
    left = 0
    tell(acknowledged, step)


def append_once(path: Path) -> None:
    with Store(path).append() as new:
        put(new, samples_of(77))
