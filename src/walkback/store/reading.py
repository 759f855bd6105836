"""Reads one table of many blocks at once, as NumPy columns.

Every column is cast to the type that the layout gives it, so a file with others is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.arrays import I64, Bools, Numbers
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.segments.database import cast_columns, first_unreadable, plain_column, readable, sql_path
from walkback.store import layout
from walkback.store.parts import HasTables, brought

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MISSING = -1
"""Stands for NULL in columns of numbers."""


class BlockTables:
    """The tables of some blocks, or rollups; rows have the number of their block."""

    def __init__(self, connection: DuckDBPyConnection, blocks: Sequence[HasTables], number: int = 0) -> None:
        """The first has this number."""
        self.connection = connection
        self.blocks = blocks
        self._number = number

    def scan(self, table: str) -> str:
        """What stands behind FROM: the rows of a table, with `block` and `row`."""
        columns = cast_columns(layout.EVERY_COLUMN[table])
        files = ", ".join(map(sql_path, brought(self.blocks, table)))
        source = f"read_parquet([{files}], hive_partitioning = false, file_row_number = true)"
        block = f"CAST(file_index + {self._number} AS BIGINT) AS block"
        return f"(SELECT {block}, file_row_number AS row, {columns} FROM {source})"

    def counted_samples(self, rollups: int, times: str) -> str:
        """The same of samples with a `count`, 1 each, and of sums; the first blocks are `rollups`.

        `times` is a condition on samples, which all those of the rollups meet.
        """
        sums = BlockTables(self.connection, self.blocks[:rollups])
        samples = BlockTables(self.connection, self.blocks[rollups:], rollups)
        columns = 'block, stack, source, "end", weight'
        parts = []
        if sums.blocks:
            parts.append(f"SELECT {columns}, count FROM {sums.scan('sums')}")
        if samples.blocks:
            parts.append(f"SELECT {columns}, 1 AS count FROM {samples.scan('samples')} WHERE {times or 'true'}")
        return f"({' UNION ALL '.join(parts)})"

    def ask(self, query: str) -> dict[str, Any]:
        """The columns of an answer; text may be missing in them, numbers may not."""
        try:
            with readable():
                found = self.connection.execute(query).fetchnumpy()
        except UnreadableError as error:
            raise error.within(file=self.first_wrong()) from None
        return {name: plain_column(column, f"a row has no {name}") for name, column in found.items()}

    def first_wrong(self) -> str | None:
        """The first file that is not what it should be, after something could not be read."""
        return first_unreadable(
            (block.file(table), layout.EVERY_COLUMN[table], BlockTables(self.connection, [block]).scan(table))
            for block in self.blocks
            for table in block.tables
        )

    def read(self, table: str, *columns: str) -> BlockColumns:
        """Some columns of a table of all blocks, block after block."""
        query = f"SELECT block, row, {', '.join(columns)} FROM {self.scan(table)}"
        found = self.ask(query)
        block, row = (np.asarray(found.pop(name), np.int64) for name in ("block", "row"))
        place = block << 32 | row
        if (place[1:] <= place[:-1]).any():
            order = np.argsort(place)
            block = block[order]
            found = {name: column[order] for name, column in found.items()}
        first = np.searchsorted(block, np.arange(len(self.blocks) + 1))
        files = [str(block.place(table)) for block in self.blocks]
        return BlockColumns(first.astype(np.int64), list(found.values()), files)


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """Columns of a table of several blocks, one after the other."""

    first: I64
    """Where each block begins; one more than there are blocks."""
    columns: list[Numbers]
    files: Sequence[str]
    """Where the columns of each block are from."""

    def slice(self, block: int) -> slice:
        """The rows of a block."""
        begin, end = self.first[block : block + 2].tolist()
        return slice(begin, end)

    def block(self) -> I64:
        """The block of each row."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def places(self, block: I64, row: Numbers) -> I64:
        """Where rows of blocks are among all; `MISSING` for those that are missing themselves."""
        row = np.asarray(row, np.int64)
        wrong: Bools = (row < MISSING) | (row >= np.diff(self.first)[block])
        if wrong.any():
            message = f"row {int(row[wrong][0])} of this is spoken of, and there is none"
            raise UnreadableError(message, file=self.files[int(block[wrong][0])])
        return np.where(row >= 0, self.first[:-1][block] + row, MISSING)
