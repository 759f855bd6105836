"""`walkback drop`: a file loses its SFrame section."""

from __future__ import annotations

import click

from walkback.cli.output import EXIT_FINE, for_each_file


@click.command()
@click.argument("file", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="Write a copy instead of replacing the file.")
@click.pass_context
def drop(ctx: click.Context, file: str, output: str | None) -> None:
    """Take the SFrame section out of a file.

    A file that `walkback add` changed becomes what it was, byte for byte, if nothing else has changed it since.
    """
    from walkback.additions import drop as drop_section

    def work(file: str) -> int:
        drop_section(file, output)
        return EXIT_FINE

    ctx.exit(for_each_file([file], work))
