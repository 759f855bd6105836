"""What a store has, without reading its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.segments.database import connect
from walkback.store.parts import Block, Rollup
from walkback.store.reading import BlockTables


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of a store."""

    hour: str
    """Its beginning, in UTC."""
    blocks: int
    """The number of blocks."""
    samples: int
    """The number of samples."""
    stacks: int
    """The number of stacks, distinct in their block; compacted, an hour has one block."""
    bytes: int
    """The size of the blocks."""


@dataclass(frozen=True, slots=True, repr=False)
class Overview(OneLine):
    """What there is."""

    hours: Sequence[Hour]
    """The hours."""
    hosts: Sequence[str]
    """The hosts."""
    processes: Sequence[str]
    """The processes."""
    labels: Mapping[str, Sequence[str]]
    """The values of each label."""
    rollups: int = 0
    """The size of the sums of days and months."""

    @property
    def samples(self) -> int:
        """Of all hours."""
        return sum(hour.samples for hour in self.hours)

    @property
    def stacks(self) -> int:
        """Of all hours; what is in several hours counts in each."""
        return sum(hour.stacks for hour in self.hours)

    @property
    def bytes(self) -> int:
        """Of all hours."""
        return sum(hour.bytes for hour in self.hours)


def overview(blocks: Sequence[Block], rollups: Sequence[Rollup] = ()) -> Overview:
    """What some blocks and rollups have."""
    hours: dict[str, list[Block]] = {}
    for block in blocks:
        hours.setdefault(block.hour, []).append(block)
    summed = [
        Hour(
            hour,
            len(its),
            sum(block.counts.samples for block in its),
            sum(block.counts.stacks for block in its),
            sum(block.size for block in its),
        )
        for hour, its in hours.items()
    ]
    if not blocks:
        return Overview([], [], [], {})
    with connect() as connection:
        tables = BlockTables(connection, blocks)
        scan = tables.scan("sources")
        hosts, processes = (
            tables.ask(f"SELECT DISTINCT {name} AS found FROM {scan} WHERE {name} IS NOT NULL ORDER BY 1")["found"]
            for name in ("host", "process")
        )
        entries = f"SELECT unnest(map_entries(labels)) AS entry FROM {scan}"
        found = tables.ask(f"SELECT DISTINCT entry.key AS key, entry.value AS value FROM ({entries}) ORDER BY 1, 2")
    labels: dict[str, list[str]] = {}
    for name, value in zip(found["key"].tolist(), found["value"].tolist(), strict=True):
        labels.setdefault(name, []).append(value)
    size = sum(rollup.size for rollup in rollups)
    return Overview(summed, hosts.tolist(), processes.tolist(), labels, size)
