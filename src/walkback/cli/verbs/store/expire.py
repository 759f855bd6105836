"""`walkback store DIR expire`: old hours go."""

from __future__ import annotations

import click

from walkback.cli.choosing import Moment
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINE, JSON, guarded
from walkback.cli.storing import print_replaced


@verb("walkback store stacks expire --before 30d", "walkback store stacks expire --before 2026-01-01 --json")
@click.option(
    "--before",
    type=Moment(),
    required=True,
    metavar="TIME",
    help="Delete whole hours before this time; 30d means 30 days ago.",
)
@JSON
@click.pass_context
def expire(ctx: click.Context, /, before: int, as_json: bool) -> None:
    """Delete old hours."""

    def work(folder: str) -> int:
        from walkback.store.store import Store

        print_replaced(folder, "expire", Store(folder).expire(before), as_json)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
