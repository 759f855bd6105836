"""pprof's `profile.proto`, compressed with gzip.

Field numbers are those of the message definitions that pprof publishes. Addresses are the modules' own, as in their
files. A sample has the labels `comm`, and where they are known `pid` and `tid`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from walkback.base.arrays import numbered
from walkback.export import protobuf
from walkback.export.tables import StringTable
from walkback.stacks.profile import CodeMapping, Profile

_GZIP = 31
"""Window bits that make zlib write gzip."""
_LEVEL = 4
_PIECE = 1 << 12
"""Samples that are compressed at once."""

# Profile
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING_TABLE = range(1, 7)
_TIME_NANOS, _DURATION_NANOS, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_SAMPLE_TYPE = range(9, 15)
# ValueType
_TYPE, _UNIT = 1, 2
# Sample
_LOCATION_ID, _VALUE, _LABEL = 1, 2, 3
# Label
_KEY, _STR, _NUM = 1, 2, 3
# Mapping
_ID, _MEMORY_START, _MEMORY_LIMIT, _FILE_OFFSET, _FILENAME, _BUILD_ID = range(1, 7)
_HAS_FUNCTIONS, _HAS_FILENAMES, _HAS_LINES, _HAS_INLINED = range(7, 11)
# Location
_MAPPING_ID, _ADDRESS, _LINE = 2, 3, 4
# Line
_FUNCTION_ID, _LINE_NUMBER = 1, 2
# Function
_NAME, _SYSTEM_NAME, _SOURCE = 2, 3, 4


def write(profile: Profile, out: BinaryIO) -> None:
    """Write a profile."""
    compress = zlib.compressobj(_LEVEL, wbits=_GZIP)
    out.writelines(compress.compress(piece) for piece in _pieces(profile))
    out.write(compress.flush())


def _pieces(profile: Profile) -> Iterator[bytes]:
    strings = StringTable("")
    yield _types(profile, strings)
    yield from _samples(profile, strings)
    mapping_of = {"": 0}
    yield _mappings(profile, strings, mapping_of)
    yield _locations(profile, strings, mapping_of)
    if profile.title:
        yield protobuf.packed(_COMMENT, [strings[profile.title]])
    yield b"".join([protobuf.message(_STRING_TABLE, text.encode()) for text in strings.numbers])


def _types(profile: Profile, strings: StringTable) -> bytes:
    """What the values of samples are, and when the recording was made."""
    kinds = [_value_type("samples", "count", strings)]
    if profile.unit == "nanoseconds":
        kinds.append(_value_type("cpu", "nanoseconds", strings))
    elif profile.unit != "samples":
        kinds.append(_value_type(profile.unit, "count", strings))
    parts = [protobuf.message(_SAMPLE_TYPE, kind) for kind in kinds]
    parts += [protobuf.message(_PERIOD_TYPE, kinds[-1]), protobuf.number(_PERIOD, profile.period)]
    parts += [protobuf.number(_TIME_NANOS, profile.start), protobuf.number(_DURATION_NANOS, profile.duration)]
    return b"".join(parts)


def _value_type(kind: str, unit: str, strings: StringTable) -> bytes:
    return protobuf.number(_TYPE, strings[kind]) + protobuf.number(_UNIT, strings[unit])


def _samples(profile: Profile, strings: StringTable) -> Iterator[bytes]:
    # The location of frame n is n + 1, and that of what is inlined there as well. A stack's locations are written once,
    # however many samples have it.
    inlined = profile.frames.is_inlined.tolist()
    ids = [b"" if inlined[number] else protobuf.varint(number + 1) for number in range(len(profile.frames))]
    frames = profile.stack_frames.tolist()
    stacks = [
        protobuf.message(_LOCATION_ID, b"".join([ids[frame] for frame in frames[begin:end]]))
        for begin, end in pairwise(profile.stack_first.tolist())
    ]
    labels = _labels(profile, strings)
    counts, weights = profile.count.tolist(), profile.weight.tolist()
    weighed = profile.unit != "samples"
    samples: list[bytes] = []
    for row, (stack, label) in enumerate(zip(profile.stack.tolist(), labels, strict=True)):
        values = (counts[row], weights[row]) if weighed else (counts[row],)
        samples.append(protobuf.message(_SAMPLE, stacks[stack] + protobuf.packed(_VALUE, values) + label))
        if len(samples) == _PIECE:
            yield b"".join(samples)
            samples.clear()
    yield b"".join(samples)


def _labels(profile: Profile, strings: StringTable) -> Iterator[bytes]:
    """The labels of each row."""
    comms = [_label("comm", comm, strings) for comm in profile.comms]
    if profile.pid is None or profile.tid is None:
        yield from (comms[comm] for comm in profile.comm.tolist())
        return
    keys = list(zip(profile.comm.tolist(), profile.pid.tolist(), profile.tid.tolist(), strict=True))
    known = {
        (comm, pid, tid): comms[comm] + _label("pid", pid, strings) + _label("tid", tid, strings)
        for comm, pid, tid in set(keys)
    }
    yield from (known[key] for key in keys)


def _label(key: str, value: str | int, strings: StringTable) -> bytes:
    name = protobuf.number(_KEY, strings[key])
    field = protobuf.number(_STR, strings[value]) if isinstance(value, str) else protobuf.number(_NUM, value)
    return protobuf.message(_LABEL, name + field)


def _mappings(profile: Profile, strings: StringTable, mapping_of: dict[str, int]) -> bytes:
    """A mapping for each module that frames name."""
    known = {one.file: one for one in profile.mappings}
    with_lines = {
        module for module, file in zip(profile.frames.module, profile.frames.file or (), strict=False) if file
    }
    parts: list[bytes] = []
    used = dict.fromkeys(module for module in profile.frames.module if module)
    # Readers take the first mapping for the program's own, so what the profile names first comes first.
    for module in dict.fromkeys([*(file for file in known if file in used), *used]):
        mapping_of[module] = len(mapping_of)
        one = known.get(module, CodeMapping(module))
        build_id = one.build_id.hex() if one.build_id else ""
        fields = [
            protobuf.number(_ID, mapping_of[module]),
            protobuf.number(_MEMORY_START, one.start),
            protobuf.number(_MEMORY_LIMIT, one.limit),
            protobuf.number(_FILE_OFFSET, one.offset),
            protobuf.number(_FILENAME, strings[module]),
            protobuf.number(_BUILD_ID, strings[build_id]),
            protobuf.number(_HAS_FUNCTIONS, 1),
            protobuf.number(_HAS_FILENAMES, int(module in with_lines)),
            protobuf.number(_HAS_LINES, int(module in with_lines)),
            protobuf.number(_HAS_INLINED, int(module in with_lines)),
        ]
        parts.append(protobuf.message(_MAPPING, b"".join(fields)))
    return b"".join(parts)


def _locations(profile: Profile, strings: StringTable, mapping_of: dict[str, int]) -> bytes:
    """A location for each frame, and the functions that they are in."""
    frames = profile.frames
    files = frames.file or [None] * len(frames)
    lines = frames.line or [0] * len(frames)
    functions, function_of = numbered(list(zip(frames.labels(), frames.module, files, strict=True)))
    parts = []
    for number, (label, _, file) in enumerate(functions, 1):
        name = strings[label]
        fields = [protobuf.number(_ID, number), protobuf.number(_NAME, name)]
        fields += [protobuf.number(_SYSTEM_NAME, name), protobuf.number(_SOURCE, strings[file or ""])]
        parts.append(protobuf.message(_FUNCTION, b"".join(fields)))
    of_frames = [
        protobuf.message(_LINE, protobuf.number(_FUNCTION_ID, function + 1) + protobuf.number(_LINE_NUMBER, line))
        for function, line in zip(function_of.tolist(), lines, strict=True)
    ]
    addresses, rows = frames.address.tolist(), np.flatnonzero(~frames.is_inlined).tolist()
    for number, following in pairwise([*rows, len(frames)]):
        fields = [protobuf.number(_ID, number + 1), protobuf.number(_MAPPING_ID, mapping_of[frames.module[number]])]
        # What is inlined in a frame follows it, the innermost last; here that comes first.
        fields += [protobuf.number(_ADDRESS, addresses[number]), *reversed(of_frames[number:following])]
        parts.append(protobuf.message(_LOCATION, b"".join(fields)))
    return b"".join(parts)
