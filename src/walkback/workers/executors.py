"""Processes on this machine, or the workers of a Dask cluster.

Both are executors of `concurrent.futures`. What differs is how they say that a worker died, and that they are started
again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar

from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.interrupts import result
from walkback.base.text import one_line
from walkback.base.threads import available_processors, share_processors

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from walkback.workers.pool import Pool

T = TypeVar("T")
P = ParamSpec("P")
_PRELOADED = ["walkback.surveys.work", "walkback.store.pieces", "walkback.store.compact", "walkback.store.check"]
"""Modules with work; each process has them when it starts."""
_COUNTED_EVERY = 2.0
"""Seconds between questions how many workers of a cluster there are."""
_LOST_AGAIN = 0.1
"""Seconds between looks at whether a lost result is there again."""
_SAFE_PATH = "PYTHONSAFEPATH"
_STARTS = 3
"""Times that processes are started in vain, as when somebody kills each at once."""


class Loss(Enum):
    """Why work has no result, although nothing is wrong with the work."""

    WORKER = auto()
    """A worker ended before its work did."""
    ALL = auto()
    """There are no workers to be had any more."""


class StartError(UnreadableError):
    """No processes can be started here."""


class Workers(Protocol):
    """Who does the work."""

    def executor(self) -> Executor:
        """One that takes work; another one if the former broke."""

    def count(self) -> int:
        """How many work at once, as things are; if there are none, work waits for one."""

    def loss(self, error: BaseException) -> Loss | None:
        """What was lost, if that is what an error of some work says."""

    def close(self) -> None:
        """Let them end; work that waits is not done."""


class SharingWorkers(Workers, Protocol):
    """Workers who can go on with what others of them found."""

    are_here: bool
    """Whether they are on this machine."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have something done; the future gives what others can get as an argument, and `value` makes a value of."""

    def value(self, found: Any) -> Any:
        """What a future of `submit` stands for."""


class _Closing:
    """Workers that end with a `with`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class LocalWorkers(_Closing):
    """Processes on this machine.

    >>> walkback.survey(["hello"], "tables", workers=walkback.workers.LocalWorkers(1)).files
    1
    """

    are_here = True

    def __init__(self, jobs: int | None = None) -> None:
        """As many as there are processors for this process, if nothing else is said."""
        if jobs is not None and jobs < 1:
            raise ArgumentError(f"at least one process does the work, not {jobs}")
        self._jobs = jobs or available_processors()
        self._pool: Pool | None = None
        self._alive: list[Connection] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        """What they have in files for a while."""

    def __repr__(self) -> str:
        return f"LocalWorkers({self._jobs})"

    def executor(self) -> Executor:
        """A pool; a new one if a process of the former has died."""
        if self._pool is None:
            self._pool = self._started()
        return self._pool

    def _started(self) -> Pool:
        for _ in range(_STARTS):
            try:
                self._pool = self._new()
                result(self._pool.submit(os.getpid))
            except (BrokenExecutor, OSError, EOFError) as error:
                self.close()
                cause = error.__cause__ or error
                if isinstance(cause, (OSError, EOFError)):
                    reason = getattr(cause, "strerror", None) or one_line(cause)
                    raise StartError(f"no processes can be started: {reason}") from None
            else:
                return self._pool
        message = 'no processes can be started; a script that asks for it does so under if __name__ == "__main__":'
        raise StartError(message)

    def _new(self) -> Pool:
        # These take long, and not all who ask for workers have work for them.
        import multiprocessing

        from walkback.workers.pool import Pool

        # Processes that are forked from this one would have what its threads were doing.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        _start_server()
        self._alive = list(context.Pipe(duplex=False))
        # They end without cleaning up.
        self._folder = tempfile.TemporaryDirectory(prefix="walkback-", ignore_cleanup_errors=True)
        return Pool(self._jobs, context, _begin, (self._alive[0], self._jobs, self._folder.name))

    def count(self) -> int:
        """As many as were asked for."""
        return self._jobs

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have something done; the future gives its value."""
        return self.executor().submit(work, *arguments)

    def value(self, found: Any) -> Any:
        """The same."""
        return found

    def loss(self, error: BaseException) -> Loss | None:
        """The whole pool breaks if one process dies, and what it had not begun is cancelled."""
        if not isinstance(error, (BrokenExecutor, CancelledError)):
            return None
        self.close()
        return Loss.WORKER

    def close(self) -> None:
        """The processes end at once, as they do if this one is killed."""
        for end in self._alive:
            end.close()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _start_server() -> None:
    """Start what forks the processes, with what these inherit."""
    from multiprocessing import forkserver, resource_tracker

    former = os.environ.get(_SAFE_PATH)
    # A folder that is surveyed may have anything in it, also a signal.so; if it is the working folder, Python would
    # import that.
    os.environ[_SAFE_PATH] = "1"
    try:
        # Starting the tracker ends a block of interrupts, so it comes first.
        resource_tracker.ensure_running()
        # While the server imports what it needs, an interrupt would make it complain.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        if former is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = former


