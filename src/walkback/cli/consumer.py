"""`--for`: the program that a section is written for."""

from __future__ import annotations

import click

FOR = click.option(
    "--for",
    "consumer",
    type=click.Choice(["linux", "glibc"]),
    help="Write what this program reads, without what would end its walk; refuse what it would not load.",
)


def refuse_both(consumer: str | None, version: int | None) -> None:
    """The consumer decides the version."""
    if consumer is not None and version is not None:
        message = "--version and --for exclude each other"
        raise click.UsageError(message)
