"""Units whose entries are in another file: a `.dwo` file of each, or a package of many beside the program.

DWARF 5, sections 7.3.2 and 7.3.5, and what GCC and gold did before it. What is left in the program, a skeleton, has the
identifier of the other part, and the addresses that it counts from.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from walkback.base.errors import WalkbackError
from walkback.debuginfo import layout
from walkback.debuginfo._entries import units
from walkback.debuginfo._unit import Unit
from walkback.debuginfo.files import DebugFile, DebugSource
from walkback.debuginfo.sections import debug_sections, split_infos
from walkback.elf import ElfFile

_HEADER = 16
_VERSIONS = (2, 5)
_CONTRIBUTIONS = (layout.DW_SECT_ABBREV, layout.DW_SECT_STR_OFFSETS, layout.DW_SECT_RNGLISTS)


class _Skeleton(NamedTuple):
    """What a unit says of its other part."""

    name: str
    folder: str | None
    identifier: int
    bases: tuple[int, int, int]


class SplitUnits:
    """Those of one file."""

    def __init__(self, file: DebugFile, missing: dict[str, str]) -> None:
        """`missing` takes the names of files that were looked for in vain, and why they do not count."""
        self._file = file
        self._found: dict[int, DebugSource | None] = {}
        self._missing = missing

    def find(self, number: int) -> DebugSource | None:
        """The other part of a unit; None where it has none, or that is nowhere."""
        if not self._file.units.split_name[number]:
            return None
        if number not in self._found:
            self._found[number] = self._find(number)
        return self._found[number]

    def _find(self, number: int) -> DebugSource | None:
        columns, text = self._file.units, self._file.source.text
        name = text(int(columns.split_name[number]))
        if name is None:
            return None
        bases = int(columns.low[number]), int(columns.addr_base[number]), int(columns.ranges_base[number])
        skeleton = _Skeleton(name, text(int(columns.folder[number])), int(columns.id[number]), bases)
        lost = name, "is not there"
        for place, package in self._packages.items():
            try:
                found = self._in_package(package, skeleton) if package is not None else None
            except (WalkbackError, ValueError):
                found = self._packages[place] = None
            if found is not None:
                return found
            if self._packages[place] is None:
                lost = place, "cannot be read"
        for path in self._paths(skeleton):
            try:
                found = self._in_file(ElfFile(path), skeleton)
            except (WalkbackError, ValueError):
                lost = name, "cannot be read"
                continue
            if found is not None:
                return found
            lost = name, "is of another build"
        self._missing.update([lost])
        return None

    def _paths(self, skeleton: _Skeleton) -> Iterator[Path]:
        """As the compiler named it; else beside the program, as if both had been moved."""
        beside = Path(os.path.realpath(self._file.program.name)).parent
        name = skeleton.name
        for path in dict.fromkeys((Path(skeleton.folder or "", name), beside / name, beside / Path(name).name)):
            if os.path.isfile(path):
                yield path

    def _in_file(self, elf: ElfFile, skeleton: _Skeleton) -> DebugSource | None:
        """The unit of the skeleton's identifier in a `.dwo` file, which has a section for each type unit as well."""
        for info in split_infos(elf):
            source = self._source(elf, skeleton, info)
            found, bases, _ = units(source.unit)
            right = np.flatnonzero(bases[:, 3] == np.uint64(skeleton.identifier))
            if len(right):
                source.starts = found[right[:1], 0]
                return source
        return None

    def _in_package(self, package: ElfFile, skeleton: _Skeleton) -> DebugSource | None:
        """The same in a package, where an index says where its parts of each section are."""
        row: dict[int, int] | None = None
        for index in package.sections_named(".debug_cu_index"):
            row = _contributions(package.section_data(index), package.byteorder, skeleton.identifier)
        if row is None:
            return None
        source = self._source(package, skeleton)
        source.unit.packed_at(*(row.get(kind, 0) for kind in _CONTRIBUTIONS))
        source.starts = np.array([row.get(layout.DW_SECT_INFO, 0)], np.uint64)
        return source

    def _source(self, elf: ElfFile, skeleton: _Skeleton, info: memoryview | None = None) -> DebugSource:
        """Addresses, and ranges before DWARF 5, are in the file that was split."""
        own = self._file.sections
        sections = debug_sections(elf, ".dwo")._replace(addr=own.addr, ranges=own.ranges)
        if info is not None:
            sections = sections._replace(info=info)
        unit = Unit(sections, self._file.big)
        unit.split_from(*skeleton.bases)
        return DebugSource(sections, unit, np.zeros(0, np.uint64))

    @cached_property
    def _packages(self) -> dict[str, ElfFile | None]:
        """Those beside the program, or beside its debug file; None for what cannot be read."""
        found: dict[str, ElfFile | None] = {}
        names = (Path(elf.name) for elf in (self._file.program, self._file.elf))
        for path in dict.fromkeys(one for name in names for one in (Path(f"{name}.dwp"), name.with_suffix(".dwp"))):
            if os.path.isfile(path):
                found[str(path)] = None
                with contextlib.suppress(WalkbackError, ValueError):
                    found[str(path)] = ElfFile(path)
        return found


def _contributions(data: memoryview, byteorder: str, identifier: int) -> dict[int, int] | None:
    """Where the parts of a unit begin in each section, by the number of the section; None if it is not there."""
    order = "<" if byteorder == "little" else ">"
    if len(data) < _HEADER:
        return None
    version, columns, count, slots = np.frombuffer(data, f"{order}u4", 4).tolist()
    if version not in _VERSIONS:  # DWARF 5 has 2 bytes for it
        version = int(np.frombuffer(data, f"{order}u2", 1)[0])
    rows_at = _HEADER + 8 * slots
    kinds_at = rows_at + 4 * slots
    if version not in _VERSIONS or kinds_at + 4 * columns * (count + 1) > len(data):
        return None
    slot = np.flatnonzero(np.frombuffer(data, f"{order}u8", slots, _HEADER) == np.uint64(identifier))
    row = int(np.frombuffer(data, f"{order}u4", slots, rows_at)[slot[0]]) if len(slot) else 0
    if not 0 < row <= count:
        return None
    kinds = np.frombuffer(data, f"{order}u4", columns, kinds_at)
    offsets = np.frombuffer(data, f"{order}u4", columns, kinds_at + 4 * columns * row)
    return dict(zip(kinds.tolist(), offsets.tolist(), strict=True))