def _begin(alive: Connection, processes: int, folder: str) -> None:
    """In each process: an interrupt is for the one who started it, and without that one there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of another server that is running already
    share_processors(processes)
    tempfile.tempdir = folder
    threading.Thread(target=_end_after, args=(alive,), daemon=True).start()


def _end_after(alive: Connection) -> None:
    """End when nobody has the other end of a pipe any more."""
    alive.poll(None)
    os._exit(1)


class DaskWorkers(_Closing):
    """The workers of a Dask cluster, which must have walkback and see the files under the same paths.

    >>> walkback.workers.DaskWorkers("tcp://nobody:8786", timeout=0.1)
    Traceback (most recent call last):
    ...
    walkback.UnreadableError: tcp://nobody:8786: no scheduler of Dask answers: Timed out trying to ...
    """

    are_here = False

    def __init__(self, address: str, *, timeout: float = 10) -> None:
        """`address` is that of the scheduler, as `tcp://host:8786`."""
        try:
            import distributed
        except ImportError:
            raise UnreadableError("Dask is not installed here: pip install 'walkback[dask]'") from None
        kind: Any = distributed.Client  # it has no types
        self._client = kind.__new__(kind)
        try:
            kind.__init__(self._client, address, timeout=timeout, set_as_default=False)
        except Exception as error:  # what answers may be anything
            self._client.status = "closed"  # else it waits for that when it is let go of
            raise UnreadableError(f"no scheduler of Dask answers: {one_line(error)}", file=address or "''") from None
        self._threads, self._counted = 0, -_COUNTED_EVERY
        self._executor = _InLoop(self._client)

    def executor(self) -> Executor:
        """Always the same."""
        return self._executor

    def count(self) -> int:
        """The threads of the cluster now, or when the scheduler last answered."""
        now = time.monotonic()
        if now > self._counted + _COUNTED_EVERY:
            self._counted = now
            # If nobody answers, all work is about to be cancelled.
            with contextlib.suppress(OSError):
                self._threads = sum(self._client.nthreads().values())
        return self._threads

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have something done; what comes of it stays with the workers, and is made again if its worker is lost."""
        there = _in_loop(self._client, self._client.submit, work, *arguments, pure=False)
        loop, found = self._client.loop, Future[Any]()

        def pass_on(_: object) -> None:
            if found.done():
                there.cancel()
            elif there.status == "finished":
                found.set_result(there)
            elif there.status == "lost":
                # With the worker that had it; the scheduler has it done again.
                loop.add_callback(loop.call_later, _LOST_AGAIN, there.add_done_callback, pass_on)
            else:
                found.set_exception(there.exception() if there.status == "error" else CancelledError())

        found.add_done_callback(lambda _: found.cancelled() and there.cancel())
        there.add_done_callback(pass_on)
        return found

    def value(self, found: Any) -> Any:
        """What a worker has."""
        return found.result()

    def loss(self, error: BaseException) -> Loss | None:
        """Dask tries work again whose worker died, and gives up after some times. When it ends, it cancels all work."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return Loss.WORKER
        return Loss.ALL if isinstance(error, (CancelledError, CommClosedError)) else None

    def close(self) -> None:
        """Without waiting; work that was not begun is not done."""
        with contextlib.suppress(OSError, TimeoutError):
            self._executor.shutdown(wait=False)
            self._client.close()


class _InLoop(Executor):
    """Takes work in the thread of a client's loop."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor: Executor = client.get_executor(pure=False)

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        future: Future[T] = _in_loop(self._client, self._executor.submit, work, *arguments, **named)
        return future

    def shutdown(self, wait: bool = True, **_: Any) -> None:
        self._executor.shutdown(wait)


def _in_loop(client: Any, submit: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Submit something where a client that loses its scheduler looks through all that was submitted."""

    async def submitted() -> Any:
        return submit(*arguments, **named)

    return client.sync(submitted)
