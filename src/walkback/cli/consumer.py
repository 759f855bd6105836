"""`--for`: the program that a section is written for."""

from __future__ import annotations

import click

_HELP = "Target this consumer: omit functions that would stop its unwinder, and fail if it would reject the section."
FOR = click.option("--for", "consumer", type=click.Choice(["linux", "glibc"]), help=_HELP)
FOR_ANY = click.option(
    "--for",
    "consumer",
    type=click.Choice(["linux", "glibc", "gnu-ld"]),
    help=f"{_HELP} gnu-ld, which is GNU ld 2.46 or later, is for objects.",
)


def refuse_both(consumer: str | None, version: int | None) -> None:
    """The consumer decides the version."""
    if consumer is not None and version is not None:
        message = "--version and --for exclude each other"
        raise click.UsageError(message)
