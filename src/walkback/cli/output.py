"""Printing and exit statuses, the same for all verbs."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import click

from walkback.base.errors import MissingError, WalkbackError
from walkback.base.text import printable
from walkback.cli.completion import sections
from walkback.cli.parameter import ParameterType
from walkback.cli.paths import INPUT_FILE
from walkback.cli.progress import aside

Input = TypeVar("Input")
Result = TypeVar("Result")

EXIT_FINE = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3

_NO_MORE = {errno.EMFILE: "ulimit -n", errno.ENFILE: "fs.file-max"}
"""By the error where no more files can be opened, what allows more."""

FILE = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=INPUT_FILE)
SECTION = click.option(
    "--section", metavar="NAME", help="Use the ELF section of this name, whatever its type.", shell_complete=sections
)


def _choose_colour(ctx: click.Context, _param: click.Parameter, when: str) -> None:
    """Without a choice terminals get colour, unless NO_COLOR is set."""
    ctx.color = {"always": True, "never": False}.get(when, False if os.environ.get("NO_COLOR") else None)


def is_coloured(ctx: click.Context) -> bool:
    """Whether standard output gets colour."""
    return sys.stdout.isatty() if ctx.color is None else ctx.color


COLOUR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    expose_value=False,
    callback=_choose_colour,
    help="Colour the output; auto does so on a terminal, unless NO_COLOR is set.",
)
CALL_FRAMES = click.option(
    "--section",
    metavar="NAME",
    help="Use the call frame information of this section, and nothing else. .gopclntab and .orc_unwind are the "
    "tables of Go and of the kernel.",
    shell_complete=sections,
)


def _limited(ctx: click.Context, _param: click.Parameter, jobs: int | None) -> int | None:
    """The number of processes; a command that works with threads has no more of these."""
    if jobs is not None:
        from walkback.base.threads import limit_processors

        limit_processors(jobs)
        ctx.call_on_close(lambda: limit_processors(None))
    return jobs


JOBS = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    callback=_limited,
    help="Number of processes. [default: one per processor]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")


def refuse_both(one: str, other: str) -> None:
    """Two options exclude each other."""
    message = f"{one} and {other} cannot be combined"
    raise click.UsageError(message)


def check_options(files: Iterable[str], section: str | None, address: int | None) -> None:
    """Refuse `--section` for raw section bytes and `--address` for ELF files and archives: they would say nothing."""
    from walkback.elf import OpenFile, is_archive, is_elf

    for file in files:
        try:
            data = OpenFile(file)
        except WalkbackError:
            continue  # the verb says what is wrong
        raw = not is_elf(data) and not is_archive(data)
        if raw and section is not None:
            message = f"--section is for ELF files and archives, and {printable(file)} is neither"
            raise click.UsageError(message)
        if not raw and address is not None:
            message = f"--address is for raw section bytes, and {printable(file)} has addresses of its own"
            raise click.UsageError(message)


def check_raw(file: str, option: str) -> None:
    """Refuse an option that is for raw section bytes."""
    from walkback.elf import OpenFile, is_archive, is_elf

    with contextlib.suppress(WalkbackError):  # the verb says what is wrong
        data = OpenFile(file)
        if is_elf(data) or is_archive(data):
            message = f"{option} is for raw section bytes, and {printable(file)} has its own"
            raise click.UsageError(message)


class Address(ParameterType[int]):
    """A number in decimal, or with 0x in hexadecimal."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = value if isinstance(value, int) else int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number < 2**64:
            self.fail(f"{value!r} is not an address; examples: 4096, 0x1000", param, ctx)
        return number


ADDRESS = click.option(
    "--address",
    type=Address(),
    metavar="A",
    help="Address at which raw section bytes are loaded; only for those. [default: 0]",
)


def complain(line: str) -> None:
    """One line on standard error, after what was printed before."""
    with contextlib.suppress(OSError, AttributeError):
        sys.stdout.flush()
    with aside(), contextlib.suppress(OSError, AttributeError):  # click before 8.2 does not expect it to be closed
        click.echo(f"walkback: {printable(line)}", err=True)


def write(parts: Iterable[bytes | memoryview]) -> None:
    """Bytes to standard output as they come."""
    out = sys.stdout.buffer
    for part in parts:
        out.write(part)


def for_each_file(files: Sequence[str], work: Callable[[str], int], jobs: int | None = 1) -> int:
    """Do the work for each file, whatever happens to the others. Returns the worst exit status."""
    return for_each_result(files, work, lambda status: status, jobs)


def for_each_result(
    files: Sequence[str],
    work: Callable[[str], Result],
    then: Callable[[Result], int],
    jobs: int | None,
    *,
    writes: bool = False,
    again: Callable[[str], Result] | None = None,
) -> int:
    """Do the work for each file, in as many processes, and `then` here what is left to do with its result, in order.

    Without a number of processes there are as many as processors. Work that `writes` files is interrupted as it is
    here, and not killed. What a process has begun and could not finish is done `again` here, which may have to be done
    otherwise. Returns the worst exit status.
    """

    def work_here(file: str, work: Callable[[str], Result] = work) -> int:
        return guarded(lambda one: then(work(one)), file, file)

    def work_there(file: str) -> tuple[int, list[Result]]:
        found: list[Result] = []

        def add(one: str) -> int:
            found.append(work(one))
            return EXIT_FINE

        return guarded(add, file, file), found

    if len(files) < 2 or jobs == 1:
        return max(map(work_here, files), default=EXIT_FINE)
    from walkback.cli.sidebyside import processes_for, side_by_side

    if (processes := processes_for(files, jobs)) == 1:
        return max(map(work_here, files))
    worst = EXIT_FINE
    for file, done in side_by_side(files, work_there, processes, writes=writes):
        if done is None:
            worst = max(worst, work_here(file, again or work))
            continue
        done.show()
        status, found = done.found
        worst = max(worst, status, *map(then, found))
    return worst


def error_line(error: OSError | WalkbackError, file: str) -> str:
    """What went wrong with a file, or with what was written for it."""
    if isinstance(error, WalkbackError):
        return str(error.within(file=file))
    if error.errno in _NO_MORE:
        return f"{file}: {error.strerror}; {_NO_MORE[error.errno]} allows more"
    return f"cannot write {printable(os.fsdecode(error.filename or file))}: {error.strerror}"


def guarded(work: Callable[[Input], int], subject: Input, file: str) -> int:
    """Do some work on an input; an error in it is printed and becomes an exit status."""
    try:
        return work(subject)
    except WalkbackError as error:
        complain(error_line(error, file))
        return EXIT_FINDINGS if isinstance(error, MissingError) else EXIT_UNREADABLE
    except OSError as error:
        if error.filename is None and error.errno not in _NO_MORE:  # as of standard output, which ends everything
            raise
        complain(error_line(error, file))
        return EXIT_UNREADABLE
    except MemoryError:
        complain(f"{file}: there is not enough memory for this file")
        return EXIT_UNREADABLE
