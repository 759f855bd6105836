"""The files whose code a process ran that left a core file.

NT_FILE names all of them and says where they were mapped. Without it the program's place follows from AT_PHDR and
AT_ENTRY, and its libraries are those that the dynamic linker lists. A file is used only if nothing that the core holds
of it speaks against it: its build ID, where the file's first page is in the core; else its dynamic section.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from walkback.base.arch import Machine
from walkback.base.errors import WalkbackError
from walkback.base.owned import owners_of
from walkback.capture.core.linkmap import DT_DEBUG, LinkMap, Loaded
from walkback.capture.core.memory import CoreMemory
from walkback.capture.core.notes import (
    AT_BASE,
    AT_ENTRY,
    AT_EXECFN,
    AT_PHDR,
    AT_PHNUM,
    AT_SYSINFO_EHDR,
    CoreNotes,
    MappedFile,
)
from walkback.capture.dumps import DumpedCode, Dumps, overlaid
from walkback.capture.memoryimages import build_id_in, image_of
from walkback.capture.registered import RegisteredCode
from walkback.capture.trampolines import Trampolines, within
from walkback.elf import ElfFile, OpenFile, is_elf
from walkback.elf import layout as elf_layout
from walkback.jitdump.layout import is_dump_name
from walkback.naming.modules import Module, Modules, build_id_of
from walkback.walking.samples import Space

_TOP = 2**64 - 1
_BEGINNING = 1 << 14
"""How much of a file's beginning is looked at for its build ID."""
_CHUNK = 1 << 16
_LARGEST_VDSO = 1 << 20


class Area(NamedTuple):
    """A stretch of memory that a module was mapped at."""

    start: int
    end: int
    module: int
    """-1 for none."""
    offset: int
    """In the module's file."""
    bias: int
    executable: bool


