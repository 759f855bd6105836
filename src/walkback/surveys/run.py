"""A survey from its beginning to its end: files are found, examined by workers, and what they find is written.

What is written depends on the files alone: not on who did the work, in which order, or how often it broke off. A file
is in what is written with all its rows or not at all, so a survey that was killed goes on where it was.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, MissingError, UnreadableError
from walkback.base.interrupts import first_done, uninterrupted
from walkback.base.locks import locked
from walkback.elf.search import DEBUG_ROOTS
from walkback.identify.names import shown
from walkback.sections.reading import Tables, check_tables
from walkback.surveys import layout
from walkback.surveys.finding import SurveyUnit, Trouble, find_units
from walkback.surveys.folder import SurveyFolder, made
from walkback.surveys.parts import MOST_ROWS, Writer
from walkback.surveys.work import UnitBatch, trouble, work
from walkback.workers.executors import LocalWorkers, Loss, Workers
from walkback.workers.versions import OtherVersionError, own_version

_BATCH_BYTES = 16 << 20
_BATCH_FILES = 64
_TOGETHER = 8
"""Files of equal size may be copies and stay in one batch, which may be this many times as large for it."""
_AHEAD = 2
"""Batches for each worker, so that none waits for the next."""
_WRITTEN_EVERY = 5.0
"""Seconds between parts; in long runs more, so that there are hundreds and not many thousands of parts."""
_SHARE_LOST = 0.02
"""Of the time that a run took, which is lost when it is killed."""
_HIDES = ("missing", "unreadable")
"""Troubles of folders that say nothing about what is in them."""
_DEATHS = 2
"""A file whose worker has died so often, with no other work at hand, is not tried again."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a survey is."""

    files: int
    """Looked through, in this run or before."""
    bytes: int
    all_files: int
    all_bytes: int
    """What there is; while files are still being found, what was found so far."""
    finding: bool
    workers: int | None = None
    """How many there are; with 0 the survey waits for one. None while files are still being found."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a run did."""

    folder: str
    files: int
    """Those on the disk that are ELF files, or archives and packages that may hold some."""
    done: int
    """Those of them that were examined in this run; the others had been before."""


