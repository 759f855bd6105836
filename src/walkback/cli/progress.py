"""Showing how far a long work is: on a terminal only, and without a thread, so that the work can be forked."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_PAUSE = 0.1
"""Seconds between two pictures of a bar."""


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
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=total, count=0)
        shown_at = 0.0

        def move(position: int, count: int) -> None:
            nonlocal shown_at
            now = time.monotonic()
            bar.update(task, completed=position, count=count, refresh=now > shown_at + _PAUSE)
            if now > shown_at + _PAUSE:
                shown_at = now

        yield move


def fetching() -> Callable[[str, int, int], None] | None:
    """What shows how much of a file has come, on a line of the terminal that is gone when all of it is there."""
    if not sys.stderr.isatty():
        return None

    def show(what: str, count: int, size: int) -> None:
        of = f" of {size / 1e6:.1f}" if size else ""
        line = "" if count == size else f"fetching {what}: {count / 1e6:.1f}{of} MB"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    return show
