"""`walkback store DIR diff`: what is different between two times, or two versions, or two hosts."""

from __future__ import annotations

from typing import Any, TypedDict

import click

from walkback.base.text import printable
from walkback.cli.choosing import Chosen, choosing, profile_of
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, guarded, refuse_both
from walkback.cli.parameter import ParameterType
from walkback.cli.paths import opened
from walkback.cli.walking import OUTPUT

_KNOWN = ("since", "until", "host", "process")


class _Words(ParameterType[dict[str, Any]]):
    """Samples in words: `since=2h,until=1h` or `version=1.2,host=web1`."""

    name = "samples"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        from walkback.store.moments import moment

        if isinstance(value, dict):
            return value
        found: dict[str, Any] = {"words": str(value), "labels": {}}
        for word in str(value).split(","):
            name, sign, its = word.partition("=")
            if not name or not sign:
                self.fail(f"{printable(word)!r} does not say which samples; examples: since=2h,until=1h or version=1.2")
            if name in {"since", "until"}:
                if name in found:
                    self.fail(f"{name} is there twice", param, ctx)
                try:
                    found[name] = moment(its)
                except ValueError as error:
                    self.fail(str(error), param, ctx)
            else:
                # Of several any is fine, as it is of options.
                (found if name in _KNOWN else found["labels"]).setdefault(name, []).append(its)
        return found


@verb(
    "walkback store stacks diff version=1.1 version=1.2",
    "walkback store stacks diff version=1.1 version=1.2 --format html -o diff.html",
    exit_1="no sample is chosen, of one side or of both.",
)
@click.argument("before", type=_Words())
@click.argument("after", type=_Words())
@choosing
@click.option("--format", "form", type=click.Choice(["text", "html"]), help="Output format. [default: text]")
@click.option("--clones", is_flag=True, help="Keep what compilers split off or copied apart: run.cold, run.part.0.")
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="Rows per table.")
@JSON
@OUTPUT
@click.pass_context
def diff(
    ctx: click.Context,
    /,
    before: dict[str, Any],
    after: dict[str, Any],
    form: str | None,
    clones: bool,
    limit: int,
    as_json: bool,
    output: str | None,
    **chosen: Any,
) -> None:
    """Compare two selections of samples.

    BEFORE and AFTER are conditions, such as since=2h,until=1h or host=web1,version=1.2: times, hosts, processes and
    labels. The options select from both.
    """
    if as_json and form is not None:
        refuse_both("--json", "--format")

    for side in (before, after):
        for name in [*side, *side["labels"]]:
            if name not in {"words", "labels"} and (chosen.get(name) or name in dict(chosen["labels"])):
                message = f"{printable(name)} is chosen for both by an option, and for one again"
                raise click.UsageError(message)

    def work(folder: str) -> int:
        from walkback.store.store import Store

        opened_store = Store(folder)
        title = printable(f"{folder}: {before.pop('words')} \u2192 {after.pop('words')}")
        its = Chosen(**chosen)
        with its.working() as workers:
            selections = [its.select(opened_store, workers=workers, **side) for side in (before, after)]
            sides = [profile_of(folder, selection) for selection in selections]
        old, new = sides
        if old is None or new is None:
            return EXIT_FINDINGS
        with opened(output) as out:
            if form == "html":
                from walkback.export.flamegraph import write_difference

                write_difference(old, new, out, title=title, clones=clones)
            else:
                out.writelines(
                    line.encode("utf-8", "surrogateescape") + b"\n" for line in _lines(old, new, limit, as_json, clones)
                )
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


class WholeObject(TypedDict):
    """The weights of all samples of each side, as JSON."""

    before: int
    """The weight of all samples before."""
    after: int
    """The weight of all samples after."""


def _lines(old: Any, new: Any, limit: int, as_json: bool, clones: bool) -> list[str]:
    import json
    from dataclasses import asdict

    from walkback.stacks.changes import difference, table

    found = difference(old, new, clones=clones)
    if not as_json:
        return table(found, new.unit if new.unit == old.unit else "weight", limit)
    whole: WholeObject = {"before": found.before, "after": found.after}
    return [json.dumps({**asdict(one), **whole}) for one in found.functions[:limit]]
