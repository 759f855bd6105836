"""A store of stacks: the samples of many programs in one folder.

store = Store("stacks", create=True)
with store.append(labels={"version": "1.2"}) as new:
    new.recording("perf.data")
store.select(since="1h").top(10)
store.compact()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.columns import NamedColumns
from walkback.store.append import Append
from walkback.store.check import Problem, check
from walkback.store.compact import Replaced, compact, expire
from walkback.store.folder import StoreSnapshot
from walkback.store.known import NamedFile, NamesUpdate, named_files, update_names
from walkback.store.moments import Moment, moment
from walkback.store.naming import Naming
from walkback.store.opening import open_folder
from walkback.store.overview import Overview, overview
from walkback.store.parts import Block
from walkback.store.selection import Choice, Selection, wanted_samples

if TYPE_CHECKING:
    from walkback.workers.executors import LocalWorkers, SharingWorkers


class Store:
    """A folder with the samples of many programs.

    >>> store = walkback.Store("stacks", create=True)
    >>> with store.append(host="here") as new:
    ...     new.recording("perf.data")
    >>> store.select().top(1)
    [HotFunction(name='compute', module='.../hello', own=5, total=5)]
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        """With `create` it is made if it is not there. A path that begins with s3://, gs:// or az:// is in a bucket."""
        self.folder = open_folder(path, create=create)

    def __repr__(self) -> str:
        return f"Store({self.folder.name!r})"

    @property
    def path(self) -> Path:
        """The folder; of a store in a bucket, the one where its files are kept on this machine."""
        return self.folder.path

    def append(self, *, host: str | None = None, labels: Mapping[str, str] | None = None, names: bool = True) -> Append:
        """Something that takes samples; they appear in the store all at once, at the end of a `with`.

        Any number may be at work at the same time. `host` and `labels` are of all samples of it. `names` keeps the
        names of code as well, so that they are known when its files are gone.
        """
        return Append(self.folder, host=host, labels=labels, names=names)

    def snapshot(self, *, since: int | None = None, until: int | None = None) -> StoreSnapshot:
        """The blocks as they are now; they stay while this is held. Times are in nanoseconds since 1970."""
        return StoreSnapshot(self.folder, since=since, until=until)

    def blocks(self, *, since: int | None = None, until: int | None = None) -> tuple[Block, ...]:
        """The blocks as they are now, in the order of hours."""
        with self.snapshot(since=since, until=until) as snapshot:
            return snapshot.blocks

    def select(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        host: Choice = (),
        process: Choice = (),
        labels: Mapping[str, Choice] | None = None,
        naming: Naming | None = None,
        workers: SharingWorkers | None = None,
    ) -> Selection:
        """Some of the samples, to be asked for what was seen in them: from `since`, and before `until`.

        Times are as `moment` takes them. Of several hosts, processes or values of a label, any is fine. `workers` read
        and sum up the samples; without them this process does.
        """
        wanted = wanted_samples(since=since, until=until, host=host, process=process, labels=labels)
        return Selection(self.snapshot, wanted, naming or Naming(), self.folder.name, workers)

    def sql(
        self, query: str, *, since: Moment | None = None, until: Moment | None = None, allow_files: bool = False
    ) -> NamedColumns:
        """The columns of the answer to a query of SQL, over the tables that `walkback.store.sql` lists.

        The query may read files that are not of the store only with `allow_files`.
        """
        from walkback.store.sql import Database

        wanted = wanted_samples(since=since, until=until)
        held = self.snapshot(since=wanted.since, until=wanted.until)
        with held, Database(held, wanted, Naming(), allow_files=allow_files) as database:
            return database.columns(query)

    def overview(self) -> Overview:
        """What it has: hours, hosts, processes and labels."""
        with self.snapshot() as snapshot:
            return overview(snapshot.blocks, snapshot.rollups)

    def names(self) -> list[NamedFile]:
        """Its files with build IDs, and how much of their code has names."""
        return named_files(self.folder)

    def update_names(self, naming: Naming | None = None) -> NamesUpdate:
        """Look up names that are missing, with inlined calls unless `naming` has no lines, and keep them."""
        return update_names(self.folder, naming or Naming(lines=True))

    def compact(self, *, every: bool = False, workers: LocalWorkers | None = None) -> Replaced:
        """Make the blocks of each hour one; with `every` also write those again that are the only one of theirs.

        `workers` do hours, and then days and months, side by side; without them this process does.
        """
        return compact(self.folder, every=every, workers=workers)

    def expire(self, before: Moment) -> Replaced:
        """Let all hours go that ended before a time."""
        return expire(self.folder, moment(before))

    def check(self, *, workers: LocalWorkers | None = None) -> list[Problem]:
        """All that is wrong with its files; every block is read, several at a time if there are workers."""
        return list(check(self.folder, workers))
