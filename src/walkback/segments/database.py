"""DuckDB as it is used here: a database in memory that reads and writes Parquet files, and nothing from elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from walkback.base.arrays import Numbers
from walkback.base.errors import UnreadableError
from walkback.base.interrupts import result, uninterrupted
from walkback.base.memory import memory
from walkback.base.text import one_line, sql_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
_PREFIX = "walkback-"
_OF_MEMORY = 0.8
"""What DuckDB takes of a machine that it has alone."""


def shared_settings(processes: int) -> dict[str, str]:
    """Settings of DuckDB in one of several processes, which does not have the machine alone."""
    sharing = min(max(processes, 1), os.cpu_count() or 1)
    return {"threads": "1", "memory_limit": f"{int(_OF_MEMORY * memory() / sharing)}B"}


def opened(temporary: str, **more: str) -> DuckDBPyConnection:
    """A database in memory that loads nothing from elsewhere; what is too large for memory goes to a folder of its own.

    `more` are other settings of DuckDB. Before version 1.5, two processes with one folder overwrite each other's files.
    """
    import duckdb  # takes long, and whoever asks nothing does not need it

    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # Otherwise a query could mean a variable of whoever has called.
        "python_enable_replacements": "false",
        "temp_directory": temporary,
    }
    connection = duckdb.connect(config=settings | more)
    # It would stand in what is printed.
    connection.execute("SET enable_progress_bar = false")
    return connection


@contextlib.contextmanager
def connect(within: Path | None = None, /, **more: str) -> Iterator[DuckDBPyConnection]:
    """The same, for as long as this is held; nobody else can read what it puts into its folder.

    That is in the system's folder for temporary files, or in another one.
    """
    with contextlib.ExitStack() as held:
        try:
            temporary = held.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=within))
        except OSError:  # as on a full disk, which only who needs the folder has to mind
            temporary = os.path.join(within or tempfile.gettempdir(), f"{_PREFIX}{os.urandom(8).hex()}")
        yield held.enter_context(opened(temporary, **more))


class Reopened:
    """A database that is kept until something in it goes wrong: to open one takes as long as to read ten tables.

    A damaged file can leave DuckDB in a state in which it reads no other either.
    """

    def __init__(self, within: Path | None = None, /, **settings: str) -> None:
        """As `connect` has them."""
        self._within, self._settings = within, settings
        self._held = contextlib.ExitStack()
        self._connection: DuckDBPyConnection | None = None

    @contextlib.contextmanager
    def use(self) -> Iterator[DuckDBPyConnection]:
        """Gives the database, or a new one after an error."""
        self._connection = self._connection or self._held.enter_context(connect(self._within, **self._settings))
        try:
            yield self._connection
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let it go."""
        self._connection = None
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock(connection: DuckDBPyConnection, folders: Iterable[Path] | None) -> None:
    """Let no query change a setting from here on, nor read a file outside of these folders unless that is None."""
    if folders is not None:
        # These are compared with patterns, and then with the paths that match.
        allowed = [form(path) for path in folders for form in (plain_path, pattern)]
        connection.execute("SET allowed_directories = ?", [allowed])
        connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def done_apart(connection: DuckDBPyConnection, work: Callable[[], T]) -> T:
    """The result of work on a connection, done in a thread of its own: DuckDB does not always look for signals.

    Where a signal ends the program, the work ends first.
    """
    with ThreadPoolExecutor(1) as pool:
        with uninterrupted():
            future = pool.submit(work)
        try:
            return result(future)
        except (KeyboardInterrupt, SystemExit):
            while not future.done():  # a query that has not begun would pass over an interrupt
                connection.interrupt()
                wait([future], timeout=0.05)
            raise


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """What DuckDB says of a file becomes our own error, in one line; the others show the query."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise UnreadableError(one_line(error)) from None
    except UnicodeDecodeError as error:
        # Of a damaged file, or in what DuckDB says of one.
        raise UnreadableError(f"a text is not UTF-8: {error}") from None
    except RuntimeError as error:
        # DuckDB looks for interrupts itself, and makes this of them.
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None


@contextlib.contextmanager
def writable(folder: Path) -> Iterator[None]:
    """What DuckDB says of a file that it cannot write becomes the error that the system gave."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        message = one_line(error)
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS):
            if os.strerror(number) in message:
                raise OSError(number, os.strerror(number), str(folder)) from None
        raise OSError(errno.EIO, message, str(folder)) from None


def first_unreadable(files: Iterable[tuple[Path, Iterable[str], str]]) -> str | None:
    """The first of some files that is not what it should be, after something could not be read.

    Each has its columns, and what stands behind FROM to read it.
    """
    for file, columns, source in files:
        # Nothing that a file's footer could answer.
        hashes = ", ".join(f'bit_xor(hash("{name}"))' for name in columns)
        try:
            # A damaged file can leave DuckDB in a state in which it reads no other either.
            with connect() as db, readable():
                db.execute(f"SELECT {hashes} FROM {source}").fetchall()
        except UnreadableError:
            return str(file)
    return None


def cast_columns(kinds: Mapping[str, str]) -> str:
    """Columns of these types behind SELECT: a file with others cannot be read."""
    return ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in kinds.items())


def plain_column(column: Any, message: str) -> Any:
    """A column of an answer without a mask: text that is missing is None, and for a number the message is raised."""
    if not isinstance(column, np.ma.MaskedArray):
        return column
    missing = np.ma.getmaskarray(column)
    if column.dtype == object:
        texts = column.data.copy()
        texts[missing] = None
        return texts
    if missing.any():
        raise UnreadableError(message)
    return column.data


def object_column(values: Collection[object]) -> Numbers:
    """A column of anything, one value an entry even where values are lists."""
    return np.fromiter(values, object, len(values))


def check_regular(path: Path) -> None:
    """Refuse to open what is no regular file: a pipe would wait, and a device may have no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise UnreadableError("this is not a regular file", file=str(path))


def sql_path(path: Path) -> str:
    """The path of a file as DuckDB reads it, with quotes."""
    with contextlib.suppress(OSError):  # DuckDB reports what is wrong
        check_regular(path)
    return sql_text(pattern(path))


def pattern(path: Path) -> str:
    """A path in which what would be a pattern is spelled out."""
    return re.sub(r"[*?\[]", r"[\g<0>]", plain_path(path))


def plain_path(path: Path) -> str:
    """A path in which DuckDB sees nothing but a path, as it does not in `~/a` and `file:/a`."""
    return str(path.absolute())


def is_text(path: str) -> bool:
    """Whether all bytes of a path are text, which is what DuckDB takes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
