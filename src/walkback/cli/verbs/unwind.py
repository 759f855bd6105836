"""`walkback unwind`: the stacks of a recording of perf."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import click

from walkback.base.dataclass import dataclass
from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.mismatches import mismatch_line
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, complain, guarded, refuse_both
from walkback.cli.paths import OUTPUT_FILE, STREAM, is_stdout, opened, refuse_input, refuse_terminal, standard_input
from walkback.cli.progress import progress
from walkback.cli.recordings import NO_SAMPLES, NOTHING_TO_WALK, account_for, complain_of_losses
from walkback.cli.storing import LABEL, STORE, check_store, storing
from walkback.cli.walking import (
    FORMAT_NAMES,
    LIMIT,
    MARK_INCOMPLETE,
    OUTPUT,
    Shared,
    check_limit,
    complain_of,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.capture.methods import Comparing
    from walkback.stacks.profile import SampleBatch

_MOST_MISMATCHES = 10
"""Wrong rules that `--compare` prints."""


@verb(
    "walkback unwind perf.data --format top",
    "walkback unwind perf.data --format html -o flame.html",
    exit_1="there are no samples, no stack is complete, except with --only fp, or the recording is "
    "damaged or misses something.",
)
@click.argument("file", metavar="PERF.DATA", type=STREAM)
@click.option("--format", "form", type=click.Choice(FORMAT_NAMES), help="Output format. [default: folded]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per sample; same as --format json.")
@click.option(
    "--compare",
    metavar="WAYS",
    help="Measure the accuracy of these methods: sframe, cfi, go, code, fp, auto, separated by commas.",
)
@click.option("--chart", type=OUTPUT_FILE, help="With --compare: write a chart to this file, as SVG.")
@click.option(
    "--weight",
    type=click.Choice(["samples", "period"]),
    default="samples",
    show_default=True,
    help="Count samples, or add up their periods.",
)
@LIMIT
@click.option("--kernel/--no-kernel", default=True, help="Show kernel frames, or leave them out.")
@MARK_INCOMPLETE
@STORE
@LABEL
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Number of threads that walk. [default: one per processor]",
)
@OUTPUT
@options
@click.pass_context
def unwind(
    ctx: click.Context,
    /,
    file: str,
    form: str | None,
    as_json: bool,
    compare: str | None,
    chart: str | None,
    weight: str,
    limit: int | None,
    kernel: bool,
    mark_incomplete: bool,
    store: str | None,
    labels: tuple[tuple[str, str], ...],
    threads: int | None,
    **shared: Any,
) -> None:
    """Unwind a perf recording: folded stacks, flame graphs, tables.

    Record with `perf record --call-graph dwarf`. PERF.DATA can be - for the output of `perf record -o -`.
    """
    common = Shared(**shared)
    if as_json and form not in {None, "json"}:
        refuse_both("--json", "--format")
    for written in (common.output, chart):
        refuse_input(file, written)
    if compare is not None:
        if form is not None or common.only is not None or common.output is not None or store is not None:
            message = (
                "--compare prints a table; it goes with --chart and --json, not with --format, --only, --store or -o"
            )
            raise click.UsageError(message)
        if chart is not None and is_stdout(chart):
            message = "the table goes to standard output, and the chart has to go elsewhere"
            raise click.UsageError(message)
        methods = _methods(compare)
        ctx.exit(guarded(lambda name: _compare(name, methods, chart, as_json, common), file, file))
    check_limit(limit, form)
    if chart is not None:
        message = "--chart is for --compare"
        raise click.UsageError(message)
    check_store(store, labels)
    # With a store nothing else is written unless that was asked for.
    usual = "folded" if store is None or common.output is not None else None
    wanted = _Wanted(
        "json" if as_json else form or usual, weight == "period", limit, kernel, mark_incomplete, threads, store, labels
    )
    ctx.exit(guarded(lambda name: _unwind(name, wanted, common), file, file))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to write."""

    form: str | None
    by_period: bool
    limit: int | None
    kernel: bool
    mark: bool
    threads: int | None
    store: str | None
    labels: tuple[tuple[str, str], ...]


def _methods(text: str) -> list[str]:
    """The ways to compare, by their names."""
    from walkback.capture.methods import METHODS

    names = text.split(",")
    for name in names:
        if name not in METHODS:
            message = f"--compare takes {', '.join(METHODS)}, and not {printable(name)!r}"
            raise click.UsageError(message)
    return list(dict.fromkeys(names))


