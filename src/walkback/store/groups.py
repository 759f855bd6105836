"""Samples of a store summed up by what they are of: the host, the process, or the value of a label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from walkback.base.dataclass import dataclass
from walkback.segments.database import connect
from walkback.store.parts import Summed
from walkback.store.reading import BlockTables
from walkback.store.sums import Wanted, column_of


@dataclass(frozen=True, slots=True)
class Group:
    """The samples of one host, of one process, or with one value of a label."""

    value: str | None
    """The host, the process, or the value of the label; None for samples without the label."""
    weight: int
    """The weight of the samples."""
    count: int
    """The number of samples."""


def groups(chosen: Summed, wanted: Wanted, by: str, settings: Mapping[str, str] = MappingProxyType({})) -> list[Group]:
    """The samples that are wanted, by "host", by "process", or by a label; the heaviest first.

    `label:host` is the label of that name; `settings` are of DuckDB.
    """
    if not chosen:
        return []
    with connect(**settings) as connection:
        tables = BlockTables(connection, [*chosen.rollups, *chosen.blocks])
        samples = tables.counted_samples(len(chosen.rollups), wanted.of_times)
        picked = f"SELECT block, row AS source, {column_of(by)} AS value FROM {tables.scan('sources')}"
        found = tables.ask(
            f"""SELECT value, CAST(sum(weight) AS VARCHAR) AS weight, CAST(sum(count) AS BIGINT) AS count
            FROM {samples} JOIN ({picked} WHERE {wanted.of_sources or "true"}) USING (block, source)
            GROUP BY value"""
        )
    columns = (found[name].tolist() for name in ("value", "weight", "count"))
    return heaviest_first(Group(value, int(weight), count) for value, weight, count in zip(*columns, strict=True))


def heaviest_first(found: Iterable[Group]) -> list[Group]:
    """Of equal weight those without a value last, as they are in SQL."""
    return sorted(found, key=lambda group: (-group.weight, group.value is None, group.value or ""))
