"""Printing and exit statuses, the same for all verbs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import click

from walkback.errors import MissingError, WalkbackError

EXIT_FINE = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3

FILE = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
SECTION = click.option("--section", metavar="NAME", help="Take the ELF section of this name.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")


class Address(click.ParamType[int]):
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
    "--address", type=Address(), default=0, metavar="A", help="Where raw section bytes are loaded. [default: 0]"
)


def complain(line: str) -> None:
    """One line on standard error."""
    click.echo(f"walkback: {line}", err=True)


def write(parts: Iterable[bytes | memoryview]) -> None:
    """Bytes to standard output as they come."""
    out = sys.stdout.buffer
    for part in parts:
        out.write(part)


def for_each_file(files: Iterable[str], work: Callable[[str], int]) -> int:
    """Do the work for each file; an error is told and the next file taken. Returns the worst exit status."""
    status = EXIT_FINE
    for file in files:
        try:
            status = max(status, work(file))
        except WalkbackError as error:
            sys.stdout.flush()
            complain(str(error.within(file=file)))
            status = max(status, EXIT_FINDINGS if isinstance(error, MissingError) else EXIT_UNREADABLE)
    return status
