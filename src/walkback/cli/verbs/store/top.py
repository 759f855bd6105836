"""`walkback store DIR top`: the functions that weigh most."""

from __future__ import annotations

from typing import Any

import click

from walkback.cli.choosing import Chosen, choosing, profile_of
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, guarded


@verb("walkback store stacks top", "walkback store stacks top --since 2h --process hello")
@choosing
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="Rows per table.")
@JSON
@click.pass_context
def top(ctx: click.Context, /, limit: int, as_json: bool, **chosen: Any) -> None:
    """Show the hottest functions, their callers, and places."""

    def work(folder: str) -> int:
        import json
        import sys
        from dataclasses import asdict

        from walkback.stacks.top import hottest, write
        from walkback.store.store import Store

        found = profile_of(folder, Chosen(**chosen).select(Store(folder)))
        if found is None:
            return EXIT_FINDINGS
        if as_json:
            for one in hottest(found, limit):
                click.echo(json.dumps(asdict(one)))
        else:
            sys.stdout.flush()
            write(found, sys.stdout.buffer, limit=limit)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