class CoreCode:
    """Finds all files once; `areas` and `troubles` have the result."""

    def __init__(
        self,
        core: ElfFile,
        machine: Machine,
        memory: CoreMemory,
        notes: CoreNotes,
        modules: Modules,
        exe: str | os.PathLike[str] | None,
    ) -> None:
        self._core, self._memory, self._notes, self._modules = core, memory, notes, modules
        self._exe = os.fspath(exe) if exe is not None else None
        self._room = 2 * len(core.data)
        self.areas: list[Area] = []
        self._dumps = Dumps(modules, machine)
        self.troubles = self._dumps.troubles
        if notes.files:
            self._by_files()
        else:
            self._by_link_map()
        self._vdso()
        self._anonymous_code()
        self.areas = _disjoint(self.areas)
        self._starts = [one.start for one in self.areas]

    def space(self) -> Space:
        """Where code is."""
        code = [area for area in self.areas if area.executable]
        lasts, modules = [area.end - 1 for area in code], [area.module for area in code]
        space = Space.of([area.start for area in code], lasts, modules, [area.bias for area in code])
        copies = Trampolines(self._modules, self._dumps.machine).of(self._notes.pid, {*modules}.copy)
        in_no_file = space.module < 0
        space = overlaid(space, within(copies, space.start[in_no_file], space.last[in_no_file]))
        for path in sorted({one.path for one in self._notes.files if is_dump_name(one.path)}):
            for place in self._modules.search.path(path):
                dump = DumpedCode(self._dumps, place, owners_of(self._notes.pid), path)
                dump.read_on()
                space = overlaid(space, dump.newest)
        return RegisteredCode(self._modules, self._memory.read, self._core.byteorder, self.troubles).over(space)

    def read(self, address: int) -> tuple[int, bytes] | None:
        """What the mapped file has there, where the core does not have it and the program could not change it."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self.areas[number].end or self._memory.is_writable(address):
            return None
        area = self.areas[number]
        elf = self._modules[area.module].elf if area.module >= 0 else None
        if elf is None:
            return None
        start = max(address & -4096, area.start)
        place = area.offset + start - area.start
        contents = bytes(elf.data[place : place + min(area.end - start, _CHUNK)])
        return (start, contents) if start + len(contents) > address else None

    # With NT_FILE

    def _by_files(self) -> None:
        groups: dict[str, list[MappedFile]] = {}
        for one in self._notes.files:
            groups.setdefault(one.path, []).append(one)
        entry = self._notes.auxiliary.get(AT_ENTRY, -1)
        for path, parts in groups.items():
            code = [one for one in parts if self._memory.is_executable(one.start) is not False]
            main = any(one.start <= entry < one.end for one in parts)
            if code or main:
                self._add_file(path, parts, main=main)

    def _add_file(self, path: str, parts: list[MappedFile], *, main: bool) -> None:
        build_id = self._build_id(path, parts)
        name = path.removesuffix(" (deleted)")
        number = self._module(name, build_id, self._exe if main else None)
        if main and self._exe is None:
            self._modules[number].remedy = "--exe names the program"
        if self._modules[number].elf is None:
            number = self._from_memory(name, parts, number)
        module = self._modules[number]
        if not main and self._is_data(module, parts):
            return
        self._report(module)
        for one in parts:
            executable = self._memory.is_executable(one.start)
            if executable is None:
                executable = module.elf is None or _is_code(module.elf, one.offset)
            bias = module.bias(one.start, one.offset)
            self.areas.append(Area(one.start, one.end, number, one.offset, bias, executable))

    def _is_data(self, module: Module, parts: list[MappedFile]) -> bool:
        """Whether a file is no ELF file, as those of locales are, and nothing says that it was mapped as code."""
        if module.elf is not None or any(self._memory.is_executable(one.start) for one in parts):
            return False
        for place in module.places:
            with contextlib.suppress(WalkbackError):
                return not is_elf(OpenFile(place))
        return False

    def _build_id(self, path: str, parts: list[MappedFile]) -> bytes | None:
        for one in parts:
            if one.offset == 0:
                found = build_id_in(self._memory.read(one.start, min(one.end - one.start, _BEGINNING)), path)
                if found:
                    return found
        return None

    def _from_memory(self, name: str, parts: list[MappedFile], number: int) -> int:
        """The module with what the core has of the file itself, if its code is there; else the one without."""
        code = [one for one in parts if self._memory.is_executable(one.start)]
        if not code or not all(self._memory.read(one.start, 1) and not self._memory.cut_at(one.start) for one in code):
            return number
        # Honest entries do not show the same memory again and again.
        self._room -= sum(one.end - one.start for one in parts)
        if self._room < 0:
            return number
        image = image_of([(one.offset, one.start, one.end - one.start) for one in parts], self._memory.read)
        if image is None:
            return number
        why = self._modules.trouble(self._modules[number])
        self.troubles.append(f"{name}: what the core file holds of it is used: {why}")
        return self._modules.image(name, memoryview(image).toreadonly())

    # Without

    def _by_link_map(self) -> None:
        auxiliary = self._notes.auxiliary
        if AT_ENTRY not in auxiliary:
            self.troubles.append("the core file says neither what files were mapped nor where its program was")
            return
        reader = LinkMap(self._memory.read, self._core.byteorder)
        path = self._exe or self._string(auxiliary.get(AT_EXECFN, 0))
        number = self._module(path or "the program", None, self._exe)
        module = self._modules[number]
        if module.elf is None:
            self.troubles.append(f"{module.name}: {module.trouble}; name the program of this core file (--exe)")
            return
        bias = (auxiliary[AT_ENTRY] - module.elf.entry) % 2**64
        why, dynamic = self._against_program(module.elf, bias), None
        if why is None:
            dynamic = _dynamic(module.elf)
            why = self._against(reader, module.elf, bias, dynamic)
        if why is not None:
            self.troubles.append(f"{module.elf.name}: {why}, so it is not used")
            return
        self._place(number, module.elf, bias)
        loaded: list[Loaded] = []
        interpreter = _interpreter(module.elf)
        if dynamic is not None and interpreter is not None:
            place = (dynamic + bias) % 2**64
            loaded = [one for one in reader.libraries(place) if one.dynamic != place]
            for one in loaded:
                self._add_library(reader, one)
            if reader.trouble is not None:
                self.troubles.append(reader.trouble)
        # The dynamic linker may be in its own list without a name, or not yet.
        base = auxiliary.get(AT_BASE, 0)
        if interpreter is not None and base and all(one.bias != base for one in self.areas):
            place = next((one.dynamic for one in loaded if one.bias == base), None)
            self._add_loaded(reader, interpreter, base, place)

    def _against_program(self, elf: ElfFile, bias: int) -> str | None:
        """What shows that this is not the program."""
        auxiliary = self._notes.auxiliary
        try:
            segments = elf.segments
        except WalkbackError as error:
            return error.message
        if auxiliary.get(AT_PHNUM, len(segments)) != len(segments):
            return f"it has {len(segments)} program headers, and the program had {auxiliary[AT_PHNUM]}"
        header = np.frombuffer(elf.header, elf_layout.ELF_HEADER[elf.byteorder], 1)[0]
        if AT_PHDR in auxiliary:
            place = (auxiliary[AT_PHDR] - bias) % 2**64
            for one in segments[segments["type"] == elf_layout.PT_LOAD]:
                away = int(header["phoff"]) - int(one["offset"])
                if 0 <= away < int(one["filesz"]) and int(one["vaddr"]) + away == place:
                    return None
            return "its program headers and its entry point are not where the program had them"
        return None

    def _against(self, reader: LinkMap, elf: ElfFile, bias: int, dynamic: int | None) -> str | None:
        """What shows that this is not the file that was loaded with this bias."""
        base = (bias + _first_address(elf)) % 2**64
        build_id = build_id_in(self._memory.read(base, _BEGINNING), elf.name)
        if build_id is not None:
            return None if build_id_of(elf) == build_id else f"the build ID {build_id.hex()} was recorded"
        if dynamic is not None and self._memory.read((dynamic + bias) % 2**64, 1):
            here = reader.dynamic((dynamic + bias) % 2**64)
            try:
                contents = elf.mapped_data(dynamic)
            except WalkbackError as error:
                return error.message
            there = LinkMap(lambda at, size: bytes(contents[at : at + size]), elf.byteorder).dynamic(0)
            if not _is_same(here, there, bias):
                return "its dynamic section is not the one that was loaded"
        return None

    def _add_library(self, reader: LinkMap, one: Loaded) -> None:
        # The names of the vDSO and of the dynamic linker stand in memory that the core may lack.
        if one.name and one.bias != self._notes.auxiliary.get(AT_SYSINFO_EHDR):
            self._add_loaded(reader, one.name, one.bias, one.dynamic)

    def _add_loaded(self, reader: LinkMap, name: str, bias: int, place: int | None) -> None:
        """A file that was loaded with this bias, and its dynamic section at this place, if that is known."""
        number = self._module(name, None, None)
        elf = self._modules[number].elf
        if elf is None:
            self._report(self._modules[number])
            return
        try:
            dynamic = _dynamic(elf)
            why = self._against(reader, elf, bias, dynamic)
        except WalkbackError as error:
            self.troubles.append(str(error))
            return
        if place is not None and (dynamic is None or (dynamic + bias) % 2**64 != place):
            why = "its dynamic section is not where it was"
        if why is not None:
            self.troubles.append(f"{elf.name}: {why}, so it is not used")
            return
        self._place(number, elf, bias)

    def _place(self, number: int, elf: ElfFile, bias: int) -> None:
        for one in elf.segments[elf.segments["type"] == elf_layout.PT_LOAD]:
            start = (int(one["vaddr"]) + bias) % 2**64
            end = min(start + int(one["memsz"]), _TOP)
            executable = bool(one["flags"] & elf_layout.PF_X)
            if start < end:
                self.areas.append(Area(start, end, number, int(one["offset"]), bias, executable))

    def _string(self, address: int) -> str:
        return os.fsdecode(self._memory.read(address, 4096).partition(b"\0")[0]) if address else ""

    # Both

    def _module(self, path: str, build_id: bytes | None, given: str | None) -> int:
        places = [given] if given is not None else []
        if given is None or build_id:
            search = self._modules.search
            places += search.path(path) if search.sysroot is not None else []
            # Without a build ID a file of this system could be taken for one of another.
            places += [path] if search.sysroot is None or build_id else []
        machine = (self._core.machine, self._core.byteorder)
        key = ("core", path, build_id, tuple(places), machine)
        return self._modules.add(Module(path, build_id, tuple(places), machine=machine), key)

    def _report(self, module: Module) -> None:
        if module.elf is None:
            self.troubles.append(f"{module.name}: {self._modules.trouble(module)}")

    def _vdso(self) -> None:
        start = self._notes.auxiliary.get(AT_SYSINFO_EHDR, 0)
        number = self._memory.number(start) if start else -1
        if number < 0:
            return
        end = int(self._memory.end[number])
        image = self._memory.read(start, min(end - start, _LARGEST_VDSO))
        module = (
            self._modules.image("[vdso]", memoryview(image))
            if image
            else self._modules.add(Module("[vdso]"), ("[vdso]",))
        )
        self.areas.append(Area(start, end, module, 0, self._modules[module].bias(start, 0), executable=True))

    def _anonymous_code(self) -> None:
        """Code that no file brought, as compilers at run time make it."""
        known = {one.start for one in self.areas}
        for number in np.flatnonzero(self._memory.flags & elf_layout.PF_X).tolist():
            start, end = int(self._memory.start[number]), int(self._memory.end[number])
            if start not in known and start < end:
                self.areas.append(Area(start, end, -1, 0, 0, executable=True))


def _disjoint(areas: list[Area]) -> list[Area]:
    """Rising, each up to where the next begins; of those that begin together the one with a module is first."""
    kept: list[Area] = []
    end = 0
    for one in sorted(areas, key=lambda area: (area.start, area.module < 0)):
        start = max(one.start, end)
        if start < one.end:
            kept.append(one._replace(start=start, offset=one.offset + start - one.start))
            end = one.end
    return kept


def _is_code(elf: ElfFile, offset: int) -> bool:
    """Whether an executable segment of the file begins in the page at this offset, or holds it."""
    try:
        loads = elf.segments[elf.segments["type"] == elf_layout.PT_LOAD]
    except WalkbackError:
        return False
    for one in loads[(loads["flags"] & elf_layout.PF_X) != 0]:
        if int(one["offset"]) & -4096 <= offset < int(one["offset"]) + int(one["filesz"]):
            return True
    return False


def _dynamic(elf: ElfFile) -> int | None:
    """The file's own address of its dynamic section."""
    found = elf.segments[elf.segments["type"] == elf_layout.PT_DYNAMIC]
    return int(found["vaddr"][0]) if len(found) else None


def _interpreter(elf: ElfFile) -> str | None:
    """The path of the dynamic linker; None for a program that needs none."""
    for number in np.flatnonzero(elf.segments["type"] == elf_layout.PT_INTERP).tolist():
        try:
            return os.fsdecode(bytes(elf.segment_data(number)).partition(b"\0")[0])
        except WalkbackError:
            return None
    return None


def _first_address(elf: ElfFile) -> int:
    """The file's own address of its beginning."""
    loads = elf.segments[elf.segments["type"] == elf_layout.PT_LOAD]
    return int(loads["vaddr"][0]) - int(loads["offset"][0]) if len(loads) else 0


def _is_same(here: list[tuple[int, int]], there: list[tuple[int, int]], bias: int) -> bool:
    """Whether a dynamic section in memory is that of a file; some dynamic linkers add the bias to its addresses."""
    if len(here) != len(there):
        return False
    for (tag, value), (tag_there, value_there) in zip(here, there, strict=True):
        if tag != tag_there:
            return False
        if value not in {value_there, (value_there + bias) % 2**64} and tag != DT_DEBUG:
            return False
    return True
