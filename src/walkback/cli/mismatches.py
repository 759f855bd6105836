"""A wrong rule in one line, for the verbs that print some, and functions without any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from walkback.base.text import counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from walkback.sections.undescribed import Undescribed
    from walkback.sections.verified import Mismatch


def mismatch_line(one: Mismatch) -> str:
    """Where the rule is, its pattern, and what the code has instead."""
    from walkback.symbols.demangle import demangle

    section = f"{one.section}+" if one.section else ""
    function, _, before = (one.function or "").partition("+0x")
    distance = one.address - one.start + int(before or "0", 16)
    name = demangle([function], parameters=True)[0] if function else ""
    if name and distance:
        name += f"+{distance:#x}"
    place = f"{section}{one.address:#x} {name}".rstrip()
    return printable(f"{place} ({counted(one.bytes, 'byte')}): {one.pattern}: {one.message}")


def print_undescribed(found: Sequence[Undescribed], limit: int) -> None:
    """Functions that a table does not describe."""
    from walkback.symbols.demangle import demangle

    shown = found[:limit]
    for one, name in zip(shown, demangle([one.function for one in shown], parameters=True), strict=True):
        place = f"{one.section}+{one.start:#x}" if one.section else f"{one.start:#x}"
        click.echo(printable(f"  not described: {place} {name} ({counted(one.size, 'byte')})"))
    if len(found) > limit:
        click.echo(f"  and {len(found) - limit} more that are not described")
