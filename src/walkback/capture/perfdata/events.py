"""What was recorded: the events, and how the records of each are laid out."""

from __future__ import annotations

import struct

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I32, I64, U64
from walkback.base.dataclass import dataclass
from walkback.capture.perfdata import layout

SOFTWARE = (
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
)
HARDWARE = (
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
)
_IDS = (layout.SAMPLE_IDENTIFIER, layout.SAMPLE_ID)


@dataclass(slots=True)
class Event:
    """One event that was recorded, out of its `perf_event_attr`."""

    name: str
    sample_type: int
    read_format: int
    branch_sample_type: int
    period: int
    """The period of all its samples, where they do not say it; 1 where it was a frequency."""
    regs_user: int
    """`sample_regs_user`: the registers that its samples have."""
    sample_id_all: bool
    inherit: bool = False
    """Whether threads that its thread starts are counted as well, each by itself."""
    is_monotonic: bool = False
    """Whether its times are those of CLOCK_MONOTONIC."""

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """What the layout of its samples depends on."""
        return self.sample_type, self.read_format, self.branch_sample_type, self.period, self.regs_user

    def _before(self, field: int) -> int:
        """How many fields samples have before this one."""
        fields = layout.SAMPLE_FIELDS
        return sum(1 for before in fields[: fields.index(field)] if self.sample_type & before)

    def _from(self, field: int) -> int:
        """How many fields other records have from this one on."""
        fields = layout.SAMPLE_ID_FIELDS
        return sum(1 for behind in fields[fields.index(field) :] if self.sample_type & behind)

    @property
    def time_at(self) -> int:
        """Where samples have their time, in words from the start; 0 for nowhere."""
        return 1 + self._before(layout.SAMPLE_TIME) if self.sample_type & layout.SAMPLE_TIME else 0

    @property
    def time_back(self) -> int:
        """Where other records have their time, in words from the end; 0 for nowhere."""
        has = self.sample_id_all and self.sample_type & layout.SAMPLE_TIME
        return self._from(layout.SAMPLE_TIME) if has else 0

    @property
    def id_at(self) -> int:
        """Where samples have the ID that names their event, in words from the start; 0 for nowhere."""
        return 1 + self._before(self._id_field) if self._id_field else 0

    @property
    def id_back(self) -> int:
        """Where other records have that ID, in words from the end; 0 for nowhere."""
        return self._from(self._id_field) if self._id_field and self.sample_id_all else 0

    @property
    def _id_field(self) -> int:
        """The field that has the ID; 0 for none."""
        return next((field for field in _IDS if self.sample_type & field), 0)


def read_attr(contents: memoryview, byteorder: ByteOrder) -> Event:
    """The event of a `perf_event_attr` of any version; the caller has checked that it has the smallest size."""
    whole = bytes(contents[: layout.ATTR_LARGEST]).ljust(layout.ATTR_LARGEST, b"\0")
    prefix = "<" if byteorder == "little" else ">"
    kind, _, config, period, sample_type, read_format, flags = struct.unpack_from(prefix + "IIQQQQQ", whole)
    branches, registers, _, clock = struct.unpack_from(prefix + "QQIi", whole, 72)

    def flag(bit: int) -> bool:
        return bool(flags >> (bit if byteorder == "little" else 63 - bit) & 1)

    return Event(
        name=_name(kind, config),
        sample_type=sample_type,
        read_format=read_format,
        branch_sample_type=branches,
        period=1 if flag(layout.ATTR_FREQ) else period,
        regs_user=registers,
        sample_id_all=flag(layout.ATTR_SAMPLE_ID_ALL),
        inherit=flag(layout.ATTR_INHERIT),
        is_monotonic=flag(layout.ATTR_USE_CLOCKID) and clock == layout.CLOCK_MONOTONIC,
    )


def _name(kind: int, config: int) -> str:
    """A name for an event whose own the recording does not have."""
    names = {0: HARDWARE, 1: SOFTWARE}.get(kind, ())
    return names[config] if config < len(names) else f"type {kind} config {config:#x}"


class Events:
    """All events of a recording, and which ID belongs to which."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._ids: list[U64] = []
        self._numbers: list[int] = []
        self._lookup: tuple[U64, I32] | None = None
        self._times: tuple[I64, I64] | None = None

    def add(self, event: Event, ids: U64) -> None:
        """Another event, with the IDs that its records carry."""
        self._ids.append(ids)
        self._numbers.append(len(self.all))
        self.all.append(event)
        self._lookup = self._times = None

    @property
    def lookup(self) -> tuple[U64, I32]:
        """All IDs, rising, and the number of the event of each; nothing where there is only one event."""
        if len(self.all) < 2:  # then all records are of the one
            return np.empty(0, np.uint64), np.empty(0, np.int32)
        return self.counters

    @property
    def counters(self) -> tuple[U64, I32]:
        """All IDs, rising, and the number of the event of each."""
        if self._lookup is None:
            ids = np.concatenate(self._ids)
            numbers = np.repeat(np.array(self._numbers, np.int32), [len(some) for some in self._ids])
            order = np.argsort(ids, kind="stable")
            self._lookup = ids[order], numbers[order]
        return self._lookup

    @property
    def times(self) -> tuple[I64, I64]:
        """`time_at` and `time_back` of each event."""
        if self._times is None:
            self._times = (
                np.array([event.time_at for event in self.all], np.int64),
                np.array([event.time_back for event in self.all], np.int64),
            )
        return self._times

    def by_id(self, number: int) -> Event | None:
        """The event that has an ID."""
        if len(self.all) == 1:
            return self.all[0] if (self._ids[0] == np.uint64(number)).any() else None
        ids, numbers = self.lookup
        place = int(np.searchsorted(ids, np.uint64(number)))
        return self.all[numbers[place]] if place < len(ids) and ids[place] == number else None
