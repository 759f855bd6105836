"""`walkback add`: finished files get their SFrame sections."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

import click

from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, UnreadableError, WalkbackError
from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.consumer import FOR_ANY, refuse_both
from walkback.cli.coverage import LIMIT, REPAIR, STRICT, VERIFY, derived_object, percent, print_derived
from walkback.cli.output import (
    CALL_FRAMES,
    EXIT_FINDINGS,
    EXIT_FINE,
    EXIT_UNREADABLE,
    FILE,
    JOBS,
    JSON,
    complain,
    for_each_result,
    guarded,
)
from walkback.cli.paths import STDIN, account, output_for
from walkback.cli.progress import progress
from walkback.cli.sources import SOURCE, missing_from
from walkback.cli.trees import Binary, binaries, link_again
from walkback.cli.written import IN_PLACE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from walkback.sections.install import Added
    from walkback.sections.reading import Tables


@verb(
    "walkback add hello -o hello.new --for glibc",
    "walkback add --in-place build/",
    exit_1="a file that is named, or every member of an archive, has no unwind tables; with "
    "--strict, also if a function is not covered, or is left out by --verify.",
)
@FILE
@IN_PLACE
@click.option("--in-place", is_flag=True, help="Change the files; needed for a folder, where every binary gets SFrame.")
@click.option("--version", type=click.IntRange(1, 3), metavar="N", help="SFrame version to write. [default: 3]")
@FOR_ANY
@SOURCE
@CALL_FRAMES
@VERIFY
@REPAIR
@STRICT
@LIMIT
@JOBS
@JSON
@click.pass_context
def add(
    ctx: click.Context,
    files: tuple[str, ...],
    output: str | None,
    in_place: bool,
    version: int | None,
    consumer: str | None,
    tables: Tables,
    section: str | None,
    verify: bool,
    repair: bool,
    strict: bool,
    limit: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Add SFrame to binaries, objects and archives, and prove it right.

    One file gives a full account; several files, an archive or a folder give one line for each binary and the totals.
    In a folder, binaries without unwind tables stay as they are.
    """
    import json

    refuse_both(consumer, version)
    _check_places(files, output, in_place)
    if len(files) == 1:
        output = output_for(files[0], output)
    short = len(files) > 1 or _has_members(files[0])
    total = _Done()
    options = {"version": version, "tables": tables, "section": section, "verify": verify, "repair": repair}

    def work(file: str, listed: Binary | None = None) -> _Done:
        done = _Done()
        for added in _added(file, listed, output, consumer, options):
            done.count(added)
            if strict and not added.derived.is_whole:
                done.status = EXIT_FINDINGS
            with account(output):
                if as_json:
                    notes = [*added.derived.notes, *added.notes]
                    click.echo(json.dumps({**derived_object(added.derived), "type": "added", "notes": notes}))
                elif short:
                    click.echo(_line(added))
                else:
                    _print_account(added, output or file, limit)
        return done

    status = _of_all(files, work, total, jobs)
    if section is not None and not total.binaries:
        status = max(status, EXIT_FINDINGS)
    if short and not as_json and (total.binaries or total.unchanged):
        with account(output):
            click.echo(total.text(section or missing_from(tables)))
    ctx.exit(status)


@dataclass(slots=True)
class _Done:
    """What was added to one file, or to all."""

    status: int = EXIT_FINE
    binaries: int = 0
    functions: int = 0
    covered: int = 0
    bytes: int = 0
    unchanged: int = 0
    """Binaries of folders that have no unwind tables, or that the consumer does not read."""

    def count(self, added: Added) -> None:
        self.binaries += 1
        self.functions += added.derived.functions
        self.covered += added.derived.covered
        self.bytes += len(added.derived.contents)

    def add(self, other: _Done) -> int:
        """Returns the exit status of that one."""
        self.binaries += other.binaries
        self.functions += other.functions
        self.covered += other.covered
        self.bytes += other.bytes
        self.unchanged += other.unchanged
        return other.status

    def text(self, missing: str) -> str:
        """The totals; what is `missing` in binaries of folders that stay as they are, in words."""
        what = "binary" if self.binaries == 1 else "binaries"
        unchanged = f"; {self.unchanged} without {missing}" if self.unchanged else ""
        functions = f"{self.covered} of {counted(self.functions, 'function')}"
        return f"{self.binaries} {what}: {functions} covered, {self.bytes} bytes of SFrame{unchanged}"


