"""Where Go's table of functions is found: by its section, or by its first bytes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np

from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import GoError, UnreadableError, WalkbackError
from walkback.elf import ElfFile, Input, layout, loaded_addresses
from walkback.elf.golang import FUNCTIONS, is_go
from walkback.elf.inputs import each_of
from walkback.gopclntab.crossings import Crossing, crossings
from walkback.gopclntab.decoding import FunctionTable, Header, begins_well, decode, read_header
from walkback.gopclntab.layout import MODULE_CALLS, MODULE_CALLS_LAST, MODULE_TEXT
from walkback.gopclntab.lines import GoLines
from walkback.gopclntab.rules import to_table
from walkback.table.source import Kind, TableSource
from walkback.table.table import UnwindTable

_HEAD = re.compile(
    rb"[\xfb\xfa\xf0\xf1]\xff\xff\xff\0\0[\1\2\4][\4\10]|\xff\xff\xff[\xfb\xfa\xf0\xf1]\0\0[\1\2\4][\4\10]"
)
"""The first bytes of a table, in either byte order."""
_MOST_HEADS, _MOST_READ = 4096, 8
"""How often what begins like a table is looked at in a file, and how often it is read from end to end.

Each may claim all that follows it. Programs of Go have one table, and seldom anything else that begins like one.
"""
_MODULE = max(MODULE_CALLS_LAST + 1, MODULE_TEXT) + 1
"""Words of the module's data that are read; the last ones may be missing."""


@dataclass(repr=False)
class GoSource(TableSource):
    """The table of functions of one Go program, with the bytes that the loader leaves.

    >>> [source] = walkback.gopclntab.read("hello-go")
    >>> source.name, source.machine.name, len(source.table)
    ('.gopclntab', 'AMD64', 2)
    """

    kind: ClassVar[Kind] = "go"

    @property
    def bytes(self) -> int | None:
        """How many bytes the table takes, where a section has nothing else."""
        return len(self.data) if self.name in FUNCTIONS else None

    @cached_property
    def functions(self) -> FunctionTable:
        """What the table says."""
        try:
            header = read_header(self.data)
            text = header.words.get("text", 0) or _text_of_module(self.elf, self.address, header)
            return decode(self.data, text=text)
        except WalkbackError as error:
            raise error.within(file=self.file, section=self.name) from None

    def name_of(self, function: int) -> str | None:
        """The name of a function."""
        return self.functions.name(function)

    @cached_property
    def lines(self) -> GoLines:
        """The source lines of the program, and its inlined calls."""
        functions, calls = self.functions, None
        if functions.layout in MODULE_CALLS:
            with contextlib.suppress(UnreadableError):
                base = self._calls_base(functions)
                calls = None if base is None else self.elf.mapped_data(base)
        return GoLines(functions, calls)

    def _calls_base(self, functions: FunctionTable) -> int | None:
        """From where lists of inlined calls are counted, as the data of the module say."""
        module = _module(self.elf, self.address, functions.header)
        first = MODULE_CALLS[functions.layout]
        if module is None or len(module) <= first:
            return None
        inside = module[first : MODULE_CALLS_LAST + 2] - np.uint64(self.address + 1) < np.uint64(len(self.data))
        pairs = np.flatnonzero(inside[:-1] & inside[1:])
        return int(module[first + (pairs[0] if len(pairs) else 0)])

    @cached_property
    def table(self) -> UnwindTable:
        """The neutral table."""
        return to_table(self.functions, self.machine, self._code)

    @cached_property
    def crossings(self) -> list[Crossing]:
        """Where functions have called something on another stack."""
        return [] if self._code is None else crossings(self.functions, self.machine, self._code)

    @cached_property
    def _code(self) -> memoryview | None:
        """The bytes from where the code begins."""
        try:
            return self.elf.mapped_data(self.functions.text) if len(self.functions) else None
        except UnreadableError:
            return None


