"""`walkback store DIR append`: recordings and stacks into a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from walkback.cli.choosing import Label, Moment
from walkback.cli.output import EXIT_FINE, JSON, complain, guarded
from walkback.cli.storing import told
from walkback.cli.unwind import account
from walkback.errors import UnreadableError, WalkbackError
from walkback.text import printable

if TYPE_CHECKING:
    from walkback.store.append import Append

FORMS = ("perf", "folded", "cbf")
_PERF = (b"PERFILE2", b"2ELIFREP")
_FIRST_TEXT = 4


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--from", "form", type=click.Choice(FORMS), help="What the files are. [default: as they begin]")
@click.option("--host", metavar="NAME", help="Where they are from. [default: as recorded]")
@click.option("--label", "labels", type=Label(), multiple=True, metavar="NAME=VALUE", help="Of all samples.")
@click.option(
    "--time", "start", type=Moment(), metavar="TIME", help="When the first sample was. [default: as recorded]"
)
@click.option(
    "--weight", type=click.Choice(["samples", "period"]), default="samples", show_default=True, help="What to count."
)
@click.option("--process", metavar="NAME", help="Whose backtraces CBF has.")
@click.option("--images", type=click.Path(), metavar="FILE", help="The image map (CIF) of that process.")
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
    as_json: bool,
) -> None:
    """Add the stacks of files to the store, which is made if it is not there.

    A FILE is a recording of perf, made with `perf record --call-graph dwarf`; or it has folded stacks, or backtraces
    in CBF. All of them appear in the store at once, or none.
    """
    wanted = _Wanted(start, weight == "period", process, images)

    def work(folder: str) -> int:
        from walkback.store.store import Store

        worst = EXIT_FINE
        with Store(folder, create=True).append(host=host, labels=dict(labels)) as new:
            for file in files:
                try:
                    worst = max(worst, _add(new, file, form or _form(file), wanted))
                except OSError as error:
                    raise UnreadableError(error.strerror or str(error), file=file) from None
                except WalkbackError as error:
                    raise error.within(file=file) from None
        for note in new.notes:
            complain(f"{folder}: {note}")
        _tell(folder, new, as_json)
        return worst

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the options tell of all files."""

    start: int | None
    by_period: bool
    process: str | None
    images: str | None


def _form(file: str) -> str:
    """What a file is, by how it begins."""
    with Path(file).open("rb") as opened:
        begin = opened.read(8)
    if begin in _PERF:
        return "perf"
    # No text begins so, and no later version of CBF is known.
    return "cbf" if begin and begin[0] < _FIRST_TEXT else "folded"


def _add(new: Append, file: str, form: str, wanted: _Wanted) -> int:
    if form == "folded":
        new.folded(file, start=wanted.start)
        return EXIT_FINE
    if form == "cbf":
        return _add_backtraces(new, file, wanted)
    import numpy as np

    from walkback.capture.unwinding import Unwinding

    unwinding = Unwinding(file, names_last=True)
    ends = np.zeros(256, np.int64)
    taken = new.captured(unwinding, start=wanted.start, by_period=wanted.by_period)
    for batch in unwinding:
        ends += np.bincount(batch.end, minlength=256)
        taken.add(batch)
    return account(file, unwinding.recording, ends, unwinding.troubles)


def _add_backtraces(new: Append, file: str, wanted: _Wanted) -> int:
    from walkback.cbf import decode_backtraces
    from walkback.cif.decode import decode_images
    from walkback.cli.blobs import read_blob, read_blobs

    time = Path(file).stat().st_mtime_ns if wanted.start is None else wanted.start
    images = None if wanted.images is None else decode_images(read_blob(wanted.images, key="imageMap").data)
    for blob in read_blobs(file):
        its = decode_images(blob.images) if images is None and blob.images is not None else images
        new.backtraces(decode_backtraces(blob.data), its, times=time, process=wanted.process)
    return EXIT_FINE


def _tell(folder: str, new: Append, as_json: bool) -> None:
    """What came into the store."""
    import json
    from dataclasses import asdict

    if as_json:
        hours = {hour: asdict(counts) for hour, counts in new.blocks.items()}
        click.echo(json.dumps({"type": "append", "store": folder, "segment": new.segment, "hours": hours}))
        return
    (complain if new.segment is None else click.echo)(printable(f"{folder}: {told(new)}"))
