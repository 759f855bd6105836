"""`walkback show`: print sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import functions
from walkback.cli.output import (
    ADDRESS,
    COLOUR,
    EXIT_FINDINGS,
    EXIT_FINE,
    FILE,
    JSON,
    SECTION,
    check_options,
    complain,
    for_each_file,
    guarded,
    is_coloured,
    refuse_both,
    write,
)
from walkback.cli.walking import DEMANGLE, SHORT_NAMES, how_to_name

if TYPE_CHECKING:
    from walkback.sframe.files import SFrameSection, Source
    from walkback.symbols.demangle import Demangle


@verb("walkback show a.out", "walkback show a.out --function main")
@FILE
@click.option(
    "--format",
    "style",
    type=click.Choice(["readable", "gnu", "llvm"]),
    default="readable",
    help="Print for people, or exactly like readelf --sframe (gnu) or llvm-readobj --sframe of version 2 (llvm).",
)
@JSON
@click.option(
    "--function",
    "targets",
    multiple=True,
    metavar="NAME|ADDR",
    shell_complete=functions,
    help="Show only the function with this name or address; may be repeated.",
)
@DEMANGLE
@SHORT_NAMES
@SECTION
@ADDRESS
@COLOUR
@click.pass_context
def show(
    ctx: click.Context,
    files: tuple[str, ...],
    style: str,
    as_json: bool,
    targets: tuple[str, ...],
    demangle: bool,
    short_names: bool,
    section: str | None,
    address: int | None,
) -> None:
    """Print SFrame sections: functions, rows and rules.

    JSON keeps mangled names.
    """
    from walkback.elf import OpenFile, is_archive
    from walkback.sframe.files import read

    check_options(files, section, address)
    if as_json:
        if ctx.get_parameter_source("style") is not click.core.ParameterSource.DEFAULT:
            refuse_both("--json", "--format")
        style = "json"

    unused: set[str] = set()
    how = how_to_name(demangle, short_names) if style == "readable" else False

    def show_source(source: Source) -> int:
        pieces = source.pieces(faults=True)
        return max((_show_piece(source, piece, style, how, targets, unused) for piece in pieces), default=EXIT_FINE)

    def work(file: str) -> int:
        unused.update(targets)
        status = EXIT_FINE
        if style == "gnu" and len(files) > 1 and not is_archive(OpenFile(file)):
            _name_file(file)
        for source in read(file, section=section, address=address or 0):
            if style == "gnu" and source.file != file:
                _name_file(source.file)
            if not len(source.data):
                _say_empty(source, style)
            status = max(status, guarded(show_source, source, source.file))
        for target in sorted(unused):
            complain(f"{file}: no function in this section has the name or covers the address {target}")
            status = EXIT_FINDINGS
        return status

    ctx.exit(for_each_file(files, work))


def _name_file(name: str) -> None:
    """As readelf does before each of several files, and before members of archives."""
    write([f"\nFile: {name}\n".encode("utf-8", "surrogateescape")])


def _say_empty(source: Source, style: str) -> None:
    """An empty section is sound and says nothing."""
    if style == "gnu":
        write([f"\nSection '{source.name}' has no debugging data.\n".encode()])
    elif style == "json":
        from walkback.sframe.dump.json import empty

        write([empty(source)])
    else:
        write(
            [f"{printable(source.file)}: {printable(source.name)} section at {source.address:#x} is empty\n".encode()]
        )


def _show_piece(
    source: Source, piece: SFrameSection, style: str, how: Demangle, targets: tuple[str, ...], unused: set[str]
) -> int:
    """Print one section; say on standard error what a reader of its output might miss."""
    from walkback.sframe.dump import View, gnu, json, llvm, readable
    from walkback.sframe.lookup import choose

    view = View.of(source, piece, how)
    if targets:
        view.chosen, used = choose(source, piece, targets)
        unused -= used
        if not len(view.chosen):
            return EXIT_FINE
    if style == "readable":
        write(readable.dump(view, colour=is_coloured(click.get_current_context())))
    else:
        write({"gnu": gnu.dump, "llvm": llvm.dump, "json": json.dump}[style](view))
    if piece.position:
        complain(f"{source.file}: {source.name}+{piece.position:#x}: a further SFrame section, which readers miss")
    faults = int((piece.section.functions.fault[view.chosen] != 0).sum())
    if faults:
        functions = counted(faults, "function")
        complain(f"{source.file}: {source.name}: {functions} cannot be read whole; `walkback check` shows why")
        return EXIT_FINDINGS
    return EXIT_FINE
