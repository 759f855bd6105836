"""The files whose code a process has mapped: found, checked against what was recorded, and numbered.

A file is right if it has the build ID that was recorded; where none was recorded, the one at the path is taken as it
is. What is not there, or is another file by now, is told as the module's `trouble`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from walkback.elf import DEBUG_ROOTS, ElfFile
from walkback.elf import layout as elf_layout
from walkback.elf.layout import ByteOrder
from walkback.errors import WalkbackError
from walkback.symbols import SymbolIndex

_PAGES = (1 << 12, 1 << 14, 1 << 16)
"""What sizes of pages there are, of which a mapping begins with a whole one."""


VDSO = "[vdso]"
"""The name of the code that the kernel maps into every process."""


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
    """The contents, where they were read from memory."""
    opened: ElfFile | None = None
    """The file, where the source itself has opened it."""
    machine: tuple[int, ByteOrder] | None = None
    """The machine number and byte order that its file must have; None for any."""
    debug_roots: tuple[str, ...] = field(default=tuple(DEBUG_ROOTS), init=False)
    """The folders that hold separate debug files, as `Modules` knows them."""
    trouble: str | None = field(default=None, init=False)
    """Why its file is not to be had, after `elf` was asked for."""

    @cached_property
    def elf(self) -> ElfFile | None:
        """The file; None if there is none, which `trouble` explains."""
        for found in self._candidates():
            if self.machine is not None and (found.machine, found.byteorder) != self.machine:
                self.trouble = f"{found.name} is a file for another machine"
                continue
            if self.build_id and (its := _build_id(found)) != self.build_id:
                has = f"the build ID {its.hex()}" if its else "no build ID"
                self.trouble = f"{found.name} has {has}, and {self.build_id.hex()} was recorded"
                continue
            self.trouble = None
            return found
        self.trouble = self.trouble or "there is no such file"
        return None

    def _candidates(self) -> Iterator[ElfFile]:
        if self.opened is not None:
            yield self.opened
        if self.image is not None:
            try:
                yield ElfFile(self.image, self.name)
            except WalkbackError as error:
                self.trouble = self.trouble or error.message
        for place in self.places:
            try:
                yield ElfFile.open(place)
            except WalkbackError as error:
                self.trouble = self.trouble or error.message

    @cached_property
    def symbols(self) -> SymbolIndex | None:
        """The names of its code."""
        return SymbolIndex(self.elf, self.debug_roots) if self.elf is not None else None

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


def _build_id(elf: ElfFile) -> bytes | None:
    with contextlib.suppress(WalkbackError):
        return elf.build_id
    return None


class Modules:
    """All modules of a capture, by number."""

    def __init__(
        self, *, sysroot: str | os.PathLike[str] | None = None, debug_roots: Iterable[str] = DEBUG_ROOTS
    ) -> None:
        """Files are looked for in `sysroot` first; what is there for other machines stays out of the way."""
        self._sysroot = sysroot
        self._debug_roots = tuple(debug_roots)
        self._all: list[Module] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Module:
        return self._all[number]

    def all(self) -> list[Module]:
        """Those that there are so far."""
        return list(self._all)

    def file(self, path: str, build_id: bytes | None = None, *, places: tuple[str, ...] = ()) -> int:
        """The number of a file that a process has mapped; `places` are tried before its path."""
        key = (path, build_id, places)
        if key not in self._numbers:
            own = (f"{self._sysroot}/{path.lstrip('/')}",) if self._sysroot is not None else (path,)
            self._numbers[key] = self._add(Module(path, build_id, (*places, *own, *self.by_build_id(build_id))))
        return self._numbers[key]

    def by_build_id(self, build_id: bytes | None) -> tuple[str, ...]:
        """Where a file may be, whatever its name."""
        if not build_id:
            return ()
        text = build_id.hex()
        return tuple(str(Path(root, ".build-id", text[:2], text[2:])) for root in self._debug_roots)

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
        module.debug_roots = self._debug_roots
        self._all.append(module)
        return len(self._all) - 1
