"""`walkback derive`: SFrame from the unwind tables of a finished file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from walkback.base.text import printable
from walkback.cli.command import verb
from walkback.cli.consumer import FOR_ANY, refuse_both
from walkback.cli.coverage import LIMIT, REPAIR, STRICT, VERIFY, derived_object, print_derived
from walkback.cli.output import (
    CALL_FRAMES,
    EXIT_FINDINGS,
    EXIT_FINE,
    FILE,
    JOBS,
    JSON,
    Address,
    complain,
    for_each_result,
)
from walkback.cli.paths import OUTPUT_FILE, account, refuse_input, refuse_terminal, same_file
from walkback.cli.sources import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
@FILE
@click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT_FILE,
    help="Write the section to this file, or to NAME.sframe in this folder; several files need a folder.",
)
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
@JOBS
@JSON
@click.pass_context
def derive(
    ctx: click.Context,
    files: tuple[str, ...],
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
    jobs: int | None,
    as_json: bool,
) -> None:
    """Make SFrame sections from the unwind tables of files.

    They are .eh_frame, .debug_frame, Go's .gopclntab and the Linux kernel's .orc_unwind. Where these leave out 4 KB of
    code or more, the rules of that code come from its instructions.

    A section is made for the address where `walkback add` would put it, or for --address. It is written only after a
    proof that it gives the same rules.
    """
    from walkback.packages.found import found_one
    from walkback.sections.derive import derive as derive_file

    refuse_both(consumer, version)
    refuse_terminal("a section", output)
    outputs = _outputs(files, output)
    if relocs is not None:
        _refuse_relocs(relocs, files, outputs)
    if address is not None and len(files) > 1:
        message = "--address is for one file"
        raise click.UsageError(message)

    def work(file: str) -> int:
        written = outputs[file]
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
            if written != output:
                Path(output).mkdir(exist_ok=True)
            _write(made, written, relocs)
            with account(written):
                _print(made, limit, as_json)
            return EXIT_FINDINGS if strict and not made.is_whole else EXIT_FINE

    ctx.exit(for_each_result(list(outputs), work, lambda status: status, jobs, writes=True))


def _outputs(files: Sequence[str], output: str) -> Mapping[str, str]:
    """Where the section of each file goes: to the output, or into the folder that it is or is to be."""
    if len(files) == 1 and not (Path(output).is_dir() or output.endswith(os.sep)):
        outputs = {files[0]: output}
    else:
        if os.path.lexists(output.rstrip(os.sep)) and not Path(output).is_dir():
            message = f"{printable(output)} is no folder" + (", as several sections need" if len(files) > 1 else "")
            raise click.UsageError(message)
        paths = [os.path.join(output, f"{Path(file).name}.sframe") for file in files]
        outputs = dict(zip(files, paths, strict=True))
        again = next((path for path, times in Counter(map(os.path.realpath, paths)).items() if times > 1), None)
        if again is not None:
            message = f"{printable(again)} would be the section of several files"
            raise click.UsageError(message)
    read = {os.path.realpath(file): file for file in files}
    for file, written in outputs.items():
        refuse_input(read.get(os.path.realpath(written), file), written)
    return outputs


def _refuse_relocs(relocs: str, files: Sequence[str], outputs: Mapping[str, str]) -> None:
    if len(files) > 1:
        message = "--relocs is for one file"
        raise click.UsageError(message)
    refuse_input(files[0], relocs)
    if same_file(relocs, outputs[files[0]]):
        message = "the section and the relocations go to one file"
        raise click.UsageError(message)


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
