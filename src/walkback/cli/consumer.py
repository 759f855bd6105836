"""`--for`: the program that a section is written for."""

from __future__ import annotations

import click

FOR = click.option(
    "--for",
    "consumer",
    type=click.Choice(["linux", "glibc"]),
    help="Target this consumer: omit functions that would stop its unwinder, and fail if it would reject the section.",
)


def refuse_both(consumer: str | None, version: int | None) -> None:
    """The consumer decides the version."""
    if consumer is not None and version is not None:
        message = "--version and --for exclude each other"
        raise click.UsageError(message)
