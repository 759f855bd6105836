"""How much room the columns of a store take."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

from store.made import NOON
from walkback.store.builder import SampleOrigin
from walkback.store.store import Store


def test_times_that_hosts_have_in_common_are_written_as_differences(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    times = np.repeat(NOON + np.arange(48_000) * 1_000_000, 6)
    with store.append() as new:
        source = new.builder.sources([SampleOrigin()])
        none = np.full(len(times), -1)
        new.builder.add(times, none, np.ones(len(times), np.int64), np.repeat(source, len(times)), none + 1)
    (block,) = store.blocks()
    rows = duckdb.execute(
        "SELECT encodings, total_compressed_size FROM parquet_metadata(?) WHERE path_in_schema = 'time'",
        [str(block.file("samples"))],
    ).fetchall()
    assert [encoding for encoding, _ in rows] == ["DELTA_BINARY_PACKED"]
    assert rows[0][1] < len(times) / 10
