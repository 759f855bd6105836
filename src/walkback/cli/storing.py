"""What verbs that change a store share: stacks on their way into it, and blocks that others replace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.choosing import Label, one_each
from walkback.cli.output import complain, error_line
from walkback.cli.paths import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.base.errors import WalkbackError
    from walkback.stacks.profile import SampleBatch
    from walkback.store.append import Append
    from walkback.store.capturing import Capture
    from walkback.store.compact import Replaced
    from walkback.store.often import Often

STORE = click.option(
    "--store", type=FOLDER, metavar="DIR", help="Add the stacks to this store; make it if it does not exist."
)
LABEL = click.option(
    "--label",
    "labels",
    type=Label(),
    multiple=True,
    metavar="NAME=VALUE",
    help="With --store: label all samples; may be repeated.",
)


@contextlib.contextmanager
def storing(
    folder: str | None, labels: tuple[tuple[str, str], ...], capture: Capture, *, by_period: bool = False
) -> Iterator[Callable[[SampleBatch], None]]:
    """Gives what takes batches; at the end all of them are in the store, or none. Without a store nothing is done."""
    if folder is None:
        yield lambda _: None
        return
    from walkback.store.store import Store

    with Store(folder, create=True).append(labels=one_each(labels)) as new:
        yield new.captured(capture, by_period=by_period).add
    for line in (*new.notes, summary(new)):
        complain(f"{folder}: {line}")


@contextlib.contextmanager
def storing_often(
    folder: str | None,
    labels: tuple[tuple[str, str], ...],
    capture: Capture,
    seconds: float,
    *,
    by_period: bool = False,
) -> Iterator[Often | None]:
    """The same, with an append every few seconds; nothing without a store."""
    if folder is None:
        yield None
        return
    from walkback.store.often import Often

    failures: set[str] = set()

    def report(error: OSError | WalkbackError) -> None:
        line = error_line(error, folder)
        if line not in failures:
            complain(f"{line}; recording goes on")
        failures.add(line)

    often = Often(folder, one_each(labels), capture, seconds, by_period=by_period, on_failure=report)
    if hasattr(capture, "on_renewal"):
        capture.on_renewal = often.renew
    try:
        yield often
    finally:
        often.publish()
    lost = f"; {counted(often.lost, 'sample')} could not be added" if often.lost else ""
    complain(f"{folder}: {counted(often.samples, 'sample')}, in {counted(often.appends, 'append')}{lost}")


def summary(new: Append) -> str:
    """What came into a store."""
    if new.segment is None:
        return "there was nothing to add"
    samples, stacks = (sum(getattr(one, name) for one in new.blocks.values()) for name in ("samples", "stacks"))
    return f"{counted(samples, 'sample')}, {counted(stacks, 'stack')}, in {counted(len(new.blocks), 'hour')}"


def check_store(folder: str | None, labels: tuple[tuple[str, str], ...]) -> None:
    """Refuse labels that would be lost."""
    if labels and folder is None:
        message = "--label is for --store"
        raise click.UsageError(message)
    one_each(labels)


class ReplacedObject(TypedDict):
    """What was replaced, and by what, as JSON."""

    type: str
    """`compact` or `expire`."""
    store: str
    """The folder."""
    segment: str | None
    """The name of the new segment; null if nothing was to be done."""
    replaced: int
    """The number of blocks replaced."""
    made: int
    """The number of new blocks."""
    rollups: list[str]
    """The days and months that were summed up."""
    waiting: int
    """The number of blocks that cannot be deleted yet, because someone is reading them."""


def print_replaced(folder: str, kind: str, done: Replaced, as_json: bool) -> None:
    """What was replaced, and by what."""
    import json

    if as_json:
        found: ReplacedObject = {
            "type": kind,
            "store": folder,
            "segment": done.segment,
            "replaced": len(done.old),
            "made": len(done.blocks),
            "rollups": list(done.rollups),
            "waiting": done.waiting,
        }
        click.echo(json.dumps(found))
        return
    if not done.old and not done.rollups:
        click.echo(f"{printable(folder)}: there is nothing to {kind}")
    elif done.blocks:
        click.echo(f"{printable(folder)}: {counted(len(done.old), 'block')} became {len(done.blocks)}")
    elif done.old:
        click.echo(f"{printable(folder)}: {counted(len(done.old), 'block')} expired")
    if done.rollups:
        click.echo(f"{printable(folder)}: summed up {', '.join(done.rollups)}")
    if done.waiting:
        click.echo(f"{printable(folder)}: {counted(done.waiting, 'old block')} stay until nobody reads them")
