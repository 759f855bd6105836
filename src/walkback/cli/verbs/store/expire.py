"""`walkback store DIR expire`: old hours go."""

from __future__ import annotations

import click

from walkback.cli.choosing import Moment
from walkback.cli.output import EXIT_FINE, JSON, guarded
from walkback.cli.storing import print_replaced


@click.command()
@click.option(
    "--before", type=Moment(), required=True, metavar="TIME", help="Whole hours before this time; 30d is so long ago."
)
@JSON
@click.pass_context
def expire(ctx: click.Context, /, before: int, as_json: bool) -> None:
    """Let the samples of old hours go."""

    def work(folder: str) -> int:
        from walkback.store.store import Store

        print_replaced(folder, "expire", Store(folder).expire(before), as_json)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
