"""`walkback derive`: SFrame from the unwind tables of a finished file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from walkback.cli.command import verb
from walkback.cli.consumer import FOR_ANY, refuse_both
from walkback.cli.coverage import LIMIT, REPAIR, STRICT, VERIFY, derived_object, print_derived
from walkback.cli.output import CALL_FRAMES, EXIT_FINDINGS, EXIT_FINE, JSON, Address, complain, for_each_file
from walkback.cli.paths import INPUT_FILE, OUTPUT_FILE, account, refuse_input, refuse_terminal, same_file
from walkback.cli.sources import SOURCE

if TYPE_CHECKING:
    from walkback.elf import ElfFile
    from walkback.sections.derive import Derived
    from walkback.sections.reading import Tables

_VERSION = click.option(
    "--version", type=click.IntRange(1, 3), metavar="N", help="SFrame version to write. [default: 3]"
)


@verb(
    "walkback derive hello -o hello.sframe",
    "walkback derive hello.o -o hello.sframe --relocs hello.json",
    exit_1="there are no unwind tables, or the section would not say what they say; with --strict, "
    "also if a function is not covered, or is left out by --verify.",
)
@click.argument("file", type=INPUT_FILE)
@click.option("-o", "--output", required=True, type=OUTPUT_FILE, help="Write the section to this file.")
@_VERSION
@FOR_ANY
@click.option(
    "--address",
    type=Address(),
    metavar="A",
    help="Address of the section. [default: where `walkback add` would put it]",
)
@click.option("--relocs", type=OUTPUT_FILE, help="Write the relocations of an object's section to this file, as JSON.")
@click.option(
    "--rows",
    type=click.Choice(["merged", "as-written"]),
    default="merged",
    show_default=True,
    help="Write rows only where the rule changes, or the rows that GNU as would write, in its order and widths.",
)
@SOURCE
@CALL_FRAMES
@VERIFY
@REPAIR
@STRICT
@LIMIT
@JSON
@click.pass_context
def derive(
    ctx: click.Context,
    file: str,
    output: str,
    version: int | None,
    consumer: str | None,
    address: int | None,
    relocs: str | None,
    rows: str,
    tables: Tables,
    section: str | None,
    verify: bool,
    repair: bool,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Make an SFrame section from the unwind tables of a file.

    They are .eh_frame, .debug_frame, Go's .gopclntab and the Linux kernel's .orc_unwind. Where these leave out 4 KB of
    code or more, the rules of that code come from its instructions.

    The section is made for the address where `walkback add` would put it, or for --address. It is written only after a
    proof that it gives the same rules.
    """
    from walkback.packages.found import found_one
    from walkback.sections.derive import derive as derive_file

    refuse_both(consumer, version)
    refuse_terminal("a section", output)
    for written in (output, relocs):
        refuse_input(file, written)
    if relocs is not None and same_file(relocs, output):
        message = "the section and the relocations go to one file"
        raise click.UsageError(message)

    def work(file: str) -> int:
        with found_one(file) as elf:
            _refuse_options(elf, address, relocs)
            made = derive_file(
                elf,
                version=version,
                address=address,
                as_written=rows == "as-written",
                tables=tables,
                section=section,
                consumer=consumer,
                verify=verify,
                repair=repair,
            )
            if not made.proof().equal:
                complain(f"{file}: the derived section does not say what {made.source.name} says; nothing is written")
                return EXIT_FINDINGS
            _write(made, output, relocs)
            with account(output):
                _print(made, limit, as_json)
            return EXIT_FINDINGS if strict and not made.is_whole else EXIT_FINE

    ctx.exit(for_each_file([file], work))


def _refuse_options(elf: ElfFile, address: int | None, relocs: str | None) -> None:
    """Refuse what is for objects with a linked file, and the reverse."""
    if elf.is_relocatable and address is not None:
        message = "--address is for linked files; in an object the linker places the section"
        raise click.UsageError(message)
    if relocs is not None and not elf.is_relocatable:
        message = "--relocs is for objects; in a linked file there is nothing to relocate"
        raise click.UsageError(message)


def _write(made: Derived, output: str, relocs: str | None) -> None:
    """Write the section and, where they are wanted, its relocations: both or neither."""
    import json

    from walkback.base.replace import replace_files

    outputs = [(output, [made.contents])]
    if relocs is not None:
        lines = [json.dumps(one) + "\n" for one in made.relocation_objects()]
        outputs.append((relocs, ["".join(lines).encode()]))
    replace_files(outputs)


def _print(made: Derived, limit: int, as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(derived_object(made)))
    else:
        print_derived(made, limit)
