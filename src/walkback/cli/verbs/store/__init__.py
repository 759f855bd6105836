"""`walkback store`: stacks of many programs, kept and asked later.

The verbs of a store are modules here, imported when they are asked for.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import LazyVerbs
from walkback.cli.output import EXIT_FINE, guarded
from walkback.cli.paths import FOLDER

if TYPE_CHECKING:
    from walkback.store.overview import Overview

HEADINGS = {
    "Put stacks in": {
        "append": "Add the stacks of recordings and other files.",
    },
    "Query": {
        "top": "Show the hottest functions, their callers, and places.",
        "flame": "Write a flame graph, or another profile format.",
        "diff": "Compare two selections of samples.",
        "through": "Show who calls a function, and what it calls.",
        "sql": "Answer a query in the SQL of DuckDB.",
        "serve": "Show samples over time, and graphs of them, in a browser.",
    },
    "Maintain": {
        "compact": "Merge the blocks of each hour, and sum up days and months.",
        "expire": "Delete old hours.",
        "names": "Show how much code has names, and look for more.",
        "check": "Verify every block.",
    },
}
_MOST_SHOWN = 12


class _StoreVerbs(LazyVerbs):
    folder = "walkback.cli.verbs.store"
    headings = HEADINGS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Options may stand behind DIR too, where there is no verb that they would be of.
        own = list(takewhile(lambda word: word.startswith("-"), args[1:]))
        if args and not args[0].startswith("-"):
            args = [*own, args[0], *args[1 + len(own) :]]
        return super().parse_args(ctx, args)


@click.group(
    cls=_StoreVerbs,
    invoke_without_command=True,
    subcommand_metavar="[VERB [ARGS]...]",
    examples=("walkback store stacks append perf.data", "walkback store stacks top"),
)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Without a verb: print JSON, one object.")
@click.pass_context
def store(ctx: click.Context, /, folder: str, as_json: bool) -> None:
    """Keep stacks of many programs in a folder, and query them.

    DIR can also be the address of a store in a bucket: s3://, gs:// or az://.

    Without a verb: list what the store holds.
    """
    ctx.obj = folder
    if ctx.invoked_subcommand is not None:
        if as_json:
            message = f"--json comes behind {ctx.invoked_subcommand}"
            raise click.UsageError(message)
        return
    ctx.exit(guarded(lambda name: _show(name, as_json), folder, folder))


class StoreObject(TypedDict):
    """The sums of a store, as JSON."""

    type: Literal["store"]
    """The type of the object."""
    store: str
    """The folder."""
    samples: int
    """The number of samples."""
    stacks: int
    """The number of stacks; those that are in several hours count in each."""
    bytes: int
    """The size of all blocks."""


def _show(folder: str, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from walkback.store.store import Store

    found = Store(folder).overview()
    if as_json:
        sums: StoreObject = {
            "type": "store",
            "store": folder,
            "samples": found.samples,
            "stacks": found.stacks,
            "bytes": found.bytes,
        }
        click.echo(json.dumps({**sums, **asdict(found)}))
        return EXIT_FINE
    for line in _lines(folder, found):
        click.echo(line)
    return EXIT_FINE


def _lines(folder: str, found: Overview) -> list[str]:
    about = f"{counted(found.samples, 'sample')}, {counted(found.stacks, 'stack')}, {counted(found.bytes, 'byte')}"
    sums = f", and {counted(found.rollups, 'byte')} of sums" if found.rollups else ""
    lines = [f"{printable(folder)}: {about}{sums}"]
    several = [("hosts", found.hosts), ("processes", found.processes)]
    several += [(f"label {name}", values) for name, values in found.labels.items()]
    lines += [
        f"{printable(name)}: {_some([printable(value) for value in values])}" for name, values in several if values
    ]
    if found.hours:
        lines += ["", f"{'hour (UTC)':13} {'blocks':>6} {'samples':>11} {'stacks':>9} {'bytes':>12}"]
    lines += [
        f"{hour.hour:13} {hour.blocks:6} {hour.samples:11} {hour.stacks:9} {hour.bytes:12}" for hour in found.hours
    ]
    return lines


def _some(values: list[str]) -> str:
    more = len(values) - _MOST_SHOWN
    return ", ".join(values[:_MOST_SHOWN]) + (f" and {counted(more, 'other')}" if more > 0 else "")
