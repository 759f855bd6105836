"""The files whose code a live process runs, also where they were deleted, replaced, or are in another mount namespace.

The file at a path is taken if it is the one that is mapped: its device and inode are those of the mapping, or, since
some file systems give different devices, its inode and its first page are. Else the kernel's own handle of the mapped
file is opened, which not everybody may. If that fails, what the process has of it in memory is put together; that has
the build ID by which the file may be found elsewhere.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from walkback.base.arch import Machine
from walkback.base.errors import WalkbackError
from walkback.base.owned import owners_of
from walkback.capture.dumps import NO_CODE, DumpedCode, Dumps, overlaid
from walkback.capture.live.maps import Maps, MapsLine
from walkback.capture.memoryimages import build_id_in, image_of
from walkback.capture.registered import RegisteredCode
from walkback.capture.trampolines import Trampolines, within
from walkback.elf import ElfFile, OpenFile, is_elf
from walkback.jitdump.layout import is_dump_name
from walkback.naming.modules import Module, Modules
from walkback.walking.samples import Space

_PAGE = 4096


class MappedCode:
    """The code of one process, whose files are opened when they are seen first."""

    def __init__(self, pid: int, modules: Modules, read: Callable[[int, int], bytes], machine: Machine) -> None:
        """`read` gives the process's memory."""
        self._pid = pid
        self._modules = modules
        self._read = read
        self._numbers: dict[tuple[int, int, str], int] = {}
        self._biases: dict[MapsLine, int] = {}
        self._made_of: list[MapsLine] = []
        self._mapped = self._copies = NO_CODE
        """Where the files are, and where Python's trampolines."""
        self._space: Space | None = None
        self._trampolines = Trampolines(modules, machine)
        self._dumps = Dumps(modules, machine)
        self._dumped: dict[str, DumpedCode] = {}
        self._registered = RegisteredCode(modules, read, sys.byteorder, self._dumps.troubles)
        self.troubles = self._dumps.troubles
        """Of files that are not to be had."""

    def space(self, maps: Maps) -> Space:
        """Where the code is; the same object as long as that is the same."""
        code = maps.code()
        added = [dump.read_on() for dump in self._dumps_in(code)]
        if self._space is None or code != self._made_of:
            numbers = [self._number(one, maps) for one in code]
            biases = [self._bias(one, number) for one, number in zip(code, numbers, strict=True)]
            self._biases = dict(zip(code, biases, strict=True))
            self._mapped = Space.of([line.start for line in code], [line.end - 1 for line in code], numbers, biases)
            self._space, self._made_of = None, code
        copies = self._copies_in(code)
        if self._space is None or any(added) or copies is not self._copies:
            lines = [line for line in code if line.is_anonymous]
            start = np.array([line.start for line in lines], np.uint64)
            last = np.array([line.end - 1 for line in lines], np.uint64)
            self._space, self._copies = overlaid(self._mapped, within(copies, start, last)), copies
            for dump in self._dumps_in(code):
                self._space = overlaid(self._space, dump.newest)
        return self._registered.over(self._space)

    def _copies_in(self, code: list[MapsLine]) -> Space:
        """Where Python's trampolines are that the process has made; the same object as long as that is the same."""
        if not any(line.is_anonymous for line in code):
            return NO_CODE
        self._trampolines.renew()
        return self._trampolines.of(self._pid, self._mapped.module.tolist)

    def _dumps_in(self, code: list[MapsLine]) -> list[DumpedCode]:
        """The dumps of code that is made at run time: their files are mapped as code, so that they are found."""
        for line in code:
            if is_dump_name(line.name) and line.name not in self._dumped:
                path = f"/proc/{self._pid}/root{line.name}"
                self._dumped[line.name] = DumpedCode(self._dumps, path, owners_of(self._pid), line.name)
        return list(self._dumped.values())

    def _bias(self, mapping: MapsLine, number: int) -> int:
        if number < 0:
            return 0
        known = self._biases.get(mapping)
        return known if known is not None else self._modules[number].bias(mapping.start, mapping.offset)

    def _number(self, mapping: MapsLine, maps: Maps) -> int:
        if not mapping.path:
            return -1
        identity = mapping.identity
        if identity not in self._numbers:
            self._numbers[identity] = self._find(mapping, maps)
        return self._numbers[identity]

    def _find(self, mapping: MapsLine, maps: Maps) -> int:
        if mapping.path == "[vdso]":
            return self._modules.image(mapping.path, memoryview(self._read(mapping.start, mapping.end - mapping.start)))
        if not mapping.is_file:
            return self._modules.add(Module(mapping.name), (mapping.name,))
        real = mapping.path if _is_at(mapping.path, mapping) else mapping.name
        key = ("mapped", mapping.device, mapping.inode, real)
        number = self._modules.number(key)
        if number is not None:
            return number
        elf, other = self._open(mapping, real)
        image = self._image(mapping, maps) if elf is None else None
        build_id = build_id_in(image, real) if image is not None else None
        number = self._modules.add(Module(real, build_id, image=image, opened=elf), key)
        found = self._modules[number]
        if found.elf is None and not other:
            self.troubles.append(f"{real}: its file cannot be had")
        elif found.is_from_image:
            self.troubles.append(f"{real}: its file cannot be had, so it was read from the process's memory")
        return number

    def _image(self, mapping: MapsLine, maps: Maps) -> memoryview | None:
        """What the process has of a file in its memory."""
        same = [one for one in maps.all if one.identity == mapping.identity]
        made = image_of([(one.offset, one.start, one.end - one.start) for one in same], self._read)
        return memoryview(made).toreadonly() if made is not None else None

    def _open(self, mapping: MapsLine, real: str) -> tuple[ElfFile | None, bool]:
        """The file; if there is none, whether it is there and no ELF file, as memory that a compiler has filled."""
        other = False
        for path in self._places(mapping, real):
            with contextlib.suppress(WalkbackError):
                data = OpenFile(path)
                other = other or not is_elf(data)
                return ElfFile(data, path), False
        return None, other

    def _places(self, mapping: MapsLine, real: str) -> Iterator[str]:
        for path in (real, f"/proc/{self._pid}/root{real}"):
            if _is_at(path, mapping) or self._is_like(path, mapping):
                yield path
        yield f"/proc/{self._pid}/map_files/{mapping.start:x}-{mapping.end:x}"
        if _is_at(f"/proc/{self._pid}/exe", mapping):
            yield f"/proc/{self._pid}/exe"

    def _is_like(self, path: str, mapping: MapsLine) -> bool:
        """Whether the inode and the beginning of what is mapped are those of the file."""
        try:
            place = Path(path)
            if place.stat().st_ino != mapping.inode or not place.is_file():
                return False
            with place.open("rb") as file:
                file.seek(mapping.offset)
                contents = file.read(_PAGE)
        except OSError:
            return False
        return bool(contents) and self._read(mapping.start, len(contents)) == contents


def _is_at(path: str, mapping: MapsLine) -> bool:
    """Whether the file at a path is the one that is mapped."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return False
    return (status.st_dev, status.st_ino) == (mapping.device, mapping.inode)
