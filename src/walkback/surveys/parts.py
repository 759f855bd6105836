"""Writing parts of a survey: what was found in a while, and at the end all of it as one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from walkback.base.errors import UnreadableError
from walkback.base.interrupts import result, uninterrupted
from walkback.base.text import sql_text
from walkback.segments.database import connect, opened, plain_path, readable, writable
from walkback.surveys import layout
from walkback.surveys.columns import Columns, selected, texts, unpacked
from walkback.surveys.folder import SurveyFolder, SurveyPart
from walkback.surveys.views import first_wrong, make_views, scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "1GB"
"""What each database takes; more goes to a temporary file beside the parts."""
MOST_ROWS = 1_000_000
"""Of tables that wait to be written."""

_PARQUET = "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, COMPRESSION_LEVEL {}"
_QUICK, _SMALL = 1, 9

Stamp = tuple[int, int]
"""The size and the time of change, in nanoseconds, of a file."""


class Writer:
    """Takes what is found, writes it as parts, and knows what there is.

    Nobody else may write while this is used. An interrupt is noticed before or after a step, and never within: the
    database runs in a thread of its own, and interrupts come to the main thread.
    """

    def __init__(self, folder: SurveyFolder) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._db = _connect(folder)
        self.rows = 0
        """How many wait to be written."""
        self.done: dict[str, Stamp] = {}
        """What had been examined, by its path."""
        self.troubles: set[tuple[str, str | None, str, str]] = set()
        """What was wrong with paths that were not examined."""
        self._known: set[str] = set()
        """Contents that some part has, or that wait to be written."""
        for table, columns in layout.COLUMNS.items():
            described = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            self._db.execute(f"CREATE TABLE {table} ({described})")
        self._apart(self._load)

    def _apart(self, step: Callable[..., None], *arguments: Any) -> None:
        """Do a step in the database's thread."""
        with uninterrupted():
            running = self._thread.submit(step, *arguments)
        result(running)

    def _load(self) -> None:
        parts = self._folder.parts()
        if not parts:
            return
        try:
            with readable(), connect(memory_limit=MEMORY) as db:
                contents = db.execute(f"SELECT content FROM {scan('files', parts)}").fetchall()
                self._known = {content for (content,) in contents}
                make_views(db, parts)
                units = db.execute("SELECT path, bytes, modified FROM units").fetchall()
                self.done = {path: (size, modified) for path, size, modified in units}
                names = ", ".join(layout.COLUMNS["troubles"])
                self.troubles = set(db.execute(f"SELECT {names} FROM troubles ANTI JOIN units USING (path)").fetchall())
        except UnreadableError as error:
            raise error.within(file=first_wrong(parts)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self._db.close()

    def paths(self) -> set[str]:
        """The paths that this knew when it began."""
        return self.done.keys() | {path for path, *_ in self.troubles}

    def add(self, pieces: Iterable[bytes]) -> None:
        """Take packed rows, all of them or, if there is an exception, none."""
        self._apart(self._add, pieces)

    def write(self) -> None:
        """Make what waits a part."""
        self._apart(self._write)

    def finish(self, paths: Sequence[str]) -> None:
        """Make all rows about these paths one part, sorted, which replaces all others."""
        self._apart(self._finish, paths)

    def _add(self, pieces: Iterable[bytes]) -> None:
        known: set[str] = set()
        rows = 0
        self._db.begin()
        try:
            for piece in pieces:
                rows += self._insert(unpacked(piece), known)
        except BaseException:
            self._db.rollback()
            raise
        self._db.commit()
        self._known |= known
        self.rows += rows

    def _insert(self, tables: dict[str, Columns], known: set[str]) -> int:
        """The rows of a content that is known are there already; new ones come to `known`."""
        contents = tables["files"]["content"].tolist() if "files" in tables else []
        fresh = [content for content in contents if content not in self._known and content not in known]
        known.update(fresh)
        some = len(fresh) < len(contents)
        for table, columns in tables.items():
            where, values = "", []
            if some and table in layout.KEYED:
                where, values = "WHERE content IN (SELECT unnest(?::VARCHAR[]))", [fresh]
            self._db.register("added", columns)
            self._db.execute(f"INSERT INTO {table} SELECT {selected(table, columns)} FROM added {where}", values)
            self._db.unregister("added")
        return sum(len(columns["content" if "content" in columns else "path"]) for columns in tables.values())

    def _write(self) -> None:
        if not self.rows:
            return
        with self._made(finished=False, replaces=()) as making:
            for table in layout.TABLES:
                _copy(self._db, table, making, _QUICK)
        for table in layout.TABLES:
            self._db.execute(f"TRUNCATE {table}")
        self.rows = 0

    def _finish(self, paths: Sequence[str]) -> None:
        self._write()
        parts = self._folder.parts()
        if len(parts) == 1 and parts[0].finished and self.paths() <= set(paths):
            return
        try:
            with readable(), _connect(self._folder) as db:
                db.register("found", {"path": texts(paths)})
                make_views(db, parts, only="found")
                with self._made(finished=True, replaces=self._folder.all_parts()) as making:
                    for table, order in layout.ORDER.items():
                        _copy(db, f"(FROM {table} ORDER BY {order})", making, _SMALL, table)
        except (UnreadableError, OSError) as error:
            # Of a file that is damaged DuckDB does not say whether it was reading or writing.
            if wrong := first_wrong(parts):
                raise UnreadableError("this part is damaged", file=wrong) from error
            raise

    @contextlib.contextmanager
    def _made(self, *, finished: bool, replaces: Sequence[SurveyPart]) -> Iterator[Path]:
        """The folder of a new part, with what says which it is."""
        number = max((part.number for part in self._folder.all_parts()), default=0) + 1
        described = {"replaces": [part.number for part in replaces], "finished": finished}
        with self._folder.being_made(number) as making:
            yield making
            (making / layout.MANIFEST).write_text(json.dumps(described) + "\n")


def _connect(folder: SurveyFolder) -> DuckDBPyConnection:
    return opened(
        plain_path(folder.path / layout.TEMPORARY),
        memory_limit=MEMORY,
        # Columns of objects are text, whatever is in them.
        pandas_analyze_sample="0",
    )


def _copy(db: DuckDBPyConnection, source: str, folder: Path, level: int, table: str | None = None) -> None:
    file = sql_text(plain_path(folder / f"{table or source}.parquet"))
    with writable(folder):
        db.execute(f"COPY {source} TO {file} ({_PARQUET.format(level)})")
