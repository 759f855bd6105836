"""`walkback link`: SFrame sections of code that is laid out already, made one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

import click

from walkback.base.errors import WalkbackError
from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.consumer import FOR
from walkback.cli.output import Address
from walkback.cli.paths import OUTPUT_FILE, PLACED_FILE, refuse_terminal
from walkback.cli.written import EXIT_1, VERSION, Writing, options, print_done, run, versions_text, wanted_pcrel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from walkback.cli.written import Written


class LinkedObject(TypedDict):
    """The type of the object, as JSON."""

    type: Literal["linked"]
    """The type of the object."""


@verb(
    "walkback link a.out concatenated -o all.sframe",
    "walkback link -r joined.o -o one.o",
    exit_1=EXIT_1,
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PLACED_FILE)
@click.option(
    "-o", "--output", required=True, type=OUTPUT_FILE, help="Write the section, or with -r the object, to this file."
)
@click.option("-r", "--relocatable", is_flag=True, help="Write a copy of one object with its sections merged.")
@click.option(
    "--view",
    type=click.Choice(["execution", "linking"]),
    default="execution",
    show_default=True,
    help="Write one sorted index, or complete sections one after the other.",
)
@VERSION
@FOR
@click.option(
    "--address",
    type=Address(),
    metavar="A",
    help="Address of the new section. [default: the lowest of the old, or after all code]",
)
@options
@click.pass_context
def link(
    ctx: click.Context,
    files: tuple[str, ...],
    output: str,
    relocatable: bool,
    view: str,
    version: int | None,
    consumer: str | None,
    address: int | None,
    pcrel: str | None,
    leave_out: bool,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Merge the SFrame sections of several files into one.

    Each FILE is a linked ELF file, or a raw section with its address, as in raw.sframe@0x4000. The code keeps its
    place, and OUTPUT is a raw section. With -r, FILE is one relocatable object, and OUTPUT a copy with one section.
    """
    own_fields, how = wanted_pcrel(pcrel, version, consumer), Writing(strict, limit, as_json, output)
    if consumer is not None and view == "linking":
        message = "--for takes no --view linking: readers see only the first of several sections"
        raise click.UsageError(message)
    if relocatable and len(files) > 1:
        message = "-r takes one object, such as `ld -r` makes of several"
        raise click.UsageError(message)
    if relocatable and address is not None:
        message = "-r takes no --address: the linker places the section"
        raise click.UsageError(message)

    refuse_terminal("a binary file", output)
    if not relocatable:
        _check(files, output)

    def work() -> Written:
        from walkback.sections.linking.link import link as link_files

        form: dict[str, Any] = {"version": version, "pcrel": own_fields, "view": view}
        form |= {"leave_out": leave_out, "consumer": consumer}
        done = link_files(files, output, address=address, relocatable=relocatable, **form)
        made_of = f"{counted(done.pieces, 'section')}, {versions_text(done.versions, done.version)}"
        what = f"{counted(done.functions, 'function')}, {counted(done.rows, 'row')}, {done.bytes} bytes"
        where = "" if relocatable else f" for {done.address:#x}"
        kind: LinkedObject = {"type": "linked"}
        print_done(kind, files, done, [f"{output}: {made_of}: {what}{where}"], how)
        return done

    ctx.exit(run(files, work, how))


def _check(files: Sequence[str], output: str) -> None:
    """Refuse what makes no sense; what cannot be read is reported later."""
    from walkback.sections.linking.link import check_inputs

    try:
        check_inputs(files, output)
    except ValueError as error:
        raise click.UsageError(printable(str(error))) from None
    except WalkbackError:
        pass
