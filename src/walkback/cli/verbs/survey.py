"""`walkback survey`: what SFrame would cost and cover, over all ELF files of a folder, a package or a distribution."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from walkback.base.text import printable
from walkback.cli.command import verb
from walkback.cli.coverage import percent
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JOBS, JSON, complain, guarded
from walkback.cli.paths import EXISTING_FOLDER, FOLDER
from walkback.cli.sources import MEASURED, WORDS, missing_from
from walkback.cli.workers import DASK, working

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from walkback.sections.reading import Tables
    from walkback.surveys.run import Progress, Surveyed
    from walkback.surveys.summary import Summary, VersionSummary

_MOST_SHOWN = 20
"""Lines of what could not be surveyed; all of it is in the tables."""
_BYTES_OF_A_FILE = 200_000
"""A small file takes as long as this many bytes of a large one."""
_OUTCOMES = {
    "measured": "measured",
    "debug": "with debug information only",
    "machine": "of other machines",
    "32-bit": "of 32 bits",
    "core": "core files",
    "error": "that cannot be read",
}


@verb(
    "walkback survey . -o results",
    "walkback survey build libcalls.a -o results --jobs 2",
    exit_1="a file could not be surveyed, or there is no ELF file.",
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=FOLDER)
@click.option("-o", "--output", required=True, type=FOLDER, metavar="DIR", help="Folder for the results.")
@JOBS
@DASK
@click.option(
    "--debug-root",
    "debug_roots",
    multiple=True,
    type=EXISTING_FOLDER,
    metavar="DIR",
    help="Folder with separate debug files, which identify the producer of a file; may be repeated. [default: the "
    "system's]",
)
@click.option("--verify", is_flag=True, help="Also prove the tables against the machine code, as verify does.")
@MEASURED
@JSON
@click.pass_context
def survey(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str,
    jobs: int | None,
    dask: str | None,
    debug_roots: tuple[str, ...],
    verify: bool,
    tables: Tables | None,
    as_json: bool,
) -> None:
    """Measure every ELF file in folders, packages and archives.

    The results go into a folder. If the folder exists, only new and changed files are measured; so the same command
    also resumes a survey that was interrupted.
    """

    def work(folder: str) -> int:
        from walkback.elf.search import DEBUG_ROOTS
        from walkback.surveys.reading import Survey
        from walkback.surveys.run import survey as survey_files
        from walkback.surveys.summary import summary

        with working(jobs, dask) as workers, _shown() as progress:
            done = survey_files(
                paths,
                folder,
                workers=workers,
                debug_roots=debug_roots or DEBUG_ROOTS,
                verify=verify,
                tables=tables,
                progress=progress,
            )
        with Survey(folder).database() as database:
            found = summary(database)
        if as_json:
            _print_json(done, found)
        else:
            _print(done, found, tables)
        return _complain(folder, found)

    try:
        ctx.exit(guarded(work, output, output))
    except KeyboardInterrupt:
        kept = "what was done is kept, and the same command goes on" if Path(output).is_dir() else "nothing was done"
        complain(f"{output}: stopped; {kept}")
        raise click.Abort from None


@contextlib.contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal; gives the function that moves it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[summary]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        finding = bar.add_task("Finding files", total=None, summary="")
        looking: list[rich.TaskID] = []
        begun = files = size = 0.0

        def move(state: Progress) -> None:
            nonlocal begun, files, size
            done, total = _cost(state.files, state.bytes), _cost(state.all_files, state.all_bytes)
            if state.finding:
                bar.update(finding, summary=f"{_counted(state.all_files, 'file')}, {state.all_bytes / 1e6:,.0f} MB")
            elif not looking:
                # What was done in a former run is not to be counted as speed.
                begun, files, size = time.monotonic(), state.files, state.bytes
                bar.remove_task(finding)
                looking.append(bar.add_task("Surveying", total=total, completed=done, summary=""))
            else:
                seconds = max(time.monotonic() - begun, 1e-3)
                summary = f"{state.files:,} of {state.all_files:,} files"
                summary += (
                    f", {(state.files - files) / seconds:,.0f}/s, {(state.bytes - size) / 1e6 / seconds:,.1f} MB/s"
                )
                bar.update(looking[0], completed=done, summary=summary)

        yield move


def _cost(files: int, size: int) -> int:
    """What files take, in bytes: each as much as some beside its own."""
    return files * _BYTES_OF_A_FILE + size


def _print(done: Surveyed, found: Summary, tables: Tables | None = None) -> None:
    before = f", {done.files - done.done:,} of them in former runs" if done.done < done.files else ""
    click.echo(f"{printable(done.folder)}: {_counted(done.files, 'file')} examined{before}")
    words = {**_OUTCOMES, "without": f"without {missing_from(tables)}"}
    kinds = ", ".join(f"{count:,} {words.get(outcome, outcome)}" for outcome, count in found.outcomes.items())
    click.echo(f"ELF files: {found.places:,} ({found.files:,} distinct), {found.bytes:,} bytes")
    if kinds:
        click.echo(f"Of these: {kinds}")
    if found.code and found.described:
        shares = [f"{percent(size, found.code)} by {WORDS[kind]}" for kind, size in found.described.items()]
        click.echo(f"Code: {found.code:,} bytes, described {', '.join(shares)}")
    if found.versions:
        click.echo(f"\n{'':>9} {'files':>9} {'bytes':>15} {'covered':>10}")
    for one in found.versions:
        covered = percent(one.covered, one.functions) if one.functions else "-"
        click.echo(f"version {one.version} {one.files:9,} {one.bytes:15,} {covered:>10}")
    _print_compared(found)
    _print_left_out(found)
    for proof in found.proofs:
        proved = percent(proof.proved, proof.reached) if proof.reached else "-"
        wrong = f"{proof.functions_wrong:,} of {_counted(proof.functions, 'function')} wrong"
        table = f"{proof.source} of {_counted(proof.files, 'file')}"
        click.echo(f"verified:  {table}: {proved} of the code proved, {wrong}")


def _print_compared(found: Summary) -> None:
    """The versions against `.eh_frame` and `.eh_frame_hdr`."""
    compared = [one for one in found.versions if one.compared.files]
    if compared:
        click.echo("\nOf the files that have .eh_frame and no other table:")
        click.echo(f"{'':>9} {'files':>9} {'bytes':>15} {'.eh_frame+hdr':>15} {'ratio':>7}")
    for one in compared:
        its = one.compared
        click.echo(f"version {one.version} {its.files:9,} {its.bytes:15,} {its.call_frames:15,} {_ratio(one):>7}")
    shared = [one for one in found.shared if one.compared.files]
    if shared and [one.compared for one in shared] != [one.compared for one in compared]:
        files = _counted(shared[0].compared.files, "file")
        ratios = ", ".join(f"version {one.version} {_ratio(one)}" for one in shared)
        click.echo(f"Ratios over the {files} that every version can be made for: {ratios}")


def _print_left_out(found: Summary) -> None:
    """Why the newest version does not describe all code."""
    if found.left_out:
        click.echo("\nCode that the newest version does not describe:")
        click.echo(f"{'bytes':>15} {'functions':>11}  reason")
    for one in found.left_out:
        functions = "-" if one.functions is None else f"{one.functions:,}"
        click.echo(f"{one.bytes:15,} {functions:>11}  {one.reason} ({one.code})")


def _ratio(one: VersionSummary) -> str:
    return f"{one.compared.bytes / one.compared.call_frames:.3f}"


class SurveyedObject(TypedDict):
    """What a run did, without what it found, as JSON."""

    type: Literal["survey"]
    """The type of the object."""
    survey: str
    """The folder."""
    looked_through: int
    """The number of files on disk that are ELF files or contain some."""
    now: int
    """The number of them that this run read."""


def _print_json(done: Surveyed, found: Summary) -> None:
    import json

    run: SurveyedObject = {"type": "survey", "survey": done.folder, "looked_through": done.files, "now": done.done}
    click.echo(json.dumps({**run, **asdict(found)}))


def _complain(folder: str, found: Summary) -> int:
    """What could not be surveyed; returns the exit status."""
    for where, why in found.unsurveyed[:_MOST_SHOWN]:
        complain(f"{where}: {why}")
    more = len(found.unsurveyed) - _MOST_SHOWN
    if more > 0:
        complain(f"{folder}: and {more:,} more, in the tables troubles and files")
    if not found.files:
        complain(f"{folder}: no ELF file was found")
    return EXIT_FINDINGS if found.unsurveyed or not found.files else EXIT_FINE


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
