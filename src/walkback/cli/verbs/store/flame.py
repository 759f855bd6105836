"""`walkback store DIR flame`: the stacks of a store as a flame graph, or as a file for other programs."""

from __future__ import annotations

from typing import Any

import click

from walkback.cli.choosing import Chosen, choosing, profile_of
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, guarded
from walkback.cli.paths import opened, refuse_terminal
from walkback.cli.walking import OUTPUT, SUMMED

FORMAT = click.option("--format", "form", type=click.Choice(SUMMED), help="Output format. [default: html]")


@verb(
    "walkback store stacks flame -o flame.html",
    "walkback store stacks flame --format pprof -o stacks.pb.gz",
    exit_1="no sample is chosen.",
)
@choosing
@FORMAT
@OUTPUT
@click.pass_context
def flame(ctx: click.Context, /, form: str | None, output: str | None, **chosen: Any) -> None:
    """Write a flame graph, or another profile format."""

    def work(folder: str) -> int:
        from dataclasses import replace

        from walkback.export.formats import FORMATS as WRITERS
        from walkback.store.moments import span
        from walkback.store.store import Store

        writer = WRITERS[form or "html"]
        if writer.binary:
            refuse_terminal(f"--format {writer.name}", output)
        its = Chosen(**chosen)
        with its.working() as workers:
            found = profile_of(folder, its.select(Store(folder), workers=workers))
        if found is None:
            return EXIT_FINDINGS
        title = f"{folder}: {span(found.start, found.start + found.duration)}"
        with opened(output) as out:
            writer.export(replace(found, title=title), out)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
