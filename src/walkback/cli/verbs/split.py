"""`walkback split`: one SFrame section for each text section of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

import click

from walkback.base.text import counted
from walkback.cli.command import verb
from walkback.cli.paths import INPUT_FILE, output_for
from walkback.cli.written import EXIT_1, IN_PLACE, VERSION, Writing, options, print_done, run, wanted_pcrel

if TYPE_CHECKING:
    from walkback.cli.written import Written


class SplitObject(TypedDict):
    """The type of the object, as JSON."""

    type: Literal["split"]
    """The type of the object."""


@verb(
    "walkback split inline.o",
    "walkback split libcalls.a -o split.a",
    exit_1=EXIT_1,
)
@click.argument("file", type=INPUT_FILE)
@IN_PLACE
@VERSION
@click.option(
    "--suffix",
    is_flag=True,
    help="Name sections .sframe.SECTION, for objects that GNU ld 2.46 or later links with --gc-sections.",
)
@options
@click.pass_context
def split(
    ctx: click.Context,
    file: str,
    output: str | None,
    version: int | None,
    suffix: bool,
    pcrel: str | None,
    leave_out: bool,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Split an object's SFrame: one section for each text section.

    Each section follows its text section by SHF_LINK_ORDER and joins its section group, so that linkers keep or drop
    both together. FILE is an object or an archive of objects.
    """
    from walkback.sections.linking.split import split as split_file

    output = output_for(file, output)
    own_fields, how = wanted_pcrel(pcrel, version), Writing(strict, limit, as_json, output)

    def work() -> Written:
        done = split_file(file, output, version=version, pcrel=own_fields, suffix=suffix, leave_out=leave_out)
        what = f"{counted(done.sections, 'section')}, {done.grouped} in groups, {counted(done.functions, 'function')}"
        kind: SplitObject = {"type": "split"}
        print_done(kind, file, done, [f"{file}: {counted(done.objects, 'object')}: {what}"], how)
        return done

    ctx.exit(run(file, work, how))
