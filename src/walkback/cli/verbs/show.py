"""`walkback show`: print sections."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import click

from walkback.base.dataclass import dataclass
from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import functions
from walkback.cli.output import (
    ADDRESS,
    COLOUR,
    EXIT_FINDINGS,
    EXIT_FINE,
    FILE,
    JOBS,
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
from walkback.cli.sources import source_option
from walkback.cli.walking import DEMANGLE, SHORT_NAMES, how_to_name

if TYPE_CHECKING:
    from walkback.sections.reading import ReadTables, Tables
    from walkback.sframe.files import SFrameSection, Source
    from walkback.symbols.demangle import Demangle


@verb(
    "walkback show a.out",
    "walkback show a.out --function main",
    exit_1="a function cannot be read whole, a target matches nothing, or there is no such section.",
)
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
@source_option(
    default=None,
    text="Show instead call frame information, Go's, the kernel's ORC, what the code shows, or all of these.",
)
@SECTION
@ADDRESS
@JOBS
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
    tables: Tables | None,
    section: str | None,
    address: int | None,
    jobs: int | None,
) -> None:
    """Print SFrame sections: functions, rows and rules.

    With --source, print what the other unwind tables of a file say, or its code. JSON keeps mangled names.
    """
    check_options(files, section, address)
    if ctx.get_parameter_source("style") is not click.core.ParameterSource.DEFAULT:
        if as_json:
            refuse_both("--json", "--format")
        if tables is not None and style != "readable":
            refuse_both("--source", "--format")
    if tables is not None and address is not None:
        refuse_both("--source", "--address")
    style = "json" if as_json else style
    how = how_to_name(demangle, short_names) if style == "readable" else False
    printing = _Printing(style, how, targets, section, address or 0, many=len(files) > 1)

    def work(file: str) -> int:
        printing.unused.update(targets)
        status = printing.show_sframe(file) if tables is None else printing.show_tables(file, tables)
        for target in sorted(printing.unused):
            where = "this section" if tables is None else "these tables"
            complain(f"{file}: no function in {where} has the name or covers the address {target}")
            status = EXIT_FINDINGS
        return status

    ctx.exit(for_each_file(files, work, jobs))


@dataclass(slots=True)
class _Printing:
    """What is printed of each file, and how."""

    style: str
    how: Demangle
    targets: tuple[str, ...]
    section: str | None
    address: int
    many: bool
    """Whether there are several files."""
    unused: set[str] = field(default_factory=set)
    """Targets that nothing was found for yet."""

    def show_sframe(self, file: str) -> int:
        """Print the SFrame sections of a file."""
        from walkback.elf import OpenFile, is_archive
        from walkback.sframe.files import read

        status = EXIT_FINE
        if self.style == "gnu" and self.many and not is_archive(OpenFile(file)):
            _name_file(file)
        for source in read(file, section=self.section, address=self.address):
            if self.style == "gnu" and source.file != file:
                _name_file(source.file)
            if not len(source.data):
                _say_empty(source, self.style)
            status = max(status, guarded(self._show_source, source, source.file))
        return status

    def show_tables(self, file: str, tables: Tables) -> int:
        """Print what other tables of a file say."""
        from walkback.sections.dump import read_all

        status = EXIT_FINE
        for read in read_all(file, tables=tables, section=self.section):
            status = max(status, guarded(self._show_read, read, read.elf.name))
        return status

    def _show_read(self, read: ReadTables) -> int:
        from walkback.sections.dump import TableView

        view, used = TableView.of(read, self.targets, self.how)
        self.unused -= used
        if self.targets and not used:
            return EXIT_FINE
        write(view.json() if self.style == "json" else view.text(colour=is_coloured(click.get_current_context())))
        return _tell_faults(read.elf.name, view.faults)

    def _show_source(self, source: Source) -> int:
        return max((self._show_piece(source, piece) for piece in source.pieces(faults=True)), default=EXIT_FINE)

    def _show_piece(self, source: Source, piece: SFrameSection) -> int:
        """Print one section; say on standard error what a reader of its output might miss."""
        from walkback.sframe.dump import View, gnu, json, llvm, readable
        from walkback.sframe.lookup import choose

        view = View.of(source, piece, self.how)
        if self.targets:
            view.chosen, used = choose(source, piece, self.targets)
            self.unused -= used
            if not len(view.chosen):
                return EXIT_FINE
        if self.style == "readable":
            write(readable.dump(view, colour=is_coloured(click.get_current_context())))
        else:
            write({"gnu": gnu.dump, "llvm": llvm.dump, "json": json.dump}[self.style](view))
        if piece.position:
            complain(f"{source.file}: {source.name}+{piece.position:#x}: a further SFrame section, which readers miss")
        faults = int((piece.section.functions.fault[view.chosen] != 0).sum())
        return _tell_faults(f"{source.file}: {source.name}", faults, "; `walkback check` shows why")


def _tell_faults(place: str, faults: int, more: str = "") -> int:
    if not faults:
        return EXIT_FINE
    complain(f"{place}: {counted(faults, 'function')} cannot be read whole{more}")
    return EXIT_FINDINGS


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
