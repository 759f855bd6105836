"""`walkback check`: whether a section is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import codes
from walkback.cli.output import (
    ADDRESS,
    COLOUR,
    EXIT_FINDINGS,
    EXIT_FINE,
    FILE,
    JOBS,
    JSON,
    SECTION,
    check_options,
    for_each_file,
)

if TYPE_CHECKING:
    from walkback.sframe.checking import Finding, Report


@verb(
    "walkback check a.out",
    "walkback check libcalls.a --for gnu-ld",
    exit_1="there are findings, or there is no such section.",
)
@FILE
@click.option(
    "--for",
    "consumer",
    type=click.Choice(["linux", "linux-kernel", "glibc", "gnu-ld"]),
    help="Report whether this consumer would load the section, and where its walk would stop.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="CODE",
    help="Ignore the findings of this rule; may be repeated.",
    shell_complete=codes,
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="List at most this many findings of each rule.",
)
@JSON
@SECTION
@ADDRESS
@JOBS
@COLOUR
@click.pass_context
def check(
    ctx: click.Context,
    files: tuple[str, ...],
    consumer: str | None,
    ignored: tuple[str, ...],
    limit: int,
    as_json: bool,
    section: str | None,
    address: int | None,
    jobs: int | None,
) -> None:
    """Check SFrame sections against every rule of the format."""
    import json

    from walkback.sections.check import check as check_file
    from walkback.sframe.checking import CODES

    unknown = set(ignored) - CODES.keys()
    if unknown:
        raise click.BadParameter(f"there is no rule {', '.join(sorted(unknown))}", param_hint="--ignore")

    check_options(files, section, address)

    def work(file: str) -> int:
        status = EXIT_FINE
        for report in check_file(
            file, section=section, address=address or 0, consumer=consumer, limit=limit, ignore=ignored
        ):
            if as_json:
                click.echo(json.dumps(_report_object(report)))
            else:
                _print_report(report)
            if report.findings:
                status = EXIT_FINDINGS
        return status

    ctx.exit(for_each_file(files, work, jobs))


_NOTE = "note"
_COLOURS = {"broken": "red", "refused": "magenta", "stops": "magenta", "wrong": "yellow", "odd": "cyan", _NOTE: "blue"}


def _print_report(report: Report) -> None:
    source = report.source
    where = printable(f"{source.file}: {source.name or 'section'}")
    for finding in report.findings:
        _print_finding(where, finding.severity.name.lower(), finding)
    for finding in report.notes:
        _print_finding(where, _NOTE, finding)
    for word, unlisted in (("", report.unlisted), (f"{_NOTE}: ", report.unlisted_notes)):
        for code, count in sorted(unlisted.items()):
            click.echo(f"{where}: {word}and {count} more [{code}]")
    if not report.findings:
        size = f"{counted(report.functions, 'function')}, {counted(report.rows, 'row')}"
        click.echo(f"{where}: {size if len(source.data) else 'empty'}: no findings")
    if report.consumer:
        places = f"; its walk would stop at {counted(report.stops, 'place')}" if report.stops else ""
        click.echo(f"{where}: {report.consumer} would {'' if report.loads else 'not '}load it{places}")


def _print_finding(where: str, word: str, finding: Finding) -> None:
    place = where if finding.offset is None else f"{where}+{finding.offset:#x}"
    subject = _subject(finding)
    click.echo(
        f"{place}: {click.style(word, fg=_COLOURS[word])}: {subject}{': ' if subject else ''}"
        f"{finding.message} [{finding.code}]"
    )


def _subject(finding: Finding) -> str:
    """Function and row."""
    parts = []
    if finding.function is not None:
        parts.append(f"function {finding.function}" + (f" ({printable(finding.symbol)})" if finding.symbol else ""))
    if finding.row is not None:
        parts.append(f"row {finding.row}")
    return ", ".join(parts)


class NoteObject(TypedDict):
    """A note, as JSON."""

    code: str
    """The rule."""
    message: str
    """A description."""
    offset: int | None
    """The offset in the section."""
    function: int | None
    """The function's index."""
    symbol: str | None
    """The function's symbol."""
    row: int | None
    """The row's index in the function."""


class FindingObject(NoteObject):
    """A finding, as JSON."""

    severity: str
    """`broken`, `refused`, `stops`, `wrong` or `odd`."""


class ReportObject(TypedDict):
    """What was found in a section, as JSON."""

    file: str
    """The file."""
    section: str | None
    """The section; null for raw bytes."""
    functions: int
    """The number of functions."""
    rows: int
    """The number of rows."""
    consumer: str | None
    """The consumer given with `--for`."""
    loads: bool | None
    """Whether the consumer would load the section; null without `--for`."""
    stops: int | None
    """The number of places where its walk would stop; null without `--for`."""
    findings: list[FindingObject]
    """The findings, worst first."""
    unlisted: dict[str, int]
    """For each rule, the number of findings that are not listed."""
    notes: list[NoteObject]
    """The notes."""
    unlisted_notes: dict[str, int]
    """For each rule, the number of notes that are not listed."""


def _report_object(report: Report) -> ReportObject:
    return {
        "file": report.source.file,
        "section": report.source.name,
        "functions": report.functions,
        "rows": report.rows,
        "consumer": report.consumer,
        "loads": report.loads,
        "stops": report.stops,
        "findings": [{**_note_object(one), "severity": one.severity.name.lower()} for one in report.findings],
        "unlisted": report.unlisted,
        "notes": [_note_object(one) for one in report.notes],
        "unlisted_notes": report.unlisted_notes,
    }


def _note_object(finding: Finding) -> NoteObject:
    return {
        "code": finding.code,
        "message": finding.message,
        "offset": finding.offset,
        "function": finding.function,
        "symbol": finding.symbol,
        "row": finding.row,
    }
