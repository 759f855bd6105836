"""A wrong rule in one line, for the verbs that print some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walkback.base.text import counted, printable

if TYPE_CHECKING:
    from walkback.sections.verify import Mismatch


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
