"""Reads pprof's profile.proto by the field numbers of its definition; knows nothing of walkback."""

from __future__ import annotations

import gzip
from typing import Any

REPEATED = "repeated"
VALUE_TYPE = {1: "type", 2: "unit"}
LABEL = {1: "key", 2: "str", 3: "num", 4: "num_unit"}
LINE = {1: "function_id", 2: "line"}
SAMPLE = {1: ("location_id", "packed"), 2: ("value", "packed"), 3: ("label", LABEL)}
MAPPING = {
    1: "id",
    2: "memory_start",
    3: "memory_limit",
    4: "file_offset",
    5: "filename",
    6: "build_id",
    7: "has_functions",
    8: "has_filenames",
    9: "has_line_numbers",
    10: "has_inline_frames",
}
LOCATION = {1: "id", 2: "mapping_id", 3: "address", 4: ("line", LINE)}
FUNCTION = {1: "id", 2: "name", 3: "system_name", 4: "filename", 5: "start_line"}
PROFILE = {
    1: ("sample_type", VALUE_TYPE),
    2: ("sample", SAMPLE),
    3: ("mapping", MAPPING),
    4: ("location", LOCATION),
    5: ("function", FUNCTION),
    6: ("string_table", "text"),
    9: "time_nanos",
    10: "duration_nanos",
    11: ("period_type", VALUE_TYPE),
    12: "period",
    13: ("comment", "packed"),
}


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            assert value < 2**64
            return value, at


def parse(data: bytes, shape: dict[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {one[0]: [] for one in shape.values() if isinstance(one, tuple)}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        what = shape[key >> 3]
        if isinstance(what, str):
            assert key & 7 == 0
            found[what], at = varint(data, at)
            continue
        assert key & 7 == 2
        size, at = varint(data, at)
        assert at + size <= len(data)
        part = data[at : at + size]
        at += size
        name, kind = what
        if kind == "text":
            found[name].append(part.decode())
        elif kind == "packed":
            place = 0
            while place < len(part):
                value, place = varint(part, place)
                found[name].append(value)
        else:
            found[name].append(parse(part, kind))
    return found


def read(compressed: bytes) -> dict[str, Any]:
    """A profile, with what readers demand of one checked."""
    profile = parse(gzip.decompress(compressed), PROFILE)
    assert profile["string_table"][0] == ""
    for name in ("mapping", "location", "function"):
        ids = [one["id"] for one in profile[name]]
        assert len(set(ids)) == len(ids)
        assert 0 not in ids
        profile[f"{name}_by_id"] = dict(zip(ids, profile[name], strict=True))
    return profile
