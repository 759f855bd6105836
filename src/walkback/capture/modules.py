"""The files whose code a process has mapped: found, checked against what was recorded, and numbered.

A file is right if it has the build ID that was recorded; where none was recorded, the one at the path is taken as it
is. A file that was rebuilt since is looked for by its build ID, in perf's cache and among the debug files. What is not
there, or is another file by now, is told as the module's `trouble`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout
from walkback.elf.debugfiles import build_id_roots, files_by_build_id
from walkback.elf.layout import ByteOrder
from walkback.errors import WalkbackError
from walkback.symbols import SymbolIndex

_PAGES = (1 << 12, 1 << 14, 1 << 16)
"""What sizes of pages there are, of which a mapping begins with a whole one."""


VDSO = "[vdso]"
"""The name of the code that the kernel maps into every process."""
_NO_FILE = "there is no such file"
_ADVICE = "--sysroot names a folder with the files of that machine, --buildid-dir a build-ID cache of perf"


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
    debug_roots: tuple[str, ...] = field(default=(), init=False)
    """The folders that hold files by build ID and separate debug files, as `Modules` knows them."""
    trouble: str | None = field(default=None, init=False)
    """Why its file is not to be had, after `elf` was asked for."""
    is_from_image: bool = field(default=False, init=False)
    """Whether `elf` is the image, as no file was found."""

    @cached_property
    def elf(self) -> ElfFile | None:
        """The file; None if there is none, which `trouble` explains."""
        for found in self._candidates():
            if self.machine is not None and (found.machine, found.byteorder) != self.machine:
                self.trouble = f"{found.name} is a file for another machine"
                continue
            if self.build_id and (its := _build_id(found)) != self.build_id:
                self.trouble = self._other_build(found.name, its)
                continue
            self.trouble = None
            return found
        return self._from_image()

    def _other_build(self, place: str, its: bytes | None) -> str:
        has = f"the build ID {its.hex()}" if its else "no build ID"
        where = "the file there" if place == self.name else place
        return f"{where} has {has}, and {(self.build_id or b'').hex()} was recorded"

    def _candidates(self) -> Iterator[ElfFile]:
        if self.opened is not None:
            yield self.opened
        for place in self.places:
            try:
                yield ElfFile.open(place)
            except WalkbackError as error:
                self.trouble = self.trouble or error.message
        for kept in files_by_build_id(self.build_id, self.debug_roots) if self.build_id else ():
            with contextlib.suppress(WalkbackError):
                yield ElfFile.open(kept)

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
        self,
        *,
        sysroot: str | os.PathLike[str] | None = None,
        buildid_dir: str | os.PathLike[str] | None = None,
        debug_roots: Iterable[str] | None = None,
    ) -> None:
        """With a `sysroot`, the path of a file is looked up below that folder and not on this machine.

        `buildid_dir` is perf's build-ID cache, if it is not the usual one; `debug_roots` names all folders that have
        files by build ID.
        """
        self._sysroot = sysroot
        self.debug_roots = build_id_roots(buildid_dir) if debug_roots is None else tuple(debug_roots)
        self._advised: Module | None = None
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
            self._numbers[key] = self._add(Module(path, build_id, (*places, *own)))
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
        module.debug_roots = self.debug_roots
        self._all.append(module)
        return len(self._all) - 1

    def trouble(self, module: Module) -> str:
        """Why a module has no file; of the first that has lost its build, with what helps all of them."""
        why = module.trouble or _NO_FILE
        if self._advised is None and module.build_id:
            self._advised = module
        return f"{why}; {_ADVICE}" if module is self._advised else why
