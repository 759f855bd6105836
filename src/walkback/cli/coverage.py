"""How the verbs show what a derived section covers, and what not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from walkback.base.text import counted, printable

if TYPE_CHECKING:
    from walkback.sections.derive import CoveredShare, CoveredShareObject, Derived, Uncovered
    from walkback.table.source import TableSource

LIMIT = click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    default=20,
    show_default=True,
    help="List at most this many places of each kind.",
)
VERIFY = click.option("--verify", is_flag=True, help="Leave out functions whose rules the machine code contradicts.")
REPAIR = click.option(
    "--repair", is_flag=True, help="Give such functions the rules that the machine code proves; leave the others out."
)
STRICT = click.option(
    "--strict", is_flag=True, help="Exit 1 also if a function is not covered, or is left out by --verify."
)


def percent(part: int, whole: int) -> str:
    """A share, for a person."""
    if part == whole:
        return "100 %"
    return f"{min(100 * part / whole, 99.999):.3f} %"


def print_derived(derived: Derived, limit: int) -> None:
    """What was made, what it covers, and what not with the reasons."""
    from walkback.sections.reading import source_words

    section, sources = derived.section, derived.read.sources
    known = [f"{printable(one.name)} has {one.bytes} bytes" for one in sources if one.bytes is not None]
    read = [*known, *(_about(one, beside=len(sources) > 1) for one in sources if one.bytes is None)]
    place = f" for {section.address:#x}" if section.address else ""  # an object has addresses only when it is linked
    click.echo(
        f"{printable(derived.elf.name)}: {', '.join(read)}; SFrame version {section.version}{place} takes "
        f"{len(derived.contents)}"
    )
    click.echo(f"  covered: {_covered(derived)}")
    for its in derived.shares if len(sources) > 1 else ():
        click.echo(f"    from {source_words(its.source)}: {_covered(its)}")
    for one in derived.uncovered[:limit]:
        place = _place(derived, one.section, one.start, one.name, one.size) if one.size else "unknown place"
        click.echo(f"  not covered: {place}: {one.reason}")
    if len(derived.uncovered) > limit:
        click.echo(f"  and {len(derived.uncovered) - limit} more that are not covered")
    for what, found in (("left out", derived.unwanted), ("repaired", derived.repaired)):
        for one in found[:limit]:
            click.echo(f"  {what}: {_place(derived, one.section, one.start, one.name, one.size)}: {one.reason}")
        if len(found) > limit:
            click.echo(f"  and {len(found) - limit} more that are {what}")
    for note in derived.notes:
        click.echo(f"  note: {note}")
    for line in derived.read.left_out():
        click.echo(f"  {line}")


def _covered(its: Derived | CoveredShare) -> str:
    functions = f"{its.covered} of {counted(its.functions, 'function')}"
    share = percent(its.covered_bytes, its.code_bytes) if its.code_bytes else "no code"
    return f"{functions}, {its.covered_bytes} of {its.code_bytes} bytes of code ({share})"


def _about(source: TableSource, *, beside: bool) -> str:
    """Where a table is that takes no section of its own; `beside` another."""
    if source.kind == "code":
        return f"the {'other ' if beside else ''}rules come from the code"
    return f"Go's table is in {printable(source.name)}"


def _place(derived: Derived, section: int, start: int, name: str | None, size: int) -> str:
    elf = derived.elf
    place = f"{start:#x}" if section < 0 else f"{elf.section_name(section)}+{start:#x}"
    return printable(f"{place}{f' {name}' if name else ''} ({counted(size, 'byte')})")


class UncoveredObject(TypedDict):
    """Code that a section does not cover, as JSON."""

    section: str | None
    """In objects, the text section."""
    start: int
    """The address; in objects, the offset in the section."""
    size: int
    """The bytes of code."""
    name: str | None
    """The symbol."""
    source: str
    """The table that describes it."""
    reason: str
    """The reason."""


class DerivedObject(TypedDict):
    """What was derived, as JSON."""

    type: str
    """`derived`, or `added`."""
    file: str
    """The input file."""
    source: str
    """The source section; of several the first."""
    source_bytes: int | None
    """Its size."""
    sources: list[CoveredShareObject]
    """All sources."""
    version: int
    """The version of the new section."""
    address: int
    """The address that it is made for."""
    bytes: int
    """Its size."""
    functions: int
    """The number of FDEs with code, or of functions of Go."""
    covered: int
    """The number of them that the section covers."""
    code_bytes: int
    """The bytes of their code."""
    covered_bytes: int
    """The bytes of code that the section covers."""
    dead: int
    """The number left out because their code is not in the file."""
    empty: int
    """The number left out because they cover no code."""
    shadowed: int
    """The number left out because others describe their code."""
    uncovered: list[UncoveredObject]
    """What the section does not cover."""
    unwanted: list[UncoveredObject]
    """Functions left out because the consumer must not find them, or, with `--verify`, because the machine code
    contradicts their rules."""
    repaired: list[UncoveredObject]
    """With `--repair`: functions that have the rules that the machine code proves."""
    notes: list[str]
    """Other changes made for the consumer, as sentences."""


def derived_object(derived: Derived) -> DerivedObject:
    """The same as a JSON object."""
    return {
        "type": "derived",
        "file": derived.source.file,
        "source": derived.source.name,
        "source_bytes": derived.source.bytes,
        "sources": [its.as_object() for its in derived.shares],
        "version": derived.section.version,
        "address": derived.section.address,
        "bytes": len(derived.contents),
        "functions": derived.functions,
        "covered": derived.covered,
        "code_bytes": derived.code_bytes,
        "covered_bytes": derived.covered_bytes,
        "dead": derived.dead,
        "empty": derived.empty,
        "shadowed": derived.shadowed,
        "uncovered": [_object(derived, one) for one in derived.uncovered],
        "unwanted": [_object(derived, one) for one in derived.unwanted],
        "repaired": [_object(derived, one) for one in derived.repaired],
        "notes": derived.notes,
    }


def _object(derived: Derived, one: Uncovered) -> UncoveredObject:
    return {
        "section": derived.elf.section_name(one.section) if one.section >= 0 else None,
        "start": one.start,
        "size": one.size,
        "name": one.name,
        "source": one.source,
        "reason": one.reason,
    }