def read(source: Input) -> Iterator[GoSource]:
    """The tables of Go programs in a file: of an ELF file, or of each member of an archive.

    >>> [source] = walkback.gopclntab.read("hello-go")
    >>> source.functions.name(1)
    'main.init'
    """
    return each_of(source, go_source, "there is no table of Go's functions")


def go_source(elf: ElfFile) -> GoSource | None:
    """The table of a linked file, if it has one."""
    if elf.is_relocatable:
        return None
    for name in FUNCTIONS:
        for number in elf.sections_named(name):
            if elf.sections["type"][number] != layout.SHT_NOBITS:
                address = int(elf.sections["addr"][number])
                return GoSource(elf, name, _as_loaded(elf, elf.section_data(number), address), address)
    return _searched(elf) if is_go(elf) else None


def _searched(elf: ElfFile) -> GoSource | None:
    """The table where no section says so: what begins like one, and is one."""
    likely = (one for one in islice(_heads(elf), _MOST_HEADS) if begins_well(one[2]))
    for number, address, data in islice(likely, _MOST_READ):
        with contextlib.suppress(GoError):
            if len(decode(data)):
                return GoSource(elf, _section_at(elf, address) or f"segment {number}", data, address)
    return None


def _heads(elf: ElfFile) -> Iterator[tuple[int, int, memoryview]]:
    """Where something begins like a table: the segment, the address, and the bytes from there on as they are loaded."""
    for number in np.flatnonzero(elf.segments["type"] == layout.PT_LOAD).tolist():
        data, start, loaded = elf.segment_data(number), int(elf.segments["vaddr"][number]), None
        for match in _HEAD.finditer(data):
            loaded = _as_loaded(elf, data, start) if loaded is None else loaded
            yield number, start + match.start(), loaded[match.start() :]


def _section_at(elf: ElfFile, address: int) -> str | None:
    """The section of an address, where there are sections."""
    size, held = elf.sections["size"], elf.sections["flags"] & layout.SHF_ALLOC != 0
    found = np.flatnonzero(held & (np.uint64(address) - elf.sections["addr"] < size)).tolist()
    return elf.section_name(found[0]) if found else None


def _as_loaded(elf: ElfFile, data: memoryview, address: int) -> memoryview:
    """Bytes with the addresses that the loader writes."""
    words = loaded_addresses(elf)
    if not ((words.place >= np.uint64(address)) & (words.place < np.uint64(address + len(data)))).any():
        return data
    contents = np.frombuffer(data, np.uint8).copy()
    words.write(contents, address, elf.byteorder)
    return contents.data


def _text_of_module(elf: ElfFile, address: int, header: Header) -> int:
    """Where the code begins, as the data of the module say."""
    if "text" not in header.words:
        return 0
    module = _module(elf, address, header)
    if module is None:
        raise GoError("the file does not say where the code begins", rule="go-text")
    return int(module[MODULE_TEXT])


def _module(elf: ElfFile, address: int, header: Header) -> U64 | None:
    """The data of the module, as words: they begin with the address of the table."""
    size, words = header.pointer_size, loaded_addresses(elf)
    code = f"{'<' if header.byteorder == 'little' else '>'}u{size}"
    for number in np.flatnonzero(elf.segments["type"] == layout.PT_LOAD).tolist():
        if not elf.segments["flags"][number] & layout.PF_W:
            continue
        contents = np.frombuffer(elf.segment_data(number), np.uint8).copy()
        words.write(contents, int(elf.segments["vaddr"][number]), elf.byteorder)
        values = contents[: len(contents) // size * size].view(code)
        at = np.flatnonzero(values[: max(len(values) - MODULE_TEXT, 0)] == address)
        at = at[elf.is_code(values[at + MODULE_TEXT].astype(np.uint64))]
        if len(at):
            return values[at[0] : at[0] + _MODULE].astype(np.uint64)
    return None
