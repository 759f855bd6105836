"""Who does the work of verbs that can have it done elsewhere: `--jobs` and `--dask`."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

import click

from walkback.cli.output import complain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.workers.executors import LocalWorkers, SharingWorkers

_PATIENCE = 10.0
"""Seconds without a worker before it says so."""

DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Use the workers of the Dask scheduler at this address, on whatever machines they run.",
)


@contextlib.contextmanager
def working(jobs: int | None, dask: str | None) -> Iterator[SharingWorkers]:
    """Gives the workers that are asked for; they end with this."""
    if jobs is not None and dask is not None:
        message = "--jobs is for this machine, and with --dask the workers are others"
        raise click.UsageError(message)
    with processes(jobs) as here:
        if dask is None:
            yield here
        else:
            with contextlib.closing(_cluster(dask)) as workers:
                yield workers


@contextlib.contextmanager
def processes(jobs: int | None) -> Iterator[LocalWorkers]:
    """Gives processes on this machine, which start when they have work and end with this."""
    from walkback.workers.executors import LocalWorkers

    # A worker that closes its end of a pipe or socket is an error to be dealt with, and not the end of this.
    former = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        with LocalWorkers(jobs) as workers:
            yield workers
    finally:
        signal.signal(signal.SIGPIPE, former)


def _cluster(address: str) -> SharingWorkers:
    import logging

    from walkback.workers.executors import DaskWorkers

    with contextlib.suppress(ImportError):
        import distributed  # noqa: F401 - it sets up its logging when it is imported
    # What happens to workers is said where they are; here it would be drawn over the progress.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in {"distributed", "tornado", "asyncio"}:
            logging.getLogger(name).setLevel(logging.CRITICAL)

    class Missed(DaskWorkers):
        """Says once that there is no worker, and again if that comes back."""

        def __init__(self, address: str) -> None:
            super().__init__(address)
            self._address = address
            self._since: float | None = None
            self._noted = False

        def count(self) -> int:
            found = super().count()
            now = time.monotonic()
            if found:
                self._since, self._noted = None, False
                return found
            self._since = self._since or now
            if now - self._since > _PATIENCE and not self._noted:
                complain(f"waiting for a worker of {self._address}")
                self._noted = True
            return found

    return Missed(address)
