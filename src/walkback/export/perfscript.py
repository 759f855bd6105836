"""The text that `perf script` prints for samples with call chains.

A line about the sample, then a line for each frame, innermost first, with address, symbol and module, then an empty
line. As perf does since Linux 5.14, addresses of modules are shown as their files count, and others as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from walkback.base.arrays import U64
from walkback.base.render import LineForm
from walkback.base.text import encoded, printable
from walkback.export.streamed import Texts, formatted, write_items
from walkback.stacks.profile import NamedFrames, SampleBatch

_MICROSECOND = np.uint64(1000)
_SECOND = np.uint64(10**9)
_THREE_DIGITS = [b"%03d" % number for number in range(1000)]


def write(batches: Iterable[SampleBatch], out: BinaryIO, *, pids: bool = False) -> None:
    """Write samples as they come; with `pids` the process stands before the thread, as after `perf script -F +pid`."""
    frames: NamedFrames | None = None
    texts = Texts(lambda records: (_frame_line(frames, *record) for record in records.tolist()))
    for batch in batches:
        frames = batch.frames
        lines, line_of_frame = texts.choose(batch.frame, batch.lookup)
        write_items(out, _head(batch, pids=pids), LineForm((lines, line_of_frame)), LineForm(b"\n"), batch.first)


def _frame_line(frames: NamedFrames | None, number: int, lookup: int) -> bytes:
    assert frames is not None
    symbol, module = frames.symbol[number], frames.module[number]
    away = "" if frames.offset is None else f"+{int(frames.offset[number]):#x}"
    name = printable(symbol) + away if symbol else "[unknown]"
    kernel = bool(frames.kernel[number])
    address = lookup if kernel or not module else int(frames.address[number])
    if frames.inlined is not None and frames.inlined[number]:
        return b"\t%16x %b (inlined)\n" % (address, encoded(printable(symbol or "[unknown]")))
    where = printable(module) or ("[kernel.kallsyms]" if kernel else "[unknown]")
    return b"\t%16x %b (%b)\n" % (address, encoded(name), encoded(where))


def _head(batch: SampleBatch, *, pids: bool) -> LineForm:
    """The line about each sample."""
    fields: list[Any] = [([encoded(printable(comm)) or b"[unknown]" for comm in batch.comms], batch.comm), b" "]
    if pids:
        fields += [formatted("%5d/", batch.pid), formatted("%-5d ", batch.tid)]
    else:
        fields += [formatted("%5d ", batch.tid)]
    if batch.cpu is not None:
        fields += [formatted("[%03d] ", batch.cpu)]
    fields += [*_seconds(batch.time), b": ", formatted("%10d ", batch.period)]
    if batch.event is not None:
        fields += [([encoded(printable(event)) for event in batch.events], batch.event), b": "]
    return LineForm(*fields, b"\n")


def _seconds(time: U64) -> list[Any]:
    """Seconds with six digits behind the point."""
    micro = (time % _SECOND) // _MICROSECOND
    milli, rest = micro // _MICROSECOND, micro % _MICROSECOND
    return [
        formatted("%5d.", time // _SECOND),
        (_THREE_DIGITS, milli.astype(np.int64)),
        (_THREE_DIGITS, rest.astype(np.int64)),
    ]
