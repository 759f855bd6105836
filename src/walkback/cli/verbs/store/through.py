"""`walkback store DIR through`: the stacks that a function is in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import click

from walkback.base.text import printable
from walkback.cli.choosing import Chosen, choosing, profile_of
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, complain, guarded, refuse_both
from walkback.cli.paths import opened, refuse_terminal
from walkback.cli.walking import OUTPUT, SUMMED

if TYPE_CHECKING:
    from walkback.stacks.profile import Profile
    from walkback.stacks.through import Through

_MOST_LIKE = 5


@verb(
    "walkback store stacks through compute",
    "walkback store stacks through '^comp' --regex --format html -o compute.html",
    exit_1="no sample is chosen, or no stack has the function.",
)
@click.argument("function")
@choosing
@click.option("--regex", is_flag=True, help="FUNCTION is a regular expression, searched in names.")
@click.option("--format", "form", type=click.Choice(("text", *SUMMED)), help="Output format. [default: text]")
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="Rows per table.")
@JSON
@OUTPUT
@click.pass_context
def through(
    ctx: click.Context,
    /,
    function: str,
    regex: bool,
    form: str | None,
    limit: int,
    as_json: bool,
    output: str | None,
    **chosen: Any,
) -> None:
    """Show who calls a function, and what it calls."""
    if as_json and form is not None:
        refuse_both("--json", "--format")
    try:
        pattern = re.compile(function if regex else f"{re.escape(function)}\\Z")
    except re.error as error:
        message = f"{printable(function)!r} is no pattern: {error}"
        raise click.UsageError(message) from None

    def work(folder: str) -> int:
        from walkback.export.formats import FORMATS as WRITERS
        from walkback.stacks.through import through as found_through
        from walkback.store.store import Store

        writer = WRITERS[form] if form not in {None, "text"} else None
        if writer is not None and writer.binary:
            refuse_terminal(f"--format {writer.name}", output)
        its = Chosen(**chosen)
        with its.working() as workers:
            everything = profile_of(folder, its.select(Store(folder), workers=workers))
        if everything is None:
            return EXIT_FINDINGS
        found = found_through(everything, lambda name: (pattern.search if regex else pattern.match)(name) is not None)
        if not found.functions:
            complain(f"{folder}: no stack has {function}{_like(everything, function)}")
            return EXIT_FINDINGS
        with opened(output) as out:
            if writer is not None:
                writer.export(found.profile, out)
            else:
                lines = _objects(found, limit) if as_json else _lines(found, limit)
                out.writelines(line.encode("utf-8", "surrogateescape") + b"\n" for line in lines)
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


def _like(profile: Profile, function: str) -> str:
    """Functions whose names have what was asked for in them."""
    wanted = function.lower()
    names = sorted(
        {name for name in profile.frames.labels() if wanted in name.lower()}, key=lambda name: (len(name), name)
    )
    return f"; there is {', '.join(map(printable, names[:_MOST_LIKE]))}" if names else ""


def _lines(found: Through, limit: int) -> list[str]:
    from walkback.stacks.top import function_text

    unit = printable(found.profile.unit)
    names = [function_text(*one) for one in found.functions]
    share = 100 * found.weight / (found.whole or 1)
    lines = [*names[:limit], *([f"and {len(names) - limit} more"] if len(names) > limit else [])]
    lines.append(f"{found.weight} of {found.whole} {unit} ({share:.2f} %), {found.own} of its own")
    for title, neighbours in (("called by", found.callers), ("calls", found.callees)):
        if neighbours:
            lines += ["", f"{'weight':>11} {'%':>6}  {title}"]
        lines += [
            f"{one.weight:11} {100 * one.weight / (found.weight or 1):6.2f}  {function_text(one.name, one.module)}"
            for one in neighbours[:limit]
        ]
    return lines


class NamedObject(TypedDict):
    """A function, as JSON."""

    name: str
    """The function."""
    module: str
    """Its file."""


class ThroughObject(TypedDict):
    """What goes through some functions, as JSON."""

    type: Literal["through"]
    """The type of the object."""
    functions: list[NamedObject]
    """The functions that were found."""
    weight: int
    """The weight of the stacks that one of them is in."""
    own: int
    """The weight of the stacks in which one of them is innermost."""
    whole: int
    """The weight of all stacks, these and others."""
    callers: list[dict[str, Any]]
    """The callers, the heaviest first."""
    callees: list[dict[str, Any]]
    """The functions that they call, the heaviest first."""


def _objects(found: Through, limit: int) -> list[str]:
    import json
    from dataclasses import asdict

    value: ThroughObject = {
        "type": "through",
        "functions": [{"name": name, "module": module} for name, module in found.functions],
        "weight": found.weight,
        "own": found.own,
        "whole": found.whole,
        "callers": [asdict(one) for one in found.callers[:limit]],
        "callees": [asdict(one) for one in found.callees[:limit]],
    }
    return [json.dumps(value)]
