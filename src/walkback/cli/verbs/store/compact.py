"""`walkback store DIR compact`: the blocks of each hour become one."""

from __future__ import annotations

import click

from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINE, JOBS, JSON, guarded
from walkback.cli.storing import print_replaced
from walkback.cli.workers import processes


@verb("walkback store stacks compact", "walkback store stacks compact --every")
@click.option("--every", is_flag=True, help="Also rewrite hours that have only one block, to make them smaller.")
@JOBS
@JSON
@click.pass_context
def compact(ctx: click.Context, /, every: bool, jobs: int | None, as_json: bool) -> None:
    """Merge the blocks of each hour, and sum up days and months.

    Sums are made of days and months that are over.
    """

    def work(folder: str) -> int:
        from walkback.store.store import Store

        with processes(jobs) as workers:
            replaced = Store(folder).compact(every=every, workers=workers)
        print_replaced(folder, "compact", replaced, as_json)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
