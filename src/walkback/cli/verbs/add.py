"""`walkback add`: a finished file gets its SFrame section."""

from __future__ import annotations

import click

from walkback.base.text import printable
from walkback.cli.command import verb
from walkback.cli.consumer import FOR, refuse_both
from walkback.cli.coverage import LIMIT, STRICT, derived_object, print_derived
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, for_each_file
from walkback.cli.paths import INPUT_FILE, account, output_for
from walkback.cli.written import IN_PLACE


@verb("walkback add hello", "walkback add hello -o hello.new --for glibc")
@click.argument("file", type=INPUT_FILE)
@IN_PLACE
@click.option("--version", type=click.IntRange(1, 3), help="SFrame version to write. [default: 3]")
@FOR
@click.option("--section", metavar="NAME", help="Use the call frame information of this section.")
@STRICT
@LIMIT
@JSON
@click.pass_context
def add(
    ctx: click.Context,
    file: str,
    output: str | None,
    version: int | None,
    consumer: str | None,
    section: str | None,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Add SFrame to a program, library or object, and prove it right."""
    import json

    from walkback.sections.install import add as add_section

    refuse_both(consumer, version)
    output = output_for(file, output)

    def work(file: str) -> int:
        added = add_section(file, output, version=version, consumer=consumer, section=section)
        notes = [*added.derived.notes, *added.notes]
        with account(output):
            if as_json:
                click.echo(json.dumps({**derived_object(added.derived), "type": "added", "notes": notes}))
            else:
                print_derived(added.derived, limit)
                click.echo(f"  proved: the same rule at every address; written to {printable(output or file)}")
                for note in added.notes:
                    click.echo(f"  note: {note}")
        return EXIT_FINDINGS if strict and added.derived.uncovered else EXIT_FINE

    ctx.exit(for_each_file([file], work))
