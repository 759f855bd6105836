"""`walkback add`: finished files get their SFrame sections."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from walkback.base.errors import MissingError, WalkbackError
from walkback.base.text import printable
from walkback.cli.command import verb
from walkback.cli.consumer import FOR_ANY, refuse_both
from walkback.cli.coverage import LIMIT, STRICT, derived_object, percent, print_derived
from walkback.cli.output import CALL_FRAMES, EXIT_FINDINGS, EXIT_FINE, FILE, JSON, for_each_file, guarded
from walkback.cli.paths import account, output_for
from walkback.cli.progress import progress
from walkback.cli.trees import binaries, link_again
from walkback.cli.written import IN_PLACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from walkback.sections.install import Added


@verb("walkback add hello -o hello.new --for glibc", "walkback add --in-place build/")
@FILE
@IN_PLACE
@click.option("--in-place", is_flag=True, help="Change the files; needed for a folder, where every binary gets SFrame.")
@click.option("--version", type=click.IntRange(1, 3), metavar="N", help="SFrame version to write. [default: 3]")
@FOR_ANY
@CALL_FRAMES
@STRICT
@LIMIT
@JSON
@click.pass_context
def add(
    ctx: click.Context,
    files: tuple[str, ...],
    output: str | None,
    in_place: bool,
    version: int | None,
    consumer: str | None,
    section: str | None,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Add SFrame to binaries, objects and archives, and prove it right.

    One file gives a full account; several files, an archive or a folder give one line for each binary and the totals.
    In a folder, binaries without call frame information stay as they are.
    """
    import json

    refuse_both(consumer, version)
    _check_places(files, output, in_place)
    if len(files) == 1:
        output = output_for(files[0], output)
    short = len(files) > 1 or _has_members(files[0])
    total = _Total()

    def work(file: str) -> int:
        uncovered = False
        for added in _added(file, output, version, consumer, section):
            uncovered = uncovered or bool(added.derived.uncovered)
            total.count(added)
            with account(output):
                if as_json:
                    notes = [*added.derived.notes, *added.notes]
                    click.echo(json.dumps({**derived_object(added.derived), "type": "added", "notes": notes}))
                elif short:
                    click.echo(_line(added))
                else:
                    _print_account(added, output or file, limit)
        return EXIT_FINDINGS if strict and uncovered else EXIT_FINE

    status = max(
        (_of_folder(file, work, total) if os.path.isdir(file) else for_each_file([file], work)) for file in files
    )
    if short and not as_json and (total.binaries or total.without):
        with account(output):
            click.echo(total.text())
    ctx.exit(status)


@dataclass(slots=True)
class _Total:
    """What was added to all files."""

    binaries: int = 0
    functions: int = 0
    covered: int = 0
    bytes: int = 0
    without: int = 0
    """Binaries of folders that have no call frame information."""

    def count(self, added: Added) -> None:
        self.binaries += 1
        self.functions += added.derived.functions
        self.covered += added.derived.covered
        self.bytes += len(added.derived.contents)

    def text(self) -> str:
        what = "binary" if self.binaries == 1 else "binaries"
        without = f"; {self.without} without call frame information" if self.without else ""
        functions = f"{self.covered} of {self.functions} functions"
        return f"{self.binaries} {what}: {functions} covered, {self.bytes} bytes of SFrame{without}"


def _check_places(files: tuple[str, ...], output: str | None, in_place: bool) -> None:
    if output is not None and (len(files) > 1 or in_place):
        message = f"--output is for one file{', and excludes --in-place' if in_place else ''}"
        raise click.UsageError(message)
    folder = next((file for file in files if os.path.isdir(file)), None)
    if folder is None:
        return
    if output is not None:
        message = "--output is for one file, and not for a folder"
        raise click.UsageError(message)
    if not in_place:
        message = f"{printable(folder)} is a folder; --in-place adds SFrame to every binary in it"
        raise click.UsageError(message)


def _has_members(file: str) -> bool:
    """Whether this is a folder or an archive; what cannot be read has none."""
    from walkback.elf import OpenFile, is_archive

    try:
        return os.path.isdir(file) or is_archive(OpenFile(file))
    except WalkbackError:
        return False


def _added(
    file: str, output: str | None, version: int | None, consumer: str | None, section: str | None
) -> list[Added]:
    from walkback.elf import OpenFile, is_archive
    from walkback.sections.install import add, add_to_archive

    opened = OpenFile(file)
    if is_archive(opened):
        return add_to_archive(opened, output, version=version, consumer=consumer, section=section)
    return [add(opened, output, version=version, consumer=consumer, section=section)]


def _of_folder(folder: str, work: Callable[[str], int], total: _Total) -> int:
    """The exit status of the work on every binary in a folder that has call frame information."""

    def with_links(names: list[str]) -> int:
        try:
            status = work(names[0])
        except MissingError:
            total.without += 1
            return EXIT_FINE
        link_again(*names)
        return status

    def of_all(folder: str) -> int:
        found = list(binaries(folder))
        status = EXIT_FINE
        shown = not sys.stdout.isatty()  # whose lines show how far this is
        with progress("adding SFrame", len(found), "binaries", shown=shown) as move:
            for number, names in enumerate(found, start=1):
                status = max(status, guarded(with_links, names, names[0]))
                move(number, total.binaries)
        return status

    return guarded(of_all, folder, folder)


def _line(added: Added) -> str:
    derived = added.derived
    share = f" ({percent(derived.covered, derived.functions)})" if derived.functions else ""
    functions = f"{derived.covered} of {derived.functions} functions{share}"
    return printable(f"{derived.source.file}: {functions}, {len(derived.contents)} bytes")


def _print_account(added: Added, target: str, limit: int) -> None:
    print_derived(added.derived, limit)
    click.echo(f"  proved: the same rule at every address; written to {printable(target)}")
    for note in added.notes:
        click.echo(f"  note: {note}")
