"""Showing how far a long work is: on a terminal only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, count=0)
        yield lambda position, count: bar.update(task, completed=position, count=count)
