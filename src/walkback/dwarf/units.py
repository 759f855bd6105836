"""Which compilers and languages a file's debugging information names.

DWARF 5, sections 3.1.1 and 7.5, and the versions 2 to 4 before it. A compilation unit begins with an entry that has
DW_AT_producer and DW_AT_language; nothing else of a unit is read. Type units and partial units have neither and are
passed over. What stands in another file (split units, what dwz moved out) is not looked for there.

Nothing is read from what is damaged: of such a file the units count that stand before the damage.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from walkback.base.arch import ByteOrder
from walkback.base.errors import UnreadableError
from walkback.dwarf import unitlayout as layout
from walkback.elf import layout as elf_layout
from walkback.elf import relocated
from walkback.elf.compressed import unpacked_size

if TYPE_CHECKING:
    from walkback.elf import ElfFile

_MOST_UNITS = 20_000
"""Of all kinds."""
_MOST_DISTINCT = 1000
"""The most producers that are counted by name; honest files have a handful, and any more count as nameless."""
_MOST_SEARCHED = 256 << 20
_LONGEST_TABLE = 1 << 20
"""Bytes searched for declarations: in all, and for one unit."""
_LARGEST = 64 << 20
"""The most bytes of copies, which compressed and relocatable files need; more would cost more than it is worth."""
_LONGEST = 256
"""GCC lists all its options; the beginning is enough."""
_SEEN = 64
"""A declaration of at most this many bytes is read once, as most units have the same one."""

_SECTION = re.compile(r"\.z?debug_(.*)")
_NAMES = ("info", "abbrev", "str", "line_str", "str_offsets")
_MOST_ATTRIBUTES = 100
"""Of a unit; there are some twenty."""
_WANTED = frozenset({layout.DW_AT_PRODUCER, layout.DW_AT_LANGUAGE, layout.DW_AT_STR_OFFSETS_BASE})

Value = int | str | None
Attributes = list[tuple[int, int, int]]
"""Of each its name, its form, and the value that the declaration has for it."""
Declaration = tuple[int, Attributes]
"""A tag, and what is behind it."""


class Unit(NamedTuple):
    """What a compilation unit says of itself; None where it says nothing that can be read."""

    producer: str | None
    language: str | None


_RELOCATED = frozenset(machine for machine, _ in elf_layout.ABSOLUTE)
_NAMELESS = Unit(None, None)


class _CutOffError(Exception):
    """The bytes end within what is read, or mean nothing."""


def compile_units(elf: ElfFile) -> Counter[Unit]:
    """How many compilation units of each producer and language a file has.

    Relocatable files of machines whose relocations are not known have none: their strings could be any others.
    """
    found: Counter[Unit] = Counter()
    if elf.is_relocatable and elf.machine not in _RELOCATED:
        return found
    with contextlib.suppress(UnreadableError):
        sections = _sections(elf)
        for suffix in ("", ".dwo"):
            if sections[f"info{suffix}"]:
                _Units(elf, sections, suffix, found).read()
    return found


def _sections(elf: ElfFile) -> dict[str, list[int]]:
    """The sections of debugging information, by their names without what all of them begin with."""
    found: dict[str, list[int]] = {name + suffix: [] for name in _NAMES for suffix in ("", ".dwo")}
    for index, name in enumerate(elf.section_names()):
        match = _SECTION.fullmatch(name)
        if match and match[1] in found:
            found[match[1]].append(index)
    return found


class _Bytes:
    """A place in bytes, and what is read there."""

    __slots__ = ("at", "data", "order")

    def __init__(self, data: memoryview, order: ByteOrder, at: int = 0) -> None:
        self.data = data
        self.order = order
        self.at = at

    def skip(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise _CutOffError
        self.at += size

    def number(self, size: int) -> int:
        start = self.at
        self.skip(size)
        return int.from_bytes(self.data[start : self.at], self.order)

    def leb128(self) -> int:
        """An unsigned number; of a signed one nobody wants the value."""
        value = shift = 0
        while shift < 70:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise _CutOffError

    def text(self) -> str:
        """The string here, up to what is wanted of it."""
        if self.at >= len(self.data):
            raise _CutOffError
        return bytes(self.data[self.at : self.at + _LONGEST]).partition(b"\0")[0].decode(errors="backslashreplace")

    def skip_text(self) -> None:
        end = -1
        while end < 0:
            part = bytes(self.data[self.at : self.at + 4096])
            end = part.find(0)
            self.skip(len(part) if end < 0 and part else end + 1 or 1)


class _Units:
    """The units of one file; with the suffix `.dwo` those that were split off into it."""

    def __init__(self, elf: ElfFile, sections: dict[str, list[int]], suffix: str, found: Counter[Unit]) -> None:
        self.elf = elf
        self.found = found
        self.sections = {name: sections[name + suffix] for name in _NAMES}
        self.units_left = _MOST_UNITS
        self.room = _LARGEST
        self.searched_left = _MOST_SEARCHED
        self.declared: dict[bytes, Attributes] = {}
        self.contents: dict[str, memoryview] = {}

    def read(self) -> None:
        for index in self.sections["info"]:
            data = _Bytes(self._data(index), self.elf.byteorder)
            with contextlib.suppress(_CutOffError):
                while data.at < len(data.data) and self.units_left:
                    self.units_left -= 1
                    self._unit(data)

    def _data(self, index: int) -> memoryview:
        """A section; nothing of one that takes too large a copy."""
        moved = self.elf.is_relocatable and index in self.elf.relocation_sections
        size = unpacked_size(self.elf, index)
        if moved and size is None:
            size = int(self.elf.sections["size"][index])
        if size is not None:
            if size > self.room:
                return self.elf.data[:0]
            self.room -= size
        return relocated(self.elf, index).data if moved else self.elf.section_data(index)

    def _named(self, name: str, at: int) -> _Bytes:
        """A place in the section of strings, offsets or declarations that goes with these units."""
        if name not in self.contents:
            indices = self.sections[name]
            self.contents[name] = self._data(indices[0]) if indices else self.elf.data[:0]
        return _Bytes(self.contents[name], self.elf.byteorder, at)

    def _unit(self, data: _Bytes) -> None:
        """Count one unit and go to the next."""
        wide = 4
        length = data.number(4)
        if length == layout.WIDE:
            wide = 8
            length = data.number(8)
        elif length >= layout.FIRST_RESERVED:
            raise _CutOffError
        start = data.at
        data.skip(length)
        try:
            unit = self._read(_Bytes(data.data[start : data.at], data.order), wide)
        except _CutOffError:
            unit = _NAMELESS
        if unit is None:
            return
        if unit not in self.found and len(self.found) >= _MOST_DISTINCT:
            unit = _NAMELESS
        self.found[unit] += 1

    def _read(self, data: _Bytes, wide: int) -> Unit | None:
        """What a unit says, from its version on; None of one that is no compilation unit."""
        version = data.number(2)
        if version == 5:
            kind, address_size = data.number(1), data.number(1)
            if kind not in layout.COMPILE_UNITS:
                return None
            table = data.number(wide)
            data.skip(0 if kind == layout.DW_UT_COMPILE else 8)  # the identifier of what was split
        elif 2 <= version <= 4:
            table, address_size = data.number(wide), data.number(1)
        else:
            raise _CutOffError
        place = data.at
        data.leb128()
        tag, attributes = self._declaration(table, bytes(data.data[place : data.at]))
        if tag == layout.DW_TAG_PARTIAL_UNIT:
            return None
        entry = _Entry(data, _sizes(version, wide, address_size))
        values = {name: (form, entry.value(form, given)) for name, form, given in attributes}
        return Unit(self._producer(values, version, wide), _language(values))

    def _declaration(self, table: int, code: bytes) -> Declaration:
        """The tag of the entries of this code, and their attributes up to the last that is wanted.

        The declarations are searched and not read in turn, as GCC puts that of the unit anywhere among hundreds: each
        of them but the first stands behind the two zeros that end another.
        """
        data = self._named("abbrev", table)
        window = data.data[table : table + min(_LONGEST_TABLE, self.searched_left)]
        match = _first_declaration(code).match(window) or _declaration(code).search(window)
        self.searched_left -= match.end() if match else len(window)
        if match is None:
            raise _CutOffError
        data.at += match.end()
        key = bytes(data.data[data.at : data.at + _SEEN])
        attributes = self.declared.get(key)
        if attributes is None:
            start = data.at
            attributes = _attributes(data)
            if data.at - start <= len(key):
                self.declared[key] = attributes
        return match[1][0], attributes

    def _producer(self, values: dict[int, tuple[int, Value]], version: int, wide: int) -> str | None:
        form, value = values.get(layout.DW_AT_PRODUCER, (0, None))
        if value is None or isinstance(value, str):
            return value
        with contextlib.suppress(_CutOffError):
            if form in layout.STRING_INDICES:
                # A split unit does not say where its offsets begin: behind a header, which they have from version 5 on.
                header = 2 * wide if version >= 5 else 0
                _, base = values.get(layout.DW_AT_STR_OFFSETS_BASE, (0, header))
                place = (base if isinstance(base, int) else header) + wide * value
                return self._named("str", self._named("str_offsets", place).number(wide)).text()
            if form == layout.DW_FORM_STRP:
                return self._named("str", value).text()
            if form == layout.DW_FORM_LINE_STRP:
                return self._named("line_str", value).text()
        return None


class _Entry(_Bytes):
    """The attributes of one entry, whose values stand one after the other."""

    __slots__ = ("sizes",)

    def __init__(self, data: _Bytes, sizes: dict[int, int]) -> None:
        super().__init__(data.data, data.order, data.at)
        self.sizes = sizes

    def value(self, form: int, given: int) -> Value:
        """A number or a string; None of what is only passed over."""
        size = self.sizes.get(form)
        if size is not None:
            return self.number(size)
        if form in layout.LEB128:
            return self.leb128()
        if form == layout.DW_FORM_STRING:
            found = self.text()
            self.skip_text()
            return found
        if form in layout.BLOCKS:
            self.skip(self.number(layout.BLOCKS[form]) if layout.BLOCKS[form] else self.leb128())
            return None
        if form == layout.DW_FORM_IMPLICIT_CONST:
            return given
        if form == layout.DW_FORM_INDIRECT:
            real = self.leb128()
            if real != layout.DW_FORM_INDIRECT:
                return self.value(real, 0)
        raise _CutOffError


@lru_cache(16)
def _sizes(version: int, wide: int, address_size: int) -> dict[int, int]:
    """How many bytes a value has, of the forms for which the unit decides that and of those where it never varies."""
    sizes = layout.SIZES | dict.fromkeys(layout.OFFSETS, wide)
    sizes[layout.DW_FORM_ADDR] = address_size
    sizes[layout.DW_FORM_REF_ADDR] = address_size if version == 2 else wide
    return sizes


@lru_cache(256)
def _declaration(code: bytes) -> re.Pattern[bytes]:
    """A declaration behind another, up to its attributes."""
    return re.compile(rb"\x00\x00" + _first_declaration(code).pattern, re.DOTALL)


@lru_cache(256)
def _first_declaration(code: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(code) + layout.UNIT_TAGS + rb"[\x00\x01]", re.DOTALL)


def _attributes(data: _Bytes) -> Attributes:
    """Those of the declaration that is read, up to the last that is wanted."""
    attributes: Attributes = []
    wanted = 0
    while len(attributes) < _MOST_ATTRIBUTES:
        name, form = data.leb128(), data.leb128()
        given = data.leb128() if form == layout.DW_FORM_IMPLICIT_CONST else 0
        if not name and not form:
            return attributes[:wanted]
        attributes.append((name, form, given))
        if name in _WANTED:
            wanted = len(attributes)
    raise _CutOffError


def _language(values: dict[int, tuple[int, Value]]) -> str | None:
    _, code = values.get(layout.DW_AT_LANGUAGE, (0, None))
    return layout.LANGUAGES.get(code) if isinstance(code, int) else None