def survey(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    workers: Workers | None = None,
    debug_roots: Sequence[str] = DEBUG_ROOTS,
    verify: bool = False,
    tables: Tables | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Surveyed:
    """Survey all ELF files under these paths into a folder, which is made or, if it is a survey of these, brought up.

    `jobs` processes of this machine do it, or other `workers`, which end with it. With `verify` the tables are also
    proved against the machine code. All tables of a file are read, or with `tables` those that `derive` reads. Raises
    UnreadableError for a folder that cannot be used, and OSError if it cannot be written. Whatever ends it, what was
    done is kept.

    >>> walkback.survey(["hello", "libcalls.a"], "tables", jobs=1)
    Surveyed(folder='tables', files=2, done=2)
    """
    if isinstance(paths, str | bytes | os.PathLike):
        raise ArgumentError("survey takes a list of paths, not one path")
    names = [os.fspath(path) for path in paths]
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError("survey takes paths, and no bytes")
    if tables is not None:
        check_tables(tables)
    place = os.fsdecode(output)
    if "" in {place, *names}:
        raise UnreadableError("the path is empty", file="''")
    found = _found(names)
    asked = _asked(names, debug_roots, verify=verify, tables=tables)
    folder = made(place, asked)
    with locked(folder.path / layout.LOCK, wait=False) as held:
        if not held:
            raise UnreadableError("another survey is at work in this folder", file=str(folder.path))
        _ask(folder, asked)
        folder.clean()
        with Writer(folder) as writer, closing(workers or LocalWorkers(jobs)) as its_workers:
            batch = UnitBatch((), os.getcwd(), tuple(debug_roots), own_version(), verify, tables)
            run = _Run(writer, its_workers, batch, progress)
            run.find(found)
            try:
                run.work()
            except BaseException:
                writer.write()
                raise
            writer.finish(run.paths)
        folder.clean()
    return Surveyed(str(folder.path), run.files, run.files - run.former)


def _found(paths: Sequence[str]) -> Iterator[SurveyUnit | Trouble]:
    """What there is under these paths. If none of them can be looked into that is an error, and at once."""
    if not paths:
        raise UnreadableError("there is no path to survey")
    found = find_units(paths)
    troubles: list[Trouble] = []
    for one in found:
        if isinstance(one, SurveyUnit):
            return chain(troubles, [one], found)
        troubles.append(one)
    if not troubles:
        message = "there is no ELF file, package or archive here, and nothing to survey"
        raise MissingError(message, file=", ".join(map(shown, paths)))
    first = troubles[0]
    raise UnreadableError(first.message, file=first.path)


def _asked(paths: Sequence[str], debug_roots: Sequence[str], *, verify: bool, tables: Tables | None) -> dict[str, Any]:
    """What a survey is of."""
    places = sorted({os.path.abspath(path) for path in paths})
    return {
        "walkback": own_version(),
        "places": places,
        "debug_roots": list(debug_roots),
        "verify": verify,
        "tables": tables,
    }


def _ask(folder: SurveyFolder, asked: dict[str, Any]) -> None:
    """Note what is asked for. Nothing is taken away by a survey of something else."""
    former = folder.asked
    if folder.parts():
        if any(former.get(name) != asked[name] for name in ("walkback", "debug_roots")):
            message = (
                "this survey was made with another walkback or other debug files: use another folder, or remove it"
            )
            raise UnreadableError(message, file=str(folder.path))
        if former.get("verify") != asked["verify"]:
            made_with = "without" if asked["verify"] else "with"
            message = f"this survey was made {made_with} --verify: use another folder, or remove it"
            raise UnreadableError(message, file=str(folder.path))
        if former.get("tables") != asked["tables"]:
            message = "this survey was made with another --source: use another folder, or remove it"
            raise UnreadableError(message, file=str(folder.path))
        left_out = [str(place) for place in former.get("places", ()) if place not in asked["places"]]
        if left_out:
            message = f"this folder has a survey of {left_out[0]}: name that as well, or use another folder"
            raise UnreadableError(message, file=str(folder.path))
    folder.ask(asked)


class _Run:
    def __init__(
        self, writer: Writer, workers: Workers, batch: UnitBatch, progress: Callable[[Progress], None]
    ) -> None:
        self._writer = writer
        self._workers = workers
        self._progress = progress
        self._batch = batch
        self._todo: list[SurveyUnit] = []
        self._waiting: deque[UnitBatch] = deque()
        self._suspects: deque[UnitBatch] = deque()
        """Work during which a worker died: it is tried again with no other work at hand."""
        self._running: dict[Future[list[bytes]], UnitBatch] = {}
        self._alone = False
        """Whether what is running is a suspect."""
        self._deaths: Counter[str] = Counter()
        self._bytes: dict[str, int] = {}
        self.paths: list[str] = []
        """All that rows are about, as these have it."""
        self.files = 0
        self.former = 0
        """Files that had been examined before."""
        self._state = Progress(0, 0, 0, 0, finding=True)

    def find(self, found: Iterable[SurveyUnit | Trouble]) -> None:
        """Go through what there is, and see what of it is to be done."""
        hidden = set()
        for one in found:
            if isinstance(one, SurveyUnit):
                self._add(one)
                continue
            self._add_trouble(one)
            if one.what in _HIDES:
                # As when a disk is not there for once: what had been found there stays.
                hidden.add(one.path.rstrip("/"))
        self.paths += [path for path in self._writer.paths() if _is_below(path, hidden)]
        # The largest first: otherwise one would begin with it when all others have ended.
        self._todo.sort(key=lambda unit: (-unit.bytes, unit.path))
        self._waiting.extend(replace(self._batch, paths=paths) for paths in _batches(self._todo))
        self._state = replace(self._state, finding=False)
        self._progress(self._state)

    def _add_trouble(self, found: Trouble) -> None:
        self.paths.append(found.path)
        if (found.path, found.member, found.what, found.message) not in self._writer.troubles:
            self._writer.add([trouble(found.path, found.what, found.message)])

    def _add(self, unit: SurveyUnit) -> None:
        self.files += 1
        path = shown(unit.path)
        self.paths.append(path)
        known = self._writer.done.get(path) == (unit.bytes, unit.modified)
        if known:
            self.former += 1
        else:
            self._todo.append(unit)
            self._bytes[unit.path] = unit.bytes
        self._advance(unit.bytes if known else 0, known, unit.bytes)

    def _advance(self, size: int, files: int, more: int = 0) -> None:
        state = self._state
        self._state = replace(
            state,
            files=state.files + files,
            bytes=state.bytes + size,
            all_files=self.files,
            all_bytes=state.all_bytes + more,
        )
        self._progress(self._state)

    def work(self) -> None:
        """Have all done that is to be done."""
        begun = written = time.monotonic()
        while self._waiting or self._suspects or self._running:
            self._look_for_workers()
            self._submit()
            for future in first_done(self._running, timeout=1):
                self._take(self._running.pop(future), future)
            now = time.monotonic()
            if now - written > max(_WRITTEN_EVERY, _SHARE_LOST * (now - begun)) or self._writer.rows > MOST_ROWS:
                self._writer.write()
                written = now

    def _look_for_workers(self) -> None:
        workers = self._workers.count()
        if workers != self._state.workers or not workers:
            self._state = replace(self._state, workers=workers)
            self._progress(self._state)

    def _submit(self) -> None:
        """Keep all workers busy; a suspect waits until it is alone."""
        if self._suspects:
            if not self._running:
                self._alone = True
                self._begin(self._suspects.popleft())
            return
        if self._running and self._alone:
            return
        self._alone = False
        most = _AHEAD * (self._state.workers or 1)
        while self._waiting and not self._suspects and len(self._running) < most:
            self._begin(self._waiting.popleft())

    def _begin(self, batch: UnitBatch) -> None:
        try:
            with uninterrupted():
                future = self._workers.executor().submit(work, batch)
        except Exception as error:
            if self._workers.loss(error) is not Loss.WORKER:
                raise
            # It is not at fault, but has to wait like those that may be.
            self._suspects.append(batch)
        else:
            self._running[future] = batch

    def _take(self, batch: UnitBatch, future: Future[list[bytes]]) -> None:
        """What a batch gave; or if it failed, what is to be done about it."""
        try:
            found = future.result()
        except (Exception, CancelledError) as error:
            self._failed(batch, error, self._workers.loss(error))
            return
        self._writer.add(found)
        self._count(batch)

    def _failed(self, batch: UnitBatch, error: BaseException, loss: Loss | None) -> None:
        if loss is Loss.ALL:
            raise UnreadableError("there are no workers any more: the scheduler has ended") from None
        if isinstance(error, OtherVersionError):
            raise UnreadableError(error.message) from None
        died = loss is Loss.WORKER
        if died and not self._alone:
            self._suspects.append(batch)
        elif len(batch.paths) > 1:
            # One of them is at fault, and no other is to suffer for it.
            units = [replace(batch, paths=(path,)) for path in batch.paths]
            (self._suspects if died else self._waiting).extendleft(reversed(units))
        else:
            self._failed_alone(batch, error, died=died)

    def _failed_alone(self, batch: UnitBatch, error: BaseException, *, died: bool) -> None:
        [path] = batch.paths
        self._deaths[path] += died
        if died and self._deaths[path] < _DEATHS:
            self._suspects.appendleft(batch)
            return
        message = f"{type(error).__name__}: {error}"
        what = ("died", "each worker that looked through it died") if died else ("internal", message)
        self._writer.add([trouble(shown(path), *what)])
        self._count(batch)

    def _count(self, batch: UnitBatch) -> None:
        self._advance(sum(self._bytes[path] for path in batch.paths), len(batch.paths))


def _is_below(path: str, folders: Container[str]) -> bool:
    while path := path.rpartition("/")[0]:
        if path in folders:
            return True
    return False


def _batches(units: Sequence[SurveyUnit]) -> Iterator[tuple[str, ...]]:
    """Units of falling size, enough together that asking for them costs little."""
    paths: list[str] = []
    size = last = 0
    for unit in units:
        full = max(size / _BATCH_BYTES, len(paths) / _BATCH_FILES)
        if full >= (_TOGETHER if unit.bytes == last else 1):
            yield tuple(paths)
            paths, size = [], 0
        paths.append(unit.path)
        size, last = size + unit.bytes, unit.bytes
    if paths:
        yield tuple(paths)
