"""The header of a perf.data file: its events, and the features that say where and how it was recorded."""

from __future__ import annotations

import struct
from dataclasses import field

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.capture.perfdata import layout
from walkback.capture.perfdata.events import Event, Events, read_attr
from walkback.elf import OpenFile

_MACHINES = {
    "x86_64": AMD64,
    "amd64": AMD64,
    "aarch64": AARCH64,
    "aarch64_be": AARCH64,
    "arm64": AARCH64,
    "s390x": S390X,
}
_MOST_EVENTS = 4096
_MOST_TROUBLES = 100
_LONGEST_NAME = 4096
_BUILD_ID_RECORD = 36
"""Bytes before the file name."""


@dataclass
class RecordingHeader:
    """What stands in the header, or in a pipe's records that take its place."""

    name: str
    """Of the recording, for errors."""
    byteorder: ByteOrder
    events: Events = field(default_factory=Events)
    build_ids: dict[str, bytes] = field(default_factory=dict)
    hostname: str | None = None
    os_release: str | None = None
    arch: str | None = None
    clock: tuple[int, int] | None = None
    """One moment: in nanoseconds since 1970, and as the times of samples count."""
    begin: int = 0
    """Where the records begin."""
    end: int = 0
    """Where they end."""
    written: int | None = None
    """When the file was last written, in nanoseconds since 1970; None of what comes through a pipe."""
    is_parted: bool = False
    """Whether the records are in several files of a folder."""
    troubles: list[str] = field(default_factory=list)

    @property
    def machine(self) -> Machine | None:
        """The machine that it was recorded on, if the header says it."""
        if self.arch is not None:
            if self.arch not in _MACHINES:
                raise UnreadableError(f"recorded on {self.arch}, which is not supported", file=self.name)
            return _MACHINES[self.arch]
        # Each machine's perf asks for all its registers, and their number differs.
        masks = {event.regs_user for event in self.events.all if event.regs_user}
        for mask in masks:
            found = {33: AARCH64, 34: S390X, 24: AMD64}.get(mask.bit_length())
            if found is not None:
                return found
        return None

    @property
    def prefix(self) -> str:
        """The byte order for `struct`."""
        return "<" if self.byteorder == "little" else ">"

    # Parts

    def add_attr(self, contents: memoryview, ids: bytes | memoryview, place: int) -> None:
        """An event: its `perf_event_attr` and the IDs of it."""
        if len(contents) < layout.ATTR_SMALLEST:
            raise self.error(f"the attributes of an event have {len(contents)} bytes", place)
        if len(self.events.all) >= _MOST_EVENTS:
            raise self.error(f"there are more than {_MOST_EVENTS} events", place)
        numbers = np.frombuffer(ids, np.dtype(self.prefix + "u8")).astype(np.uint64)
        self.events.add(read_attr(contents, self.byteorder), numbers)

    def add_feature(self, feature: int, contents: memoryview) -> None:
        """One feature section; those that nothing here needs are passed over."""
        if feature == layout.FEATURE_BUILD_ID:
            self._add_build_ids(contents)
        elif feature == layout.FEATURE_HOSTNAME:
            self.hostname = self._string(contents, 0)[0]
        elif feature == layout.FEATURE_OSRELEASE:
            self.os_release = self._string(contents, 0)[0]
        elif feature == layout.FEATURE_ARCH:
            self.arch = self._string(contents, 0)[0]
        elif feature == layout.FEATURE_EVENT_DESC:
            self._add_event_names(contents)
        elif feature == layout.FEATURE_CLOCK_DATA:
            _, _, wall, clock = struct.unpack_from(self.prefix + "IIQQ", contents)
            self.clock = wall, clock
        elif feature == layout.FEATURE_DIR_FORMAT:
            # Version 0 has all records in the file with the header.
            self.is_parted = struct.unpack_from(self.prefix + "Q", contents)[0] != 0

    def _string(self, contents: memoryview, place: int) -> tuple[str, int]:
        """A string with its length before it, and where the next one begins."""
        (length,) = struct.unpack_from(self.prefix + "I", contents, place)
        end = place + 4 + length
        if end > len(contents):
            raise struct.error
        return text_of(contents[place + 4 : end]), end

    def _add_event_names(self, contents: memoryview) -> None:
        count, attr_size = struct.unpack_from(self.prefix + "II", contents)
        place = 8
        for number in range(min(count, _MOST_EVENTS)):
            (ids,) = struct.unpack_from(self.prefix + "I", contents, place + attr_size)
            name, place = self._string(contents, place + attr_size + 4)
            event: Event | None = self.events.all[number] if number < len(self.events.all) else None
            if ids:
                (first,) = struct.unpack_from(self.prefix + "Q", contents, place)
                event = self.events.by_id(first) or event
            if event is not None and name:
                event.name = name
            place += 8 * ids

    def _add_build_ids(self, contents: memoryview) -> None:
        place = 0
        while place + layout.RECORD_HEADER <= len(contents):
            _, misc, size = struct.unpack_from(self.prefix + "IHH", contents, place)
            if size <= _BUILD_ID_RECORD or place + size > len(contents):
                raise struct.error
            self.add_build_id(misc, contents[place : place + size])
            place += size

    def add_build_id(self, misc: int, record: memoryview) -> None:
        """A file's build ID, out of a record that ends with the file's name."""
        if len(record) <= _BUILD_ID_RECORD:
            return
        length = record[32] if misc & layout.MISC_BUILD_ID_SIZE else 20
        # Without a length shorter ones were filled up with zeros.
        build_id = bytes(record[12 : 12 + min(length, 20)])
        if not misc & layout.MISC_BUILD_ID_SIZE and not any(build_id[16:]):
            build_id = build_id[:16]
        if any(build_id):
            self.build_ids[text_of(record[_BUILD_ID_RECORD:])] = build_id

    def update_event(self, record: memoryview) -> None:
        """Take the name of an event from a later record about it."""
        kind, number = struct.unpack_from(self.prefix + "QQ", record, 8)
        event = self.events.by_id(number)
        if kind == layout.EVENT_UPDATE_NAME and event is not None:
            event.name = text_of(record[24:]) or event.name

    def error(self, text: str, place: int) -> UnreadableError:
        """Damage at a place of the recording."""
        return UnreadableError(text, file=self.name, offset=place)


