"""The files whose code a process has mapped: found, checked against what was recorded, and numbered.

A file is right if it has the build ID that was recorded; where none was recorded, the one at the path is taken, and
`doubts` names those that have changed since. A file that was rebuilt since is looked for by its build ID, in perf's
cache and among the debug files. Why a module has no file, its `trouble` says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, FileSearch
from walkback.elf import layout as elf_layout
from walkback.symbols import SymbolIndex
from walkback.symbols.sourceline import SourceLine
from walkback.table.table import UnwindTable

_PAGES = (1 << 12, 1 << 14, 1 << 16)
"""The sizes that pages can have; a mapping begins with a whole page."""


VDSO = "[vdso]"
"""The name of the code that the kernel maps into every process."""
_NO_FILE = "there is no such file"
_MOST_NAMED = 3
_ADVICE = "--sysroot names a folder with the files of that machine, --buildid-dir a build-ID cache of perf"


class SourceLines(Protocol):
    """Source lines that are not in the file."""

    def find(self, addresses: U64) -> list[tuple[SourceLine, ...]]:
        """For each address its line."""


@dataclass(eq=False)
class Module:
    """One file, or image of a file, with code."""

    name: str
    """The path that the process has mapped, or a name in brackets as `[vdso]`."""
    build_id: bytes | None = None
    """As recorded by the source."""
    places: tuple[str, ...] = ()
    """Where the file may be, in the order in which they are tried."""
    image: memoryview | None = None
    """The contents, where they were read from memory; used if there is no file."""
    opened: ElfFile | None = None
    """The file, where the source itself has opened it."""
    machine: tuple[int, ByteOrder] | None = None
    """The machine number and byte order that its file must have; None for any."""
    process: int | None = None
    """A process that has mapped it."""
    recorded: int | None = None
    """When it was recorded at the latest, in nanoseconds since 1970."""
    is_made: bool = False
    """Whether its code was made at run time, so that no file has it."""
    rules: UnwindTable | None = None
    """Rules for its code, which is in no file, where the source has made them from the code."""
    only_named: bool = False
    """Whether nothing but names is wanted: then its debug file will do, if the file itself is gone."""
    named_by: int = 0
    """The process whose perf map names its code; 0 for none."""
    lines: SourceLines | None = None
    """Its source lines, where the source itself has them."""
    remedy: str = ""
    """What else can be done if its file is not to be had."""
    search: FileSearch = field(default_factory=FileSearch, init=False)
    """What finds its files, as `Modules` knows it."""
    trouble: str | None = field(default=None, init=False)
    """Why its file is not to be had, after `elf` was asked for."""
    is_newer: bool = field(default=False, init=False)
    """Whether the file has changed since it was recorded, and no build ID was recorded that could vouch for it."""
    is_from_image: bool = field(default=False, init=False)
    """Whether `elf` is the image, as no file was found."""

    @cached_property
    def elf(self) -> ElfFile | None:
        """The file; None if there is none, which `trouble` explains."""
        if self.rules is not None:
            return None
        for found in self._candidates():
            if self.machine is not None and (found.machine, found.byteorder) != self.machine:
                self.trouble = f"{found.name} is a file for another machine"
                continue
            if self.build_id and (its := build_id_of(found)) != self.build_id:
                self.trouble = self._other_build(found.name, its)
                continue
            self.trouble = None
            self.is_newer = self.build_id is None and self._has_changed(found)
            return found
        return self._from_image()

    def _other_build(self, place: str, its: bytes | None) -> str:
        has = f"the build ID {its.hex()}" if its else "no build ID"
        where = "the file there" if place == self.name else place
        return f"{where} has {has}, and {(self.build_id or b'').hex()} was recorded"

    def _has_changed(self, found: ElfFile) -> bool:
        if self.recorded is None or found.file is None:
            return False
        status = found.file.status
        # A link, as perf makes one for its cache, changes this time as well.
        is_linked = status.st_nlink > 1 and status.st_mtime_ns <= self.recorded
        return status.st_ctime_ns > self.recorded and not is_linked

    def _candidates(self) -> Iterator[ElfFile]:
        if self.opened is not None:
            yield self.opened
        for place in self.search.programs(self.name, self.build_id, self.places, self.process):
            try:
                yield ElfFile(place)
            except WalkbackError as error:
                if place not in self.places:
                    self.trouble = "; ".join(filter(None, (self.trouble, f"{place}: {error.message}")))
                self.trouble = self.trouble or error.message
        if self.only_named and self.build_id:
            for place in self.search.debug_files(self.name, self.build_id):
                with contextlib.suppress(WalkbackError):
                    yield ElfFile(place)

    def _from_image(self) -> ElfFile | None:
        if self.image is not None:
            try:
                found = ElfFile(self.image, self.name)
            except WalkbackError as error:
                self.trouble = self.trouble or error.message
            else:
                self.is_from_image = True
                self.trouble = None
                return found
        self.trouble = self.trouble or _NO_FILE
        return None

    @cached_property
    def symbols(self) -> SymbolIndex | None:
        """The names of its code."""
        return SymbolIndex(self.elf, self.search) if self.elf is not None else None

    def as_addresses(self, places: U64) -> U64:
        """Addresses as the file counts, of what may be places in the file: they are where no code has that address.

        While a file is not to be had, nobody knows from which address it counts.
        """
        found = places.copy()
        with contextlib.suppress(WalkbackError):
            loads = self.elf.segments if self.elf is not None else ()
            chosen = [one for one in loads if one["type"] == elf_layout.PT_LOAD and one["flags"] & elf_layout.PF_X]
            code = np.zeros(len(places), np.bool_)
            for one in chosen:
                code |= places - one["vaddr"] < one["memsz"]
            for one in chosen:
                inside = ~code & (places - one["offset"] < one["filesz"])
                found[inside] += one["vaddr"] - one["offset"]
        return found

    def bias(self, start: int, page_offset: int) -> int:
        """What to take from an address in a mapping to have the file's own address, modulo 2**64.

        `start` is where the mapping begins, and `page_offset` the place in the file that it begins with.
        """
        elf = self.elf
        if elf is not None:
            with contextlib.suppress(WalkbackError):
                loads = elf.segments[elf.segments["type"] == elf_layout.PT_LOAD]
                # Of several segments that share a page of the file the executable one is meant.
                loads = loads[np.argsort((loads["flags"] & elf_layout.PF_X) == 0, kind="stable")]
                for page, segment in product(_PAGES, loads):
                    offset, size, address = (int(segment[name]) for name in ("offset", "filesz", "vaddr"))
                    if offset & -page <= page_offset < offset + size:
                        return (start - (address + page_offset - offset)) % 2**64
        return (start - page_offset) % 2**64


def build_id_of(elf: ElfFile) -> bytes | None:
    """The build ID of a file; None if it has none that can be read."""
    with contextlib.suppress(WalkbackError):
        return elf.build_id
    return None


class Modules:
    """All modules of a capture, by number.

    >>> modules = walkback.naming.Modules()
    >>> core = walkback.CoreFile.open("core.hello", modules)
    >>> len(modules)
    1
    """

    def __init__(self, search: FileSearch | None = None) -> None:
        """`search` finds their files; without one, the usual places are looked at."""
        self.search = search or FileSearch()
        self.recorded: int | None = None
        """When the capture was made, in nanoseconds since 1970, where that is known."""
        self._advised: Module | None = None
        self._all: list[Module] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._makers: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Modules({len(self._all)})"

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Module:
        return self._all[number]

    def all(self) -> list[Module]:
        """Those that there are so far."""
        return list(self._all)

    @property
    def makers(self) -> I64 | None:
        """Of each module the process whose perf map names its code, 0 for none, also at the end; None if all are 0."""
        if not self._makers:
            return None
        found = np.zeros(len(self._all) + 1, np.int64)
        found[list(self._makers)] = list(self._makers.values())
        return found

    def file(
        self, path: str, build_id: bytes | None = None, *, places: tuple[str, ...] = (), process: int | None = None
    ) -> int:
        """The number of a file that a `process` has mapped; `places` are tried before its path."""
        key = (path, build_id, places)
        if key not in self._numbers:
            places = (*places, *self.search.path(path))
            # The files below a sysroot may be younger than what was recorded on the machine that they come from.
            recorded = self.recorded if self.search.sysroot is None else None
            self._numbers[key] = self._add(Module(path, build_id, places, process=process, recorded=recorded))
        return self._numbers[key]

    def image(self, name: str, contents: memoryview) -> int:
        """The number of a module whose contents were read from memory, as the vDSO's."""
        key = (name, bytes(contents))
        if key not in self._numbers:
            self._numbers[key] = self._add(Module(name, image=contents))
        return self._numbers[key]

    def number(self, key: tuple[object, ...]) -> int | None:
        """The number of a module that was added with this key."""
        return self._numbers.get(key)

    def add(self, module: Module, key: tuple[object, ...]) -> int:
        """The number of a module that a source has made itself; of the one that was there, if the key is known."""
        if key not in self._numbers:
            self._numbers[key] = self._add(module)
        return self._numbers[key]

    def _add(self, module: Module) -> int:
        module.search = self.search
        if module.named_by:
            self._makers[len(self._all)] = module.named_by
        self._all.append(module)
        return len(self._all) - 1

    def trouble(self, module: Module) -> str:
        """Why a module has no file; of the first that has lost its build, with what helps all of them."""
        why = module.trouble or _NO_FILE
        if self._advised is None and module.build_id:
            self._advised = module
        remedies = [_ADVICE if module is self._advised else "", module.remedy]
        return "; ".join([why, *filter(None, remedies)])

    @property
    def doubts(self) -> list[str]:
        """A line on the files that may not be those that were recorded; none if there are none."""
        newer = [module.name for module in self._all if module.is_newer]
        if not newer:
            return []
        names = ", ".join(newer[:_MOST_NAMED]) + (", ..." if len(newer) > _MOST_NAMED else "")
        return [f"recorded without build IDs, and changed since, so that names may be wrong: {names}"]
