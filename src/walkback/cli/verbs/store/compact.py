"""`walkback store DIR compact`: the blocks of each hour become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from walkback.base.text import counted, printable
from walkback.cli.output import EXIT_FINE, JSON, guarded

if TYPE_CHECKING:
    from walkback.store.compact import Replaced


@click.command()
@click.option("--every", is_flag=True, help="Also write hours again that have one block only, to make them smaller.")
@JSON
@click.pass_context
def compact(ctx: click.Context, /, every: bool, as_json: bool) -> None:
    """Make the blocks of each hour one, and smaller."""

    def work(folder: str) -> int:
        from walkback.store.store import Store

        tell(folder, "compact", Store(folder).compact(every=every), as_json)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


def tell(folder: str, kind: str, done: Replaced, as_json: bool) -> None:
    """What was replaced, and by what."""
    import json

    counts = {"replaced": len(done.old), "made": len(done.blocks), "waiting": done.waiting}
    if as_json:
        click.echo(json.dumps({"type": kind, "store": folder, "segment": done.segment, **counts}))
        return
    if not done.old:
        click.echo(f"{printable(folder)}: there is nothing to {kind}")
    elif done.blocks:
        click.echo(f"{printable(folder)}: {counted(len(done.old), 'block')} became {len(done.blocks)}")
    else:
        click.echo(f"{printable(folder)}: {counted(len(done.old), 'block')} expired")
    if done.waiting:
        click.echo(f"{printable(folder)}: {counted(done.waiting, 'old block')} stay until nobody reads them")
