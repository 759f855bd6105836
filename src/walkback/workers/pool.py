"""A pool of processes whose futures are all done when it has ended, whenever a process of it dies."""

from __future__ import annotations

import errno
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, InvalidStateError, ProcessPoolExecutor, wait
from contextlib import suppress
from typing import Any
from weakref import WeakSet

_BROKEN = "a process ended while the pool was given work"


class Pool(ProcessPoolExecutor):
    """Python up to 3.11 ends a broken pool without a look at the work that is being submitted."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._asked: WeakSet[Future[Any]] = WeakSet()
        self._is_left = False
        """Whether it goes on although nobody waits for its end."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Have something done; BrokenExecutor if a process has died."""
        try:
            future = super().submit(work, *arguments, **options)
        except (OSError, EOFError) as error:
            # It starts a process, which is to inherit what the end of another has closed.
            if isinstance(error, OSError) and error.errno not in {None, errno.EBADF}:
                raise
            raise BrokenExecutor(_BROKEN) from error
        if self._broken:
            # Nobody may have seen this work any more.
            raise BrokenExecutor(_BROKEN)
        self._asked.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Whoever waits for a future that was cancelled or forgotten is notified, if the end of the pool is awaited."""
        self._is_left = self._is_left or not wait
        super().shutdown(wait, cancel_futures=cancel_futures)
        if not self._is_left:
            _finish(self._asked)


def _finish(futures: WeakSet[Future[Any]]) -> None:
    for future in wait(list(futures), timeout=0).not_done:
        with suppress(InvalidStateError):  # somebody may cancel it now
            if future.cancelled():
                future.set_running_or_notify_cancel()
            else:
                future.set_exception(BrokenExecutor(_BROKEN))
