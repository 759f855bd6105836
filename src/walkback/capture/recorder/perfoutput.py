"""What is recorded as perf writes it: a file, or for a pipe the same with the header's parts as records."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from walkback.capture.perfdata import layout
from walkback.capture.recorder.recorder import Recorder

_EVENT = 1
"""The number of the only one."""


def write_perf(recorder: Recorder, out: BinaryIO) -> None:
    """Record to the end. A file gets its sizes when it is complete; perf reads it also without them."""
    if out.seekable():
        _write_file(recorder, out)
    else:
        _write_pipe(recorder, out)


def _write_pipe(recorder: Recorder, out: BinaryIO) -> None:
    out.write(layout.MAGIC + struct.pack("=Q", layout.PIPE_HEADER))
    out.write(_record(layout.HEADER_ATTR, recorder.attr + struct.pack("=Q", _EVENT)))
    out.writelines(
        _record(layout.HEADER_FEATURE, struct.pack("=Q", feature) + contents)
        for feature, contents in _features(recorder).items()
    )
    for data in recorder.records():
        out.write(data)
        out.flush()


def _write_file(recorder: Recorder, out: BinaryIO) -> None:
    features = _features(recorder)
    ids = layout.FILE_HEADER
    attrs = ids + 8
    begin = attrs + len(recorder.attr) + 16

    def header(size: int) -> bytes:
        bits = bytearray(layout.FEATURES // 8)
        for feature in features if size else ():
            bits[feature // 8] |= 1 << feature % 8
        entry = len(recorder.attr) + 16
        sections = struct.pack("=QQQQQQ", attrs, entry, begin, size, 0, 0)
        return layout.MAGIC + struct.pack("=QQ", layout.FILE_HEADER, entry) + sections + _words(bytes(bits))

    out.write(header(0) + struct.pack("=Q", _EVENT) + recorder.attr + struct.pack("=QQ", ids, 8))
    size = 0
    for data in recorder.records():
        out.write(data)
        size += len(data)
    place = begin + size + 16 * len(features)
    for contents in features.values():
        out.write(struct.pack("=QQ", place, len(contents)))
        place += len(contents)
    out.writelines(features.values())
    out.seek(0)
    out.write(header(size))


def _features(recorder: Recorder) -> dict[int, bytes]:
    """What perf wants to know of the machine and the event, by number and so in order."""
    host = os.uname()
    described = struct.pack("=II", 1, len(recorder.attr)) + recorder.attr
    described += struct.pack("=I", 1) + _string(recorder.event.name) + struct.pack("=Q", _EVENT)
    return {
        layout.FEATURE_HOSTNAME: _string(host.nodename),
        layout.FEATURE_OSRELEASE: _string(host.release),
        layout.FEATURE_ARCH: _string(host.machine),
        layout.FEATURE_EVENT_DESC: described,
    }


def _record(kind: int, body: bytes) -> bytes:
    body = body.ljust((len(body) + 7) & ~7, b"\0")
    return struct.pack("=IHH", kind, 0, layout.RECORD_HEADER + len(body)) + body


def _string(text: str) -> bytes:
    """With its length before it, as perf pads it."""
    contents = os.fsencode(text) + b"\0"
    contents = contents.ljust((len(contents) + 63) & ~63, b"\0")
    return struct.pack("=I", len(contents)) + contents


def _words(bits: bytes) -> bytes:
    """Bits in words of 64, of this machine's byte order."""
    return struct.pack(f"={len(bits) // 8}Q", *struct.unpack(f"<{len(bits) // 8}Q", bits))