def text_of(contents: memoryview) -> str:
    """A string up to its NUL; file names can be any bytes."""
    return bytes(contents[:_LONGEST_NAME]).split(b"\0", 1)[0].decode(errors="surrogateescape")


def byteorder_of(start: bytes, name: str) -> ByteOrder:
    """The byte order that the first bytes show."""
    if start[:8] == layout.MAGIC:
        return "little"
    if start[:8] == layout.MAGIC[::-1]:
        return "big"
    if start[:8] in {b"PERFFILE", b"ELIFFREP"}:
        raise UnreadableError("this is a perf.data file of the first version, from before 2011", file=name)
    raise UnreadableError("this is not a perf.data file", file=name)


def is_pipe(start: memoryview, byteorder: ByteOrder, name: str) -> bool:
    """Whether this is what perf writes to a pipe; the header's own size shows it."""
    if len(start) < layout.PIPE_HEADER:
        raise UnreadableError("the file ends within its header", file=name)
    return int.from_bytes(start[8:16], byteorder) == layout.PIPE_HEADER


def read_file_header(data: OpenFile, name: str) -> RecordingHeader:
    """The header of a perf.data file of the usual form."""
    header = RecordingHeader(name, byteorder_of(bytes(data[:8]), name))
    if len(data) < layout.FILE_HEADER:
        raise UnreadableError("the file ends within its header", file=name)
    fields = struct.unpack(header.prefix + "QQQQQQQQ", data[8:72])
    size, attr_size, attrs, attrs_size, header.begin, data_size, _, _ = fields
    if size < layout.FILE_HEADER:
        raise header.error(f"a header of {size} bytes", 8)
    # As for ELF headers: 16 bytes are the section with the IDs.
    if attr_size < layout.ATTR_SMALLEST + 16:
        raise header.error(f"attributes of events of {attr_size} bytes", 16)
    if attrs > len(data) or attrs_size > len(data) - attrs:
        raise header.error("the attributes of the events reach beyond the end of the file", 24)
    if header.begin > len(data):
        raise header.error("the records begin beyond the end of the file", 40)
    _read_attrs(header, data, attr_size, attrs, attrs_size)
    header.end = header.begin + data_size
    if data_size == 0:
        header.end = len(data)
        header.troubles.append("perf did not finish this file; its records are read to the end, without build IDs")
    elif header.end > len(data):
        header.end = len(data)
        header.troubles.append(f"the file is cut off: {data_size} bytes of records should begin at {header.begin:#x}")
    else:
        _read_features(header, data)
    return header


def _read_attrs(header: RecordingHeader, data: OpenFile, attr_size: int, attrs: int, attrs_size: int) -> None:
    room = len(data)
    for place in range(attrs, attrs + attrs_size - attr_size + 1, attr_size):
        ids, ids_size = struct.unpack(header.prefix + "QQ", data[place + attr_size - 16 : place + attr_size])
        if ids_size % 8 or ids > len(data) or ids_size > len(data) - ids:
            raise header.error("the IDs of an event reach beyond the end of the file", place + attr_size - 16)
        room -= ids_size
        if room < 0:
            raise header.error("the events have more IDs than the file can hold", place + attr_size - 16)
        header.add_attr(data[place : place + attr_size - 16], data[ids : ids + ids_size], place)
    if not header.events.all:
        raise header.error("the file has no events", 24)


def _read_features(header: RecordingHeader, data: OpenFile) -> None:
    """Each feature whose bit is set has an entry of offset and size behind the records, in the order of the bits."""
    bits = struct.unpack(f"{header.prefix}{layout.FEATURES // 64}Q", data[72 : 72 + layout.FEATURES // 8])
    place = header.end
    for feature in range(layout.FEATURES):
        if not bits[feature // 64] >> feature % 64 & 1:
            continue
        if place + 16 > len(data):
            header.troubles.append(f"the file is cut off at {len(data):#x}, within the table of its features")
            return
        offset, size = struct.unpack(header.prefix + "QQ", data[place : place + 16])
        if offset > len(data) or size > len(data) - offset:
            header.troubles.append(f"feature {feature} reaches beyond the end of the file")
        else:
            read_feature(header, feature, data[offset : offset + size], offset)
        place += 16


def read_feature(header: RecordingHeader, feature: int, contents: memoryview, place: int) -> None:
    """Read a feature, and report it where it is damaged: the samples are there all the same."""
    try:
        header.add_feature(feature, contents)
    except struct.error:
        if len(header.troubles) < _MOST_TROUBLES:
            header.troubles.append(f"feature {feature} at {place:#x} is damaged")
