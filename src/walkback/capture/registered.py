"""Code that a process made at run time and registered for gdb: its JIT interface, read from the process's memory.

A symbol, `__jit_debug_descriptor`, names a list of ELF files in memory, each with the symbols, the unwinding and the
debugging information of some code. The list is followed for a bounded number of steps and never twice through one
entry; a process that runs may change it meanwhile.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import distinct, ends_of
from walkback.base.errors import WalkbackError
from walkback.capture.dumps import overlaid
from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout
from walkback.elf.named import REGISTERED_CODE, addresses_of
from walkback.elf.placed import placed
from walkback.naming.modules import VDSO, Module, Modules
from walkback.symbols.spans import SettledSpans
from walkback.walking.samples import Space

_VERSION = 1
_VSYSCALL = "[vsyscall]"
_MOST_ENTRIES = 1 << 14
_LARGEST = 1 << 26
"""Bytes of one file."""
_MOST = 1 << 28
"""Bytes of all files."""
_MOST_RANGES = 1 << 18
"""Of code, in all files of one list."""
_MOST_REPORTS = 10


class _Registered(NamedTuple):
    """One file."""

    module: int
    start: list[int]
    """Where its code begins."""
    end: list[int]


class RegisteredCode:
    """The registered code of one process."""

    def __init__(
        self, modules: Modules, read: Callable[[int, int], bytes], byteorder: ByteOrder, troubles: list[str]
    ) -> None:
        """`read` gives as much of the process's memory as there is from an address on."""
        self._modules = modules
        self._read = read
        order = "<" if byteorder == "little" else ">"
        self._descriptor = struct.Struct(f"{order}IIQQ")
        self._entry = struct.Struct(f"{order}QQQQ")
        self._symbols: dict[int, list[int]] = {}
        """By module, where the file has the symbol."""
        self._known: dict[bytes, _Registered | None] = {}
        """By what the files hold."""
        self._left = _MOST
        self._troubles = troubles
        self._reports = 0
        self._last: tuple[Space, list[_Registered], Space] | None = None
        """What `over` was asked last, and its answer."""

    def over(self, space: Space) -> Space:
        """What is mapped, with the registered code in the place of what it overlaps; the same object if it is equal."""
        found = list(self._all(space))[::-1]  # what was registered last comes first in a list
        if self._last is None or self._last[0] is not space or self._last[1] != found:
            self._last = space, found, _overlaid(space, found)
        return self._last[2]

    def _all(self, space: Space) -> Iterator[_Registered]:
        """Those of all lists; there are none unless the process has code that is in no ELF file."""
        numbers = distinct(space.module).tolist()
        if all(number >= 0 and self._is_known(self._modules[number]) for number in numbers):
            return
        for descriptor in sorted({place for number in numbers if number >= 0 for place in self._places(number, space)}):
            room, ranges = _MOST, 0
            for address, size in self._entries(descriptor):
                # Many entries may name one large file.
                registered = self._file(address, size, min(room, _LARGEST))
                room -= min(size, room)
                if registered is not None and (ranges := ranges + len(registered.start)) <= _MOST_RANGES:
                    yield registered

    @staticmethod
    def _is_known(module: Module) -> bool:
        """Whether code is that of an ELF file or of the kernel."""
        return module.elf is not None or module.name in {VDSO, _VSYSCALL}

    def _places(self, number: int, space: Space) -> Iterator[int]:
        """Where in memory a module has the symbol."""
        if number not in self._symbols:
            elf = self._modules[number].elf
            self._symbols[number] = [] if elf is None else list(addresses_of(elf, REGISTERED_CODE))
        for value in self._symbols[number]:
            for bias in distinct(space.bias[space.module == number]).tolist():
                yield (value + bias) % 2**64

    def _entries(self, descriptor: int) -> Iterator[tuple[int, int]]:
        """Where the files of a list are, and how large."""
        contents = self._read(descriptor, self._descriptor.size)
        if len(contents) < self._descriptor.size:
            return
        version, _, _, entry = self._descriptor.unpack(contents)
        seen: set[int] = set()
        while version == _VERSION and entry and entry not in seen and len(seen) < _MOST_ENTRIES:
            seen.add(entry)
            contents = self._read(entry, self._entry.size)
            if len(contents) < self._entry.size:
                return
            entry, _, address, size = self._entry.unpack(contents)
            yield address, size
        if len(seen) == _MOST_ENTRIES:
            self._report(f"only the first {_MOST_ENTRIES} files that were registered for debuggers are read")

    def _file(self, address: int, size: int, most: int) -> _Registered | None:
        """A file of up to `most` bytes, which is read again each time: another one may be in its place."""
        import hashlib  # which takes long, and hardly a process has such code

        if not 0 < size <= most:
            self._report(f"a file of {size} bytes that was registered for debuggers is not read")
            return None
        contents = self._read(address, size)
        if len(contents) < size:
            return None
        name = f"[in memory at {address:#x}]"
        key = hashlib.blake2b(contents, digest_size=16).digest() + address.to_bytes(8, "little")
        if key not in self._known:
            if size > self._left:
                return None
            self._left -= size
            self._known[key] = None
            try:
                self._known[key] = self._add(placed(ElfFile(contents, name)), key)
            except WalkbackError as error:
                self._report(f"{name}: {error.message}")
        return self._known[key]

    def _report(self, trouble: str) -> None:
        if self._reports < _MOST_REPORTS:
            self._reports += 1
            self._troubles.append(trouble)

    def _add(self, elf: ElfFile, key: bytes) -> _Registered:
        wanted = np.uint64(elf_layout.SHF_ALLOC | elf_layout.SHF_EXECINSTR)
        code = elf.sections[(elf.sections["flags"] & wanted == wanted) & (elf.sections["addr"] > 0)]
        if len(code):
            start, end = code["addr"], ends_of(code["addr"], code["size"])
        else:
            start, end = elf.executable_ranges()
        number = self._modules.add(Module(elf.name, image=elf.data[:], is_made=True), ("registered", self, key))
        return _Registered(number, start.tolist(), end.tolist())


def _overlaid(space: Space, found: list[_Registered]) -> Space:
    start = np.array([place for one in found for place in one.start], np.uint64)
    end = np.array([place for one in found for place in one.end], np.uint64)
    module = np.array([one.module for one in found for _ in one.start], np.int32)
    spans = SettledSpans(start, end)
    none = np.zeros(len(spans.start), np.uint64)
    return overlaid(space, Space(spans.start, spans.end - np.uint64(1), module[spans.number], none))
