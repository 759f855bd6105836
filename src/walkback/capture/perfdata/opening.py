"""Recordings of perf opened: files, folders, and what comes through a pipe."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from walkback.base.errors import UnreadableError
from walkback.capture.perfdata import layout
from walkback.capture.perfdata.header import RecordingHeader, byteorder_of, is_pipe, read_file_header
from walkback.capture.perfdata.source import FileSource, MergedSource, RecordSource, StreamSource, read_into
from walkback.elf import IN_MEMORY, OpenFile


@runtime_checkable
class LiveRecording(Protocol):
    """What is recorded while it is read."""

    def open_recording(self) -> tuple[RecordingHeader, RecordSource]:
        """What is known of it, and its records."""


RecordingInput = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | LiveRecording
"""A path, the bytes of a recording, what is open for bytes, or what records now."""

_MAIN, _PARTS = "data", "data.*"
"""The files in a folder: the one with the header, and the others."""


def open_file(data: OpenFile, name: str) -> tuple[RecordingHeader, RecordSource]:
    """A file of the usual form, or one that has what perf writes to a pipe."""
    byteorder = byteorder_of(bytes(data[:8]), name)
    if is_pipe(data[: layout.PIPE_HEADER], byteorder, name):
        header = RecordingHeader(name, byteorder, begin=layout.PIPE_HEADER, end=len(data))
    else:
        header = read_file_header(data, name)
        if header.is_parted:
            header.troubles.append(
                "this is one file of a folder that perf wrote, and the others are not read; give the folder"
            )
    header.written = data.status.st_mtime_ns
    return header, FileSource(data, header.begin, header.end, name, byteorder, header.troubles)


def open_folder(name: str) -> tuple[RecordingHeader, RecordSource]:
    """What `perf record --threads` writes: a file with the header, and one with records for each of its threads."""
    main = os.path.join(name, _MAIN)
    if not os.path.isfile(main):
        raise UnreadableError("this is a directory, and not one that perf record --threads made", file=name)
    data = OpenFile(main)
    if is_pipe(data[: layout.PIPE_HEADER], byteorder_of(bytes(data[:8]), main), main):
        raise UnreadableError("a folder of perf cannot have what goes through a pipe", file=main)
    header = read_file_header(data, main)
    header.name, header.written = name, data.status.st_mtime_ns
    parts = [FileSource(data, header.begin, header.end, main, header.byteorder, header.troubles)]
    for path in sorted(Path(name).glob(_PARTS)):
        if not path.is_file():
            header.troubles.append(f"{path.name}: not a regular file; it is not read")
        elif path.stat().st_size:  # a thread that had nothing to do leaves an empty one
            records = OpenFile(path)
            part = FileSource(records, 0, len(records), os.fspath(path), header.byteorder, header.troubles)
            part.part = path.name
            parts.append(part)
    return header, MergedSource(name, parts)


def open_bytes(data: bytes | bytearray | memoryview, name: str = IN_MEMORY) -> tuple[RecordingHeader, RecordSource]:
    """A recording that is in memory."""
    if not data:
        raise UnreadableError("the file is empty", file=name)
    with tempfile.NamedTemporaryFile(prefix="walkback-") as file:
        file.write(data)
        file.flush()
        return open_file(OpenFile(file.name), name)


def open_stream(stream: BinaryIO) -> tuple[RecordingHeader, RecordSource]:
    """What comes through a pipe, or a file that is open."""
    if not hasattr(stream, "readinto"):
        raise TypeError(f"a path, bytes, or a stream of bytes is needed, not {type(stream).__name__}")
    name = str(getattr(stream, "name", "<stream>"))
    name = "/dev/stdin" if name in {"0", "<stdin>"} else name
    # Other streams can have the descriptor of what they decompress.
    if isinstance(getattr(stream, "raw", stream), io.FileIO):
        descriptor = stream.fileno()
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and stream.tell() == 0:
            if not status.st_size:
                raise UnreadableError("the file is empty", file=name)
            return open_file(OpenFile(f"/proc/self/fd/{descriptor}"), name)
    if isinstance(stream, io.BytesIO):
        return open_bytes(stream.read(), name)
    start = bytearray(layout.PIPE_HEADER)
    start = start[: read_into(stream, memoryview(start))]
    byteorder = byteorder_of(bytes(start[:8]), name)
    if not is_pipe(memoryview(start), byteorder, name):
        raise UnreadableError("a perf.data file cannot be read from a pipe; give it as a file", file=name)
    header = RecordingHeader(name, byteorder)
    return header, StreamSource(stream, layout.PIPE_HEADER, name, byteorder, header.troubles)
