"""A store as tables of SQL, for the questions that no verb asks.

    samples        time, stack, weight, end, host, process, pid, tid, event, labels, block
    stack_frames   stack, depth, frame
    frames         frame, function, module, build_id, address
    blocks         block, segment, hour, samples, stacks, bytes

Numbers of stacks and frames are those of all blocks together, so equal stacks have equal numbers. `depth` is 0 for the
innermost frame. Names are looked up and stacks unfolded when a query speaks of `frames` or `stack_frames`. Only queries
are answered: nothing that could write, and unless it is allowed nothing that reads other files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from walkback.base.columns import NamedColumns
from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.text import one_line, sql_text
from walkback.segments.database import connect, done_apart, lock, object_column, readable
from walkback.segments.queries import answer_columns, checked_query, readable_query, wrong_queries
from walkback.stacks.stacks import END_WORDS, End
from walkback.store.folder import StoreSnapshot
from walkback.store.layout import COLUMNS
from walkback.store.naming import Naming
from walkback.store.parts import Block
from walkback.store.reading import BlockTables
from walkback.store.sums import Wanted, forest

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SOURCE = ", ".join(COLUMNS["sources"])


class Database:
    """The tables over some blocks; the blocks must stay while this is used."""

    def __init__(self, snapshot: StoreSnapshot, wanted: Wanted, naming: Naming, *, allow_files: bool = False) -> None:
        """With `allow_files` a query may read files that are not of the store."""
        self._naming = naming
        self._names = snapshot.names
        self._blocks = blocks = snapshot.blocks
        self._late: dict[str, Callable[[], None]] = {}
        with ExitStack() as opened:
            self._connection = opened.enter_context(connect())
            self._tables = BlockTables(self._connection, blocks)
            self._make_tables(blocks, wanted)
            # No query makes DuckDB log into a file.
            lock(self._connection, None if allow_files else [block.path for block in blocks])
            self._opened = opened.pop_all()

    def _make_tables(self, blocks: Sequence[Block], wanted: Wanted) -> None:
        with readable():
            self._make_blocks()
            if blocks:
                self._make_samples(wanted)
                self._late = {"stack_frames": self._make_stack_frames, "frames": self._make_frames}
            else:
                self._make_nothing()
            self._connection.execute("SET TimeZone = 'UTC'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def ask(self, query: str) -> DuckDBPyConnection:
        """The answer to one query, as DuckDB gives it, to be read before the next.

        No two columns have the same name, and times with a time zone are those of UTC. Times of samples are text, which
        keeps their nanoseconds.
        """
        with self._answering():
            asked = readable_query(self._connection, self._checked(query), times_as_text=True)
            return done_apart(self._connection, lambda: self._connection.execute(asked))

    def columns(self, query: str) -> NamedColumns:
        """The columns of the answer to one query."""
        with readable(), self._answering():
            return answer_columns(self._connection, readable_query(self._connection, self._checked(query)))

    def _checked(self, query: str) -> str:
        query = checked_query(self._connection, query)
        self._make_late(query)
        return query

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """A wrong query is an ArgumentError, and a file that cannot be read an UnreadableError with its name."""
        import duckdb

        try:
            with wrong_queries():
                yield
        except duckdb.PermissionException:
            message = "the query reads files that are not of the store, which needs --allow-files (allow_files=True)"
            raise ArgumentError(message) from None
        except duckdb.OutOfMemoryException as error:
            raise UnreadableError(one_line(error)) from None
        except duckdb.Error as error:
            # What is wrong may be a file, and not what was asked.
            wrong = self._tables.first_wrong()
            if wrong is None and not isinstance(error, duckdb.IOException):
                raise ArgumentError(one_line(error)) from None
            raise UnreadableError(one_line(error), file=wrong) from None

    @staticmethod
    def rows(answer: DuckDBPyConnection, many: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of an answer, `many` at once; at least one list."""
        with readable():
            rows = None
            while rows is None or len(rows) == many:
                rows = done_apart(answer, lambda: answer.fetchmany(many))
                yield rows

    def _register(self, name: str, columns: dict[str, Any], query: str) -> None:
        """A view of columns."""
        self._connection.register(f"{name}_columns", columns)
        self._connection.execute(f"CREATE VIEW {name} AS {query.format(f'{name}_columns')}")

    def _make_blocks(self) -> None:
        blocks = self._blocks
        columns = {
            "block": np.arange(len(blocks)),
            "segment": object_column([block.segment for block in blocks]),
            "hour": object_column([block.hour for block in blocks]),
            "samples": np.array([block.counts.samples for block in blocks], np.int64),
            "stacks": np.array([block.counts.stacks for block in blocks], np.int64),
            "bytes": np.array([block.size for block in blocks], np.int64),
        }
        self._register("blocks", columns, f"SELECT * REPLACE ({_as_text('segment', 'hour')}) FROM {{}}")

    def _make_samples(self, wanted: Wanted) -> None:
        self._forest = forest(self._tables, self._names)
        nodes = self._forest.nodes
        block = nodes.block()
        numbers = {"block": block, "row": np.arange(len(block)) - nodes.first[:-1][block], "node": nodes.columns[0]}
        self._connection.register("node_columns", numbers)
        words = ", ".join(sql_text(END_WORDS[one]) for one in End)
        where = " AND ".join(filter(None, (wanted.of_times, wanted.of_sources)))
        self._connection.execute(
            f"""CREATE VIEW samples AS
            SELECT "time", n.node AS stack, weight, [{words}]["end" + 1] AS "end", {_SOURCE}, s.block AS block
            FROM {self._tables.scan("samples")} s
            JOIN {self._tables.scan("sources")} o ON o.block = s.block AND o.row = s.source
            LEFT JOIN node_columns n ON n.block = s.block AND n.row = s.stack
            {f"WHERE {where}" if where else ""}"""
        )

    def _make_nothing(self) -> None:
        """A store without blocks has tables without rows."""
        source = ", ".join(f"NULL::{kind} AS {name}" for name, kind in COLUMNS["sources"].items())
        for name, columns in (
            ("samples", f"now()::TIMESTAMP_NS AS time, 0 AS stack, 0 AS weight, '' AS end, {source}, 0 AS block"),
            ("stack_frames", "0 AS stack, 0 AS depth, 0 AS frame"),
            ("frames", "0 AS frame, '' AS function, '' AS module, '' AS build_id, 0 AS address"),
        ):
            self._connection.execute(f"CREATE VIEW {name} AS SELECT {columns} WHERE false")

    def _make_late(self, query: str) -> None:
        """The tables that take time to make, if a query speaks of them; spoken of in vain they only cost that time."""
        for name in [name for name in self._late if re.search(rf"\b{name}\b", query, re.IGNORECASE)]:
            self._late.pop(name)()

    def _make_stack_frames(self) -> None:
        found = self._connection.execute("SELECT DISTINCT stack FROM samples WHERE stack IS NOT NULL ORDER BY stack")
        stacks = np.asarray(found.fetchnumpy()["stack"], np.int64)
        first, frames = self._forest.tree.stacks(stacks)
        sizes = np.diff(first)
        depth = np.arange(len(frames)) - np.repeat(first[:-1], sizes)
        columns = {"stack": np.repeat(stacks, sizes), "depth": depth, "frame": frames}
        self._register("stack_frames", columns, "SELECT * FROM {}")

    def _make_frames(self) -> None:
        stored = self._forest.frames
        named, _ = self._naming.named(stored, np.arange(len(stored)))
        build_ids = [stored.modules[number][0] if number >= 0 else None for number in stored.module.tolist()]
        columns = {
            "frame": np.arange(len(stored)),
            "function": object_column(named.symbol),
            "module": object_column(named.module),
            "build_id": object_column(build_ids),
            "address": stored.address,
        }
        self._register("frames", columns, f"SELECT * REPLACE ({_as_text('function', 'module', 'build_id')}) FROM {{}}")


def _as_text(*names: str) -> str:
    """Columns that are text even where nothing in them says so."""
    return ", ".join(f"{name}::VARCHAR AS {name}" for name in names)
