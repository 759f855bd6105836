"""JSON, an object a line for each sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NotRequired, TypedDict

import numpy as np

from walkback.base.arrays import U64
from walkback.base.render import LineForm
from walkback.base.text import json_text
from walkback.export.streamed import Texts, write_items
from walkback.stacks.profile import NamedFrames, SampleBatch
from walkback.stacks.stacks import END_WORDS, HOW_WORDS


class FrameObject(TypedDict):
    """A frame, as JSON."""

    pc: int
    """The address found."""
    lookup: int
    """The address used to look up the names: `pc` minus 1 for a return address, otherwise `pc`. Both are integers of
    up to 64 bits; kernel addresses exceed 2^53, and JavaScript and older versions of `jq` round them."""
    symbol: str | None
    """The function."""
    module: str | None
    """The file."""
    how: str
    """[How the frame was found](../../explained/walking.md#how-a-frame-was-found)."""
    file: NotRequired[str]
    """The source file, if known; with `--no-lines` only of Python and Lua."""
    line: NotRequired[int]
    """The line, if known."""


class SampleObject(TypedDict):
    """A sample, as JSON."""

    pid: int
    """The process."""
    tid: int
    """The thread."""
    comm: str
    """The thread's name at that time."""
    time: int
    """The time in nanoseconds: by the clock of the recording; of a snapshot since 1970, 0 for a core file."""
    cpu: NotRequired[int]
    """The processor, if recorded."""
    event: NotRequired[str]
    """The name of the event; `stopped` for a snapshot."""
    period: NotRequired[int]
    """The period; 1 for a snapshot."""
    frames: list[FrameObject]
    """The frames, innermost first."""
    end: str
    """[Why the walk ended](../../explained/walking.md#why-a-walk-ended); `complete` at the outermost frame."""


def _by_byte(words: Mapping[Any, str]) -> list[str]:
    """A word for each value that a byte can have."""
    return [words.get(value, "unknown") for value in range(256)]


_ENDS = [json_text(word).encode() for word in _by_byte(END_WORDS)]
_HOWS = [json_text(word) for word in _by_byte(HOW_WORDS)]


def write(batches: Iterable[SampleBatch], out: BinaryIO) -> None:
    """Write samples as they come."""
    frames: NamedFrames | None = None
    texts = Texts(lambda records: _objects(frames, records))
    for batch in batches:
        frames = batch.frames
        # A frame and its `how` are in one word.
        key = batch.frame.astype(np.uint64) << np.uint64(8) | batch.how
        chosen, text_of_frame = texts.choose(key, batch.pc, batch.lookup)
        foot = LineForm(b'],"end":', (_ENDS, batch.end), b"}\n")
        write_items(out, _head(batch), LineForm((chosen, text_of_frame)), foot, batch.first, between=b",")


def _objects(frames: NamedFrames | None, records: U64) -> Iterable[bytes]:
    """The object of each frame, but what is the same for all of one number is made once."""
    assert frames is not None
    known: dict[int, str] = {}
    for key, pc, lookup in records.tolist():
        number = key >> 8
        if number not in known:
            known[number] = _names(frames, number)
        yield f'{{"pc":{pc},"lookup":{lookup},{known[number]},"how":{_HOWS[key & 255]}}}'.encode()


def _names(frames: NamedFrames, number: int) -> str:
    fields = [f'"symbol":{json_text(frames.symbol[number])},"module":{json_text(frames.module[number] or None)}']
    if frames.file is not None and frames.file[number]:
        fields.append(f'"file":{json_text(frames.file[number])}')
        if frames.line is not None and frames.line[number]:
            fields.append(f'"line":{frames.line[number]}')
    return ",".join(fields)


def _head(batch: SampleBatch) -> LineForm:
    fields: list[Any] = [
        b'{"pid":',
        ("decimal", batch.pid),
        b',"tid":',
        ("decimal", batch.tid),
        b',"comm":',
        ([json_text(comm).encode() for comm in batch.comms], batch.comm),
        b',"time":',
        ("unsigned", batch.time),
    ]
    if batch.cpu is not None:
        fields += [b',"cpu":', ("decimal", batch.cpu)]
    if batch.event is not None:
        events = [json_text(event).encode() for event in batch.events]
        fields += [b',"event":', (events, batch.event), b',"period":', ("unsigned", batch.period)]
    return LineForm(*fields, b',"frames":[')
