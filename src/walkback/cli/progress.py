"""Showing how far a long work is: on a terminal only, and without a thread, so that the work can be forked."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PAUSE = 0.1
"""Seconds between two pictures of a bar."""
_SHOWN: list[tuple[int, Progress]] = []
"""The bars that are shown, each with the process that shows it."""


@contextlib.contextmanager
def progress(what: str, total: int | None, things: str, *, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; gives the function that moves it to a position of `total`, with a count of `things`."""
    if not shown or not sys.stderr.isatty():
        yield lambda _position, _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        *(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()),
        *(TextColumn("{task.fields[count]:,} " + things), TimeRemainingColumn()),
    )
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task(what, total=total, count=0)
        following = 0.0

        def move(position: int, count: int) -> None:
            nonlocal following
            now = time.monotonic()
            is_due = now >= following
            bar.update(task, completed=position, count=count, refresh=is_due)
            if is_due:
                following = now + _PAUSE

        _SHOWN.append((os.getpid(), bar))
        try:
            yield move
        finally:
            _SHOWN.pop()


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Take the bar of this process away while something else is written to the terminal."""
    bars = [bar for pid, bar in _SHOWN if pid == os.getpid()]
    for bar in bars:
        bar.stop()
    try:
        yield
    finally:
        for bar in bars:
            bar.start()


def fetching() -> Callable[[str, int, int], None] | None:
    """What shows how much of a file has come, on a line of the terminal that is gone when all of it is there."""
    if not sys.stderr.isatty():
        return None

    def show(what: str, count: int, size: int) -> None:
        of = f" of {size / 1e6:.1f}" if size else ""
        line = "" if count == size else f"fetching {what}: {count / 1e6:.1f}{of} MB"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    return show
