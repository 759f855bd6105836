"""`walkback store DIR top`: the functions that weigh most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from walkback.base.text import printable
from walkback.cli.choosing import Chosen, choosing, profile_of
from walkback.cli.command import verb
from walkback.cli.completion import groupings
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, complain, guarded

if TYPE_CHECKING:
    from walkback.store.groups import Group


@verb(
    "walkback store stacks top --since 2h --process hello",
    "walkback store stacks top --by version",
    exit_1="no sample is chosen, or, with --by, none has the label.",
)
@choosing
@click.option(
    "--by",
    metavar="NAME",
    help="Show the weight of each host, of each process, or of each value of the label NAME or label:NAME.",
    shell_complete=groupings,
)
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="Rows per table.")
@JSON
@click.pass_context
def top(ctx: click.Context, /, by: str | None, limit: int, as_json: bool, **chosen: Any) -> None:
    """Show the hottest functions, their callers, and places."""

    def work(folder: str) -> int:
        import json
        import sys
        from dataclasses import asdict

        from walkback.stacks.top import hottest, write
        from walkback.store.store import Store

        its = Chosen(**chosen)
        if by is not None and (its.lines or its.short_names):
            message = "--lines and --short-names are for functions, and --by shows none"
            raise click.UsageError(message)
        with its.working() as workers:
            selection = its.select(Store(folder), workers=workers)
            if by is not None:
                groups = selection.by(by)
            else:
                found = profile_of(folder, selection)
        if by is not None:
            return _print_groups(folder, by, groups, limit, as_json)
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


def _without_groups(folder: str, by: str) -> str:
    from walkback.store.store import Store

    labels = sorted(Store(folder).overview().labels)
    known = f"the labels are {', '.join(labels)}" if labels else "no sample has any label"
    return f"no sample has the label {by}; {known}"


def _print_groups(folder: str, by: str, groups: list[Group], limit: int, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    if not groups or all(group.value is None for group in groups):
        complain(f"{folder}: {_without_groups(folder, by) if groups else 'there are no such samples'}")
        return EXIT_FINDINGS
    whole = sum(group.weight for group in groups)
    if not as_json:
        click.echo(f"{'weight':>14} {'%':>6} {'samples':>12}  {printable(by)}")
    for group in groups[:limit]:
        if as_json:
            click.echo(json.dumps(asdict(group)))
        else:
            share = f"{100 * group.weight / whole:.2f}" if whole else "-"
            value = "(none)" if group.value is None else printable(group.value)
            click.echo(f"{group.weight:>14} {share:>6} {group.count:>12}  {value}")
    if len(groups) > limit and not as_json:
        click.echo(f"and {len(groups) - limit} more")
    return EXIT_FINE