def _check_places(files: tuple[str, ...], output: str | None, in_place: bool) -> None:
    folder = next((file for file in files if os.path.isdir(file)), None)
    if output is not None and (len(files) > 1 or in_place or folder is not None):
        message = "--output is for one file, and cannot be combined with --in-place"
        raise click.UsageError(message)
    if in_place and STDIN in files:
        message = "--in-place changes files, and standard input is none"
        raise click.UsageError(message)
    if folder is not None and not in_place:
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
    file: str, listed: Binary | None, output: str | None, consumer: str | None, options: dict[str, Any]
) -> list[Added]:
    from walkback.elf import OpenFile, is_archive
    from walkback.packages.found import one_to_rewrite
    from walkback.sections.install import add, add_to_archive
    from walkback.sframe.consumers import CONSUMERS

    opened = OpenFile(file)
    if listed is not None and not listed.is_at(opened.status):
        raise UnreadableError("another file took its place after the folder was listed", file=file)
    if is_archive(opened):
        return add_to_archive(opened, output, consumer=consumer, **options)
    elf = one_to_rewrite(opened)
    if listed is not None and consumer is not None and not (CONSUMERS[consumer].walks or elf.is_relocatable):
        raise MissingError("a linker does not read the SFrame of linked files", file=file)
    return [add(elf, output, consumer=consumer, **options)]


def _of_all(files: Sequence[str], work: Callable[..., _Done], total: _Done, jobs: int | None) -> int:
    """The exit status of the work on these files and folders."""
    status = EXIT_FINE
    for are_folders, its in groupby(files, os.path.isdir):
        if are_folders:
            status = max(status, *(_of_folder(folder, work, total, jobs) for folder in its))
        else:
            named = list(its)
            jobs = 1 if _some_are_one(named) else jobs
            status = max(status, for_each_result(named, work, total.add, jobs, writes=True))
    return status


def _some_are_one(files: Sequence[str]) -> bool:
    """Whether two of these names stand for one file, to which nothing can be added twice at once."""
    found = []
    for file in files:
        with contextlib.suppress(OSError):
            status = os.stat(file)
            found.append((status.st_dev, status.st_ino))
    return len(set(found)) < len(found)


def _of_folder(folder: str, work: Callable[[str, Binary], _Done], total: _Done, jobs: int | None) -> int:
    """The exit status of the work on every binary in a folder that has call frame information."""
    problems: list[OSError] = []

    def of_file(file: str, *, again: bool = False) -> _Done:
        binary, done = found[file], _Done()

        def add_and_link(listed: Binary) -> int:
            nonlocal done
            try:
                done = work(file, listed)
            except MissingError:
                done.unchanged = 1
            finally:
                with contextlib.suppress(FileNotFoundError):
                    link_again(binary)
                    if binary.links > len(binary.names) and not binary.is_at(os.lstat(file)):
                        complain(f"{file}: hard links outside of the folder keep the old file")
            return done.status

        done.status = guarded(add_and_link, binary.listed_again() if again else binary, file)
        return done

    found = {binary.names[0]: binary for binary in binaries(folder, problems.append)}
    for error in problems:
        complain(f"{os.fsdecode(error.filename)}: {error.strerror}")
    status = EXIT_UNREADABLE if problems else EXIT_FINE
    shown = not sys.stdout.isatty()  # whose lines show how far this is
    with progress("adding SFrame", len(found), "binaries", shown=shown) as move:
        numbers = count(1)

        def then(done: _Done) -> int:
            status = total.add(done)
            move(next(numbers), total.binaries)
            return status

        again = partial(of_file, again=True)
        return max(status, for_each_result(list(found), of_file, then, jobs, writes=True, again=again))


def _line(added: Added) -> str:
    derived = added.derived
    share = f" ({percent(derived.covered, derived.functions)})" if derived.functions else ""
    functions = f"{derived.covered} of {counted(derived.functions, 'function')}{share}"
    return printable(f"{derived.source.file}: {functions}, {len(derived.contents)} bytes")


def _print_account(added: Added, target: str, limit: int) -> None:
    print_derived(added.derived, limit)
    other = " but those repaired" if added.derived.repaired else ""
    click.echo(f"  proved: the same rule at every address{other}; written to {printable(target)}")
    for note in added.notes:
        click.echo(f"  note: {note}")
