"""What processes do with a store in a bucket, each in one of its own that can be killed at any moment."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

WAYS = multiprocessing.get_context("forkserver")
# Imported once, for all children.
WAYS.set_forkserver_preload(["walkback.store.store", "walkback.store.bucket.folder", "store.bucketworker"])

HOUR = 1795271400 * 10**9
IN_PIECES = """
import sys
from walkback.cli import main
from walkback.store import pieces, sharing
pieces._LEAST, sharing._ROWS_OF_A_BLOCK, sharing._PORTION = 1, 1, 1
main()
"""
"""The command, with workers for what is not worth it."""


def start(work: Callable[..., None], environment: Mapping[str, str], cache: Path, *args: Any) -> ForkServerProcess:
    """A process that does something, with a cache of its own."""
    changed = {name: value for name, value in environment.items() if os.environ.get(name) != value}
    process = WAYS.Process(target=_run, args=(work, changed | {"WALKBACK_CACHE": str(cache)}, args), daemon=True)
    process.start()
    return process


def _run(work: Callable[..., None], environment: Mapping[str, str], args: tuple[Any, ...]) -> None:
    import fsspec.config

    os.environ.update(environment)
    fsspec.config.set_conf_env(fsspec.config.conf)
    work(*args)


def settle(seconds: float) -> None:
    """Take what is replaced for deleted so soon."""
    from walkback.store.bucket import folder

    folder._SETTLED = timedelta(seconds=seconds)  # type: ignore[misc]
    folder._LONGEST = seconds / 2  # type: ignore[misc]


def append_hours(url: str, name: str, hours: list[int]) -> None:
    """Append a sample in each of these hours."""
    from walkback import Store

    with Store(url, create=True).append() as new:
        for hour in hours:
            new.folded([f"all;{name} 1\n".encode()], start=HOUR + hour * 3600 * 10**9)


def append(url: str, names: list[str], acknowledged: Any = None, settled: float = 1000) -> None:
    """Append a sample for each name, and say so of each that is in the store."""
    from walkback import Store, WalkbackError

    settle(settled)
    for name in names:
        try:
            with Store(url, create=True).append() as new:
                new.folded([f"all;{name} 1\n".encode()], start=HOUR)
        except WalkbackError:
            continue
        if acknowledged is not None:
            acknowledged.send(name)


def compact(url: str, until: Any = None, settled: float = 1000, hidden: str = "") -> None:
    """Compact once, or until told to end; lists lack the description that is hidden."""
    from walkback import Store, WalkbackError
    from walkback.store.bucket.folder import BucketFolder

    settle(settled)
    whole = BucketFolder._list
    BucketFolder._list = lambda *args: {k: v for k, v in whole(*args).items() if k != hidden}  # type: ignore[method-assign]
    while True:
        try:
            Store(url).compact(every=not hidden)
        except WalkbackError:
            if until is None:
                raise
        if until is None or until.poll():
            return


def expire(url: str) -> None:
    """Let all go."""
    from walkback import Store

    Store(url).expire("2200-01-01")


def weights(url: str, answers: Any, until: Any = None) -> None:
    """Send the weight of each name, once or until told to end; errors as text."""
    from walkback import Store, WalkbackError

    while True:
        last = until is None or until.poll()
        try:
            found = {one.name: one.own for one in Store(url).select().top()}
            answers.send({name: weight for name, weight in found.items() if weight})
        except WalkbackError as error:
            answers.send(str(error))
        if last:
            return
