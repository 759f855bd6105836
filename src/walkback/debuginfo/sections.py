"""The sections that hold debugging information, as bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from walkback.base.errors import UnreadableError, WalkbackError
from walkback.debuginfo.values import OFFSET_MASK, PLACE_SHIFT, Place
from walkback.elf import ElfFile
from walkback.elf.compressed import unpacked_size

_MOST = 1 << 30
"""Bytes of all sections of a file."""
_SHORT, LONGEST = 256, 1 << 14
"""Bytes of most texts, and of the longest; of longer ones the beginning is enough."""


class DebugSections(NamedTuple):
    """Those of one file; a section that is not there has no bytes."""

    info: memoryview
    abbrev: memoryview
    str_offsets: memoryview
    addr: memoryview
    ranges: memoryview
    rnglists: memoryview
    str: memoryview
    line_str: memoryview
    line: memoryview


def debug_sections(elf: ElfFile, suffix: str = "") -> DebugSections:
    """The sections of a file; with the suffix `.dwo` those of split units. A damaged one has no bytes.

    Raises `UnreadableError` if all of them are too large.
    """
    indices: dict[str, int] = {}
    for index, name in enumerate(elf.section_names()):
        plain = name.replace(".zdebug_", ".debug_", 1)
        if plain.startswith(".debug_"):
            indices.setdefault(plain, index)
    wanted = (indices.get(f".debug_{name}{suffix}", -1) for name in DebugSections._fields)
    size = sum(unpacked_size(elf, index) or int(elf.sections["size"][index]) for index in wanted if index >= 0)
    if size > _MOST:
        message = f"its debug information has {size} bytes, more than {_MOST}, and is not read"
        raise UnreadableError(message, file=elf.name)
    found = []
    for name in DebugSections._fields:
        index = indices.get(f".debug_{name}{suffix}", -1)
        data = elf.data[:0]
        if index >= 0:
            with contextlib.suppress(WalkbackError):
                data = elf.section_data(index)
        found.append(data)
    return DebugSections(*found)


def damaged_section(elf: ElfFile) -> str | None:
    """What is wrong with a section that cannot be read; None if all can."""
    wanted = {f".debug_{name}" for name in DebugSections._fields}
    for index, name in enumerate(elf.section_names()):
        if name.replace(".zdebug_", ".debug_", 1) in wanted:
            try:
                elf.section_data(index)
            except WalkbackError as error:
                return f"{error.section or name}: {error.message}"
    return None


def split_infos(elf: ElfFile) -> Iterator[memoryview]:
    """Each section with split units: types can have sections of their own. Of too large ones the first."""
    size = 0
    for index, name in enumerate(elf.section_names()):
        if name in {".debug_info.dwo", ".zdebug_info.dwo"}:
            size += unpacked_size(elf, index) or int(elf.sections["size"][index])
            if size > _MOST:
                return
            yield elf.section_data(index)


def text_of(number: int, sections: DebugSections, alternate: DebugSections | None) -> str | None:
    """The text of a number; None where there is none."""
    place, offset = number >> PLACE_SHIFT, number & OFFSET_MASK
    known: dict[int, memoryview] = {
        Place.INFO: sections.info,
        Place.STR: sections.str,
        Place.LINE_STR: sections.line_str,
        Place.LINE: sections.line,
    }
    if alternate is not None:
        known[Place.ALTERNATE_STR] = alternate.str
    data = known.get(place)
    if data is None or offset >= len(data):
        return None
    text, end, _ = bytes(data[offset : offset + _SHORT]).partition(b"\0")
    if not end:
        text, _, _ = bytes(data[offset : offset + LONGEST]).partition(b"\0")
    return text.decode(errors="surrogateescape") or None