def _unwind(file: str, wanted: _Wanted, common: Shared) -> int:
    import numpy as np

    from walkback.capture.unwinding import Collector, Unwinding
    from walkback.export.formats import FORMATS

    form = FORMATS[wanted.form] if wanted.form is not None else None
    streamed, timeline = form is not None and form.streamed, form is not None and form.timeline
    if form is not None and form.binary:
        refuse_terminal(f"--format {form.name}", common.output)
    chosen = common.walking() | {"kernel": wanted.kernel, "threads": wanted.threads, "names_last": not streamed}
    unwinding = Unwinding(standard_input(file) or file, **chosen)
    ends = np.zeros(256, np.int64)
    collector = Collector(unwinding, by_period=wanted.by_period, threads=timeline, times=timeline)
    # Lines that are printed to the terminal while the bar is there would tear it.
    printed = common.output is None or is_stdout(common.output)
    shown = not streamed or not printed or not sys.stdout.isatty()
    with (
        storing(wanted.store, wanted.labels, unwinding, by_period=wanted.by_period) as keep,
        progress("unwinding", unwinding.recording.total, "samples", shown=shown) as move,
    ):

        def batches() -> Iterator[SampleBatch]:
            for batch in unwinding:
                ends[:] += np.bincount(batch.end, minlength=256)
                keep(batch)
                yield batch
                move(unwinding.recording.position(), int(ends.sum()))

        if form is not None and streamed:
            with opened(common.output) as out:
                form.export(batches(), out)
        else:
            for batch in batches():
                if form is not None:
                    collector.add(batch)
    if form is not None and not streamed:
        found = collector.profile()
        limited = {} if wanted.limit is None else {"limit": wanted.limit}
        with opened(common.output) as out:
            form.export(found.marked() if wanted.mark else found, out, **limited)
    return account_for(file, unwinding.recording, ends, unwinding.troubles, common.only)


def _compare(file: str, methods: list[str], chart: str | None, as_json: bool, common: Shared) -> int:
    from walkback.base.replace import replace_file
    from walkback.capture.methods import Comparing
    from walkback.stacks.accuracy import chart as drawn
    from walkback.stacks.accuracy import measures

    comparing = Comparing(
        standard_input(file) or file,
        methods,
        max_stack=common.max_stack,
        search=common.searching.search,
        cache=common.cache,
    )
    samples = 0
    with progress("comparing", comparing.recording.total, "samples") as move:
        for count in comparing:
            samples += count
            move(comparing.recording.position(), samples)
    rows = comparing.rows
    _print_comparison(comparing, as_json=as_json)
    if chart is not None:
        replace_file(chart, [drawn(measures(rows), f"Accuracy against call frame information: {file}").encode()])
    walked = any(row.stacks for row in rows)
    if not walked:
        complain(f"{file}: {NOTHING_TO_WALK if samples else NO_SAMPLES}")
    elif not comparing.complete:
        complain(f"{file}: no stack is complete")
    complain_of_losses(file, comparing.recording)
    complain_of(file, comparing.troubles)
    fine = comparing.complete and not comparing.recording.troubles and not comparing.recording.counts.damaged
    return EXIT_FINE if fine else EXIT_FINDINGS


class PassedObject(TypedDict):
    """A wrong rule that stacks pass, without what is wrong, as JSON."""

    type: Literal["mismatch"]
    """The type of the object."""
    file: str
    """The file."""
    stacks: int
    """The number of stacks with a frame there."""


def _print_comparison(comparing: Comparing, *, as_json: bool) -> None:
    """Print the table of the methods, and the wrong rules that stacks pass."""
    import json
    from dataclasses import asdict

    from walkback.stacks.accuracy import bars, table

    rows = comparing.rows
    passed = comparing.mismatches()
    if as_json:
        for row in rows:
            click.echo(json.dumps(row.as_object()))
        for one in passed:
            head: PassedObject = {"type": "mismatch", "file": one.file, "stacks": one.stacks}
            click.echo(json.dumps({**head, **asdict(one.mismatch)}))
        return
    for line in table(rows):
        click.echo(line)
    if sys.stdout.isatty():
        click.echo()
        for line in bars(rows):
            click.echo(line)
    for one in passed[:_MOST_MISMATCHES]:
        place = f"{printable(one.file)}: {mismatch_line(one.mismatch)}"
        click.echo(f"wrong rule on {counted(one.stacks, 'stack')}: {place}")
    if len(passed) > _MOST_MISMATCHES:
        click.echo(f"and {counted(len(passed) - _MOST_MISMATCHES, 'more rule')}")
