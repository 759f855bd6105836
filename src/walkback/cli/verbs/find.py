"""`walkback find`: which rule holds at an address or symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import functions
from walkback.cli.output import ADDRESS, EXIT_FINDINGS, EXIT_FINE, JSON, SECTION, check_options, complain, for_each_file
from walkback.cli.paths import INPUT_FILE
from walkback.cli.walking import DEMANGLE, SHORT_NAMES, how_to_name

if TYPE_CHECKING:
    from walkback.sframe.dump.json import RuleObject
    from walkback.sframe.lookup import Match
    from walkback.symbols.demangle import Demangle


@verb(
    "walkback find a.out main+4",
    "walkback find libcalls.a f0+2 .text+0x10",
    exit_1="a target matches nothing, or there is no such section.",
)
@click.argument("file", type=INPUT_FILE)
@click.argument("targets", metavar="ADDR|SYMBOL[+OFF]...", nargs=-1, required=True, shell_complete=functions)
@JSON
@DEMANGLE
@SHORT_NAMES
@SECTION
@ADDRESS
@click.pass_context
def find(
    ctx: click.Context,
    file: str,
    targets: tuple[str, ...],
    as_json: bool,
    demangle: bool,
    short_names: bool,
    section: str | None,
    address: int | None,
) -> None:
    """Show the rule at an address or a symbol.

    A function can be given by its symbol or as people write it: main, 'run(int)', puts@plt.
    """
    import json

    from walkback.sframe.lookup import find as lookup

    if "" in targets:
        message = "a target is an address, a symbol or an offset, not an empty string"
        raise click.UsageError(message)
    check_options([file], section, address)

    def work(file: str) -> int:
        missing = dict.fromkeys(targets)
        for match in lookup(file, *targets, section=section, address=address or 0):
            missing.pop(match.target, None)
            if as_json:
                click.echo(json.dumps(_match_object(match)))
            else:
                _print_match(match, file, how_to_name(demangle, short_names))
        for target in missing:
            complain(f"{file}: {_missing(file, target, section)}")
        return EXIT_FINDINGS if missing else EXIT_FINE

    ctx.exit(for_each_file([file], work))


def _missing(file: str, target: str, section: str | None) -> str:
    """Why a target was not found."""
    from walkback.sframe.files import read
    from walkback.sframe.lookup import resolve

    known = any(resolve(source, target) for source in read(file, section=section))
    return f"no function covers {target}" if known else f"there is no symbol or section {target}"


def _print_match(match: Match, file: str, how: Demangle) -> None:
    from walkback.sframe.shownnames import shown_place

    section, found = match.piece.section, match.found
    words = [printable(match.source.place(match.place.section, found.start)), counted(found.size, "byte")]
    words += ["signal frame"] if found.signal else []
    words += [f"blocks of {int(section.block_size[found.range])}"] if section.block_size[found.range] else []
    words += ["key B"] if found.pauth_key else []
    where = f" in {match.source.file}" if match.source.file != file else ""
    place = printable(f"{match.target}{where}: {shown_place(match, how)}")
    click.echo(f"{place} (function {found.range}: {', '.join(words)})")
    if found.rule is None or match.row_offset is None or section.machine is None:
        click.echo("  no row holds here")
        return
    click.echo(f"  {found.rule.text(section.machine)}")
    numbers = [
        f"{label} {part.kind.name.lower()} {part.register} {part.offset}"
        for label, part in (("cfa", found.rule.cfa), ("ra", found.rule.ra), ("fp", found.rule.fp))
    ]
    click.echo(f"  kind, register, offset: {'; '.join(numbers)}")
    start = int(section.row_start[found.row])
    place = f"{printable(match.source.name) or 'section'}+{match.row_offset:#x}"
    click.echo(f"  row {match.row}, from +{start:#x} on, at {place}: {match.row_bytes.hex(' ')}")


class MatchObject(TypedDict):
    """What was found for a target, as JSON."""

    target: str
    """The target as given."""
    address: int
    """Its address; in relocatable files, its offset in the text section."""
    file: str
    """The file."""
    section: str | None
    """The section that has the rule; null for raw bytes."""
    function: int
    """The function's index."""
    name: str | None
    """The function's symbol."""
    start: int
    """The function's address; in relocatable files, its offset in the text section."""
    size: int
    """The function's size in bytes."""
    offset: int
    """The offset from the start of the function, or of its repeating block."""
    signal: bool
    """Whether it is a signal frame."""
    pauth_key: str
    """On AArch64, the key that signs return addresses: `A` or `B`."""
    row: int | None
    """The row's index in its function."""
    row_offset: int | None
    """The row's offset in the section."""
    bytes: str
    """The row's bytes, in hexadecimal."""
    rule: RuleObject | None
    """The rule; null if no row covers the address."""


def _match_object(match: Match) -> MatchObject:
    from walkback.sframe.dump.json import rule_object

    section, found = match.piece.section, match.found
    value: MatchObject = {
        "target": match.target,
        "address": match.place.address,
        "file": match.source.file,
        "section": match.source.name,
        "function": found.range,
        "name": match.name,
        "start": found.start,
        "size": found.size,
        "offset": found.offset,
        "signal": found.signal,
        "pauth_key": "AB"[found.pauth_key],
        "row": match.row,
        "row_offset": match.row_offset,
        "bytes": match.row_bytes.hex(),
        "rule": None,
    }
    if found.rule is not None and section.machine is not None:
        value["rule"] = rule_object(found.rule, section.machine)
    return value
