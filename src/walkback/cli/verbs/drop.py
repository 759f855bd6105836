"""`walkback drop`: a file loses its SFrame section."""

from __future__ import annotations

import click

from walkback.base.text import printable
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINE, for_each_file
from walkback.cli.paths import INPUT_FILE, account, output_for
from walkback.cli.written import IN_PLACE


@verb("walkback drop a.out", "walkback drop a.out -o plain", exit_1="a file has no SFrame section.")
@click.argument("file", type=INPUT_FILE)
@IN_PLACE
@click.pass_context
def drop(ctx: click.Context, file: str, output: str | None) -> None:
    """Remove the SFrame section from a file.

    A file that `walkback add` has changed becomes what it was, byte for byte, unless something else has changed it
    since.
    """
    from walkback.sections.install import drop as drop_section

    output = output_for(file, output)

    def work(file: str) -> int:
        dropped = drop_section(file, output)
        what = "the file is what it was before `walkback add`" if dropped.restored else "its bytes are zeros"
        with account(output):
            click.echo(f"{printable(file)}: the .sframe section is taken out: {what}")
            click.echo(f"  {dropped.former_bytes} bytes to {dropped.bytes}; written to {printable(output or file)}")
        return EXIT_FINE

    ctx.exit(for_each_file([file], work))
