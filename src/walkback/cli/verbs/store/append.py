"""`walkback store DIR append`: recordings and stacks into a store."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TypedDict

import click

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.base.text import printable
from walkback.cli.blobs import Blob, read_blob, read_blobs, stream_blob
from walkback.cli.choosing import Label, Moment, one_each
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, complain, guarded
from walkback.cli.paths import INPUT_FILE, STREAM, standard_input
from walkback.cli.recordings import account_for
from walkback.cli.searching import Searching, file_options
from walkback.cli.storing import summary

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from walkback.store.append import Append

FORMS = ("perf", "folded", "cbf")
_FIRST_TEXT = 4


@verb(
    "walkback store stacks append perf.data",
    "walkback store stacks append perf.data --label version=1.2",
    exit_1="nothing is new, no stack of a file is complete, or a recording is damaged.",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=STREAM)
@click.option("--from", "form", type=click.Choice(FORMS), help="Format of the files. [default: by their first bytes]")
@click.option("--host", metavar="NAME", help="Host that the samples are from. [default: as recorded]")
@click.option(
    "--label", "labels", type=Label(), multiple=True, metavar="NAME=VALUE", help="Label all samples; may be repeated."
)
@click.option("--time", "start", type=Moment(), metavar="TIME", help="Time of the first sample. [default: as recorded]")
@click.option(
    "--weight",
    type=click.Choice(["samples", "period"]),
    default="samples",
    show_default=True,
    help="Count the samples of a recording, or add up their periods.",
)
@click.option("--process", metavar="NAME", help="With CBF: process that the backtraces are from.")
@click.option("--images", type=INPUT_FILE, metavar="FILE", help="With CBF: image map (CIF) of that process.")
@click.option(
    "--names/--no-names", default=True, help="Keep the names of code, so that its files can go, or only the stacks."
)
@file_options
@JSON
@click.pass_context
def append(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    form: str | None,
    host: str | None,
    labels: tuple[tuple[str, str], ...],
    start: int | None,
    weight: str,
    process: str | None,
    images: str | None,
    names: bool,
    searching: Searching,
    as_json: bool,
) -> None:
    """Add the stacks of recordings and other files.

    A FILE is a recording made with `perf record --call-graph dwarf`, folded stacks, or backtraces in CBF; - is standard
    input. The store is made if it does not exist. All files appear in it at once, or none.
    """
    its_labels = one_each(labels)
    wanted = _WantedAppend(start, weight == "period", process, images, searching)

    def work(folder: str) -> int:
        from walkback.store.store import Store

        worst = EXIT_FINE
        with Store(folder, create=True).append(host=host, labels=its_labels, names=names) as new:
            for file in files:
                try:
                    if Path(file).is_dir() and form in {None, "perf"}:
                        worst = max(worst, _add_recording(new, file, file, wanted))
                        continue
                    with _opened(file) as source:
                        worst = max(worst, _add(new, file, source, form, wanted))
                except OSError as error:
                    raise UnreadableError(error.strerror or str(error), file=file) from None
                except WalkbackError as error:
                    raise error.within(file=file) from None
        if new.segment is None:
            worst = max(worst, EXIT_FINDINGS)
        for note in new.notes:
            complain(f"{folder}: {note}")
        _print(folder, new, as_json)
        return worst

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


@dataclass(frozen=True, slots=True)
class _WantedAppend:
    """What the options say of all files."""

    start: int | None
    by_period: bool
    process: str | None
    images: str | None
    searching: Searching


class _Again(io.RawIOBase):
    """What comes through a pipe, with what was read of it already."""

    def __init__(self, name: str, begin: bytes, rest: BinaryIO) -> None:
        self.name = name
        self._begin = begin
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer, /) -> int:
        data = memoryview(target)
        found = self._begin[: len(data)] or self._rest.read(len(data))
        self._begin = self._begin[len(data) :]
        data[: len(found)] = found
        return len(found)


def _opened(file: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """A file, opened once: what comes through a pipe does not come again."""
    stream = standard_input(file)
    return Path(file).open("rb") if stream is None else contextlib.nullcontext(stream)


def _form(file: str, source: BinaryIO) -> tuple[str, BinaryIO]:
    """What a file is, by how it begins, and the whole of it."""
    from walkback.capture.perfdata.layout import MAGICS

    begin = source.read(8)
    if source.seekable():
        source.seek(-len(begin), os.SEEK_CUR)
    else:
        source = io.BufferedReader(_Again(file, begin, source))
    if begin in MAGICS:
        return "perf", source
    # No text begins so, and no later version of CBF is known.
    return "cbf" if begin and begin[0] < _FIRST_TEXT else "folded", source


def _written(source: BinaryIO) -> int:
    """When a file was written; what comes through a pipe is of now."""
    status = os.fstat(source.fileno())
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else time.time_ns()


def _add(new: Append, file: str, source: BinaryIO, form: str | None, wanted: _WantedAppend) -> int:
    start = _written(source) if wanted.start is None else wanted.start
    begun, source = _form(file, source) if form is None else (form, source)
    if begun == "folded":
        new.folded(source, start=start)
        return EXIT_FINE
    if begun == "cbf":
        # As text, which looks like folded stacks, they are read only if an option says so.
        blobs = [stream_blob(file, source)] if form is None else read_blobs(file)
        return _add_backtraces(new, blobs, start, wanted)
    return _add_recording(new, file, source, wanted)


def _add_recording(new: Append, file: str, source: str | BinaryIO, wanted: _WantedAppend) -> int:
    """Add what perf recorded; `source` is the path of a folder, or an open file."""
    import numpy as np

    from walkback.capture.unwinding import Unwinding

    unwinding = Unwinding(source, names_last=True, search=wanted.searching.search)
    ends = np.zeros(256, np.int64)
    taken = new.captured(unwinding, start=wanted.start, by_period=wanted.by_period)
    for batch in unwinding:
        ends += np.bincount(batch.end, minlength=256)
        taken.add(batch)
    return account_for(file, unwinding.recording, ends, unwinding.troubles)


def _add_backtraces(new: Append, blobs: list[Blob], times: int, wanted: _WantedAppend) -> int:
    from walkback.cbf.decoding import decode_all
    from walkback.cif.decoding import decode
    from walkback.naming.modules import Modules

    modules = Modules(wanted.searching.search)
    images = None if wanted.images is None else decode(read_blob(wanted.images, key="imageMap").data)
    for blob in blobs:
        its = decode(blob.images) if images is None and blob.images is not None else images
        new.backtraces(decode_all(blob.data), its, times=times, process=wanted.process, modules=modules)
    return EXIT_FINE


class AppendObject(TypedDict):
    """What came into the store, as JSON."""

    type: Literal["append"]
    """The type of the object."""
    store: str
    """The folder."""
    segment: str | None
    """The name of the new segment; null if no sample was added."""
    hours: dict[str, dict[str, int]]
    """For each hour, what came into it."""


def _print(folder: str, new: Append, as_json: bool) -> None:
    """What came into the store."""
    import json
    from dataclasses import asdict

    if as_json:
        hours = {hour: asdict(counts) for hour, counts in new.blocks.items()}
        found: AppendObject = {"type": "append", "store": folder, "segment": new.segment, "hours": hours}
        click.echo(json.dumps(found))
        return
    (complain if new.segment is None else click.echo)(printable(f"{folder}: {summary(new)}"))
