"""`walkback convert`: SFrame in another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

import click

from walkback.base.text import counted
from walkback.cli.command import verb
from walkback.cli.consumer import FOR
from walkback.cli.output import check_raw
from walkback.cli.paths import INPUT_FILE, output_for
from walkback.cli.written import EXIT_1, IN_PLACE, Writing, options, print_done, run, versions_text, wanted_pcrel

if TYPE_CHECKING:
    from walkback.cli.written import Written


class ConvertedObject(TypedDict):
    """The type of the object, as JSON."""

    type: Literal["converted"]
    """The type of the object."""


@verb(
    "walkback convert a.out --version 2",
    "walkback convert a.out --for linux -o a.new",
    exit_1=EXIT_1,
)
@click.argument("file", type=INPUT_FILE)
@IN_PLACE
@click.option(
    "--version", type=click.IntRange(1, 3), metavar="N", help="SFrame version to write; required without --for."
)
@FOR
@click.option("--byteorder", type=click.Choice(["little", "big"]), help="Byte order to write; only for raw sections.")
@options
@click.pass_context
def convert(
    ctx: click.Context,
    file: str,
    output: str | None,
    version: int | None,
    consumer: str | None,
    byteorder: Literal["little", "big"] | None,
    pcrel: str | None,
    leave_out: bool,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Convert SFrame to another version.

    FILE is a linked file, an object, an archive of objects, or a raw section. If the version cannot express a function,
    the function is listed and nothing is written; --leave-out writes the rest.
    """
    from walkback.sections.linking.convert import convert as convert_file

    if byteorder is not None:
        check_raw(file, "--byteorder")
    if version is None and consumer is None:
        message = "Missing option '--version' or '--for'."
        raise click.UsageError(message)
    output = output_for(file, output)
    own_fields, how = wanted_pcrel(pcrel, version, consumer), Writing(strict, limit, as_json, output)

    def work() -> Written:
        done = convert_file(
            file,
            output,
            version=version,
            byteorder=byteorder,
            pcrel=own_fields,
            leave_out=leave_out,
            consumer=consumer,
        )
        lines = []
        if done.sections:
            what = f"{counted(done.functions, 'function')}, {counted(done.rows, 'row')}"
            sizes = f"{done.former_bytes} bytes to {done.bytes}"
            lines.append(f"{file}: {versions_text(done.versions, done.version)}: {what}, {sizes}")
        if done.split:
            lines.append(
                f"  {counted(done.split, 'function')} had more rows than an entry can have: now several entries"
            )
        kind: ConvertedObject = {"type": "converted"}
        print_done(kind, file, done, lines, how)
        return done

    ctx.exit(run(file, work, how))
