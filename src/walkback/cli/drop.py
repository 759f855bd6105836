"""`walkback drop`: a file loses its SFrame section."""

from __future__ import annotations

import contextlib
import sys

import click

from walkback.cli.output import EXIT_FINE, STDOUT, for_each_file
from walkback.text import printable


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
        dropped = drop_section(file, output)
        what = "the file is what it was before `walkback add`" if dropped.restored else "its bytes are zeros"
        with contextlib.redirect_stdout(sys.stderr if output in STDOUT else sys.stdout):
            click.echo(f"{printable(file)}: the .sframe section is taken out: {what}")
            click.echo(f"  {dropped.former_bytes} bytes to {dropped.bytes}; written to {printable(output or file)}")
        return EXIT_FINE

    ctx.exit(for_each_file([file], work))
