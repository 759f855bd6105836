"""The options for the form of new SFrame, and the report of what was left out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypedDict

import click

from walkback.base.dataclass import dataclass
from walkback.base.errors import IncompleteError
from walkback.base.text import counted, printable
from walkback.cli.consumer import refuse_both
from walkback.cli.coverage import LIMIT
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, complain, guarded
from walkback.cli.paths import OUTPUT_FILE, account

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from walkback.base.errors import LeftOut

IN_PLACE = click.option("-o", "--output", type=OUTPUT_FILE, help="Write a copy; do not change the file.")
VERSION = click.option(
    "--version",
    type=click.IntRange(1, 3),
    metavar="N",
    help="SFrame version to write. [default: the highest in the input]",
)
_PCREL = click.option(
    "--pcrel",
    type=click.Choice(["yes", "no"]),
    help="Whether function starts are relative to their own fields, or to the section. [default: yes, or as in "
    "version 2 from before errata 1]",
)
_LEAVE_OUT = click.option(
    "--leave-out",
    is_flag=True,
    help="Leave out functions that cannot be expressed or read, and list them; ignore unknown flags and "
    "auxiliary headers.",
)
_STRICT = click.option("--strict", is_flag=True, help="Exit 1 if a function is left out; the file is still written.")

EXIT_1 = (
    "there is no SFrame section, or the version cannot express a function, and nothing is written; with --strict, also "
    "if --leave-out left out a function."
)
"""When the exit status of these verbs is 1."""

Subject = str | tuple[str, ...]
"""The file of a verb that takes one, or the files."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How to end and what to print."""

    strict: bool
    limit: int
    as_json: bool
    output: str | None


class Written(Protocol):
    """What the functions return that write SFrame: a dataclass with these among its fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def left_out(self) -> Sequence[LeftOut]: ...

    @property
    def notes(self) -> Sequence[str]: ...


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that these verbs share."""
    for option in (JSON, LIMIT, _STRICT, _LEAVE_OUT, _PCREL):
        command = option(command)
    return command


def wanted_pcrel(pcrel: str | None, version: int | None, consumer: str | None = None) -> bool | None:
    """The choice; version 1 has none, and a consumer can want one."""
    refuse_both(consumer, version)
    if pcrel == "no" and consumer == "linux":
        message = "Linux wants starts that count from their own fields"
        raise click.UsageError(message)
    if pcrel == "yes" and version == 1:
        message = "version 1 has no starts that count from their own fields"
        raise click.UsageError(message)
    return None if pcrel is None else pcrel == "yes"


class FileObject(TypedDict):
    """What one file was read for, as JSON."""

    file: str
    """The file."""


class FilesObject(TypedDict):
    """What several files were read for, as JSON."""

    files: tuple[str, ...]
    """The files."""


class RefusedObject(TypedDict):
    """What cannot be written, without its files, as JSON."""

    type: Literal["refused"]
    """The type of the object."""
    left_out: list[dict[str, Any]]
    """The functions that cannot be expressed."""


def run(subject: Subject, work: Callable[[], Written], how: Writing) -> int:
    """Do some work that writes a file, and that reports it; returns the exit status."""
    import json

    name = _only(subject)

    def status(name: str) -> int:
        try:
            done = work()
        except IncompleteError as error:
            complain(f"{error.within(file=name)}; --leave-out writes the rest")
            with account(how.output):
                if how.as_json:
                    refused: RefusedObject = {
                        "type": "refused",
                        "left_out": [asdict(one) for one in error.left_out],
                    }
                    click.echo(json.dumps({**refused, **_named(subject)}))
                else:
                    _print_left_out("cannot be said", error.left_out, name, how.limit, err=True)
            return EXIT_FINDINGS
        return EXIT_FINDINGS if how.strict and done.left_out else EXIT_FINE

    return guarded(status, name, name)


def print_done(kind: Mapping[str, object], subject: Subject, done: Written, lines: Sequence[str], how: Writing) -> None:
    """What was written: in these lines, with what was left out and noted; or as JSON, of this type."""
    import json

    with account(how.output):
        if how.as_json:
            click.echo(json.dumps({**kind, **_named(subject), **asdict(done)}))
            return
        for line in lines:
            click.echo(printable(line))
        _print_left_out("left out", done.left_out, _only(subject), how.limit)
        for note in done.notes:
            click.echo(printable(f"  note: {note}"))


def _only(subject: Subject) -> str:
    """The one file that is spoken of, if it is one."""
    if isinstance(subject, str):
        return subject
    return subject[0] if len(subject) == 1 else ""


def _named(subject: Subject) -> Mapping[str, object]:
    found: FileObject | FilesObject = {"file": subject} if isinstance(subject, str) else {"files": subject}
    return found


def _print_left_out(title: str, left_out: Sequence[LeftOut], file: str, limit: int, *, err: bool = False) -> None:
    """Each function with its place and the reason, and with its file if that is not the one that is spoken of."""
    for one in left_out[:limit]:
        known = file in {one.file, f"{one.file}@{file.rpartition('@')[2]}"}
        where = one.place if known else f"{one.file}: {one.place}"
        click.echo(printable(f"  {title}: {where}: {one.reason}"), err=err)
    if len(left_out) > limit:
        more = counted(len(left_out) - limit, "more function" if limit else "function")
        click.echo(f"  {title}: {more}", err=err)


def versions_text(versions: Sequence[int], version: int) -> str:
    """What there was and what there is."""
    there_was = " and ".join(map(str, versions))
    return f"version {there_was}" if versions == (version,) else f"version {there_was} to {version}"
