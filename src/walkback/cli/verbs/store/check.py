"""`walkback store DIR check`: whether all of a store can be read."""

from __future__ import annotations

from typing import Literal, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JOBS, JSON, guarded
from walkback.cli.workers import processes


class ProblemObject(TypedDict):
    """The type of a problem, as JSON."""

    type: Literal["problem"]
    """The type of the object."""


@verb("walkback store stacks check", "walkback store stacks check --json", exit_1="anything is wrong.")
@JOBS
@JSON
@click.pass_context
def check(ctx: click.Context, /, jobs: int | None, as_json: bool) -> None:
    """Verify every block."""

    def work(folder: str) -> int:
        import json
        from dataclasses import asdict

        from walkback.store.store import Store

        store = Store(folder)
        with processes(jobs) as workers:
            problems = store.check(workers=workers)
        if as_json:
            kind: ProblemObject = {"type": "problem"}
            for one in problems:
                click.echo(json.dumps({**kind, **asdict(one)}))
        else:
            for one in problems:
                click.echo(printable(f"{one.file}: {one.message}"))
            if not problems:
                click.echo(f"{printable(folder)}: {counted(len(store.blocks()), 'block')}, no problems")
        return EXIT_FINDINGS if problems else EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
