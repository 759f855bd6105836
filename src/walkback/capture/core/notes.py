"""The notes of core files: threads, the signal, the auxiliary vector, and what files were mapped.

Shapes are those of `struct elf_prstatus`, `struct elf_prpsinfo` and `siginfo_t` of 64-bit Linux, which differ between
machines only in the registers. `NT_FILE` is described in the kernel's `fs/binfmt_elf.c` and in core(5) by name only.
Damage ends the reading of a note or of what follows it, is reported, and leaves what was read before.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import field
from itertools import islice
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder, Machine
from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError
from walkback.capture.registers import FLOATING, GENERAL, empty_rows
from walkback.elf import Note
from walkback.elf.notes import read_notes

NT_PRSTATUS, NT_FPREGSET, NT_PRPSINFO, NT_AUXV = 1, 2, 3, 6
NT_ARM_PAC_MASK = 0x406
NT_SIGINFO, NT_FILE = 0x53494749, 0x46494C45
AT_PHDR, AT_PHNUM, AT_BASE, AT_ENTRY, AT_EXECFN, AT_SYSINFO_EHDR = 3, 5, 7, 9, 31, 33

_CURSIG, _PID, _REGISTERS = 12, 32, 112
"""Where `pr_cursig`, `pr_pid` and `pr_reg` stand in `elf_prstatus`."""
_PSINFO_PID, _PSINFO_NAME, _PSINFO_ARGS, _PSINFO_SIZE = 24, slice(40, 56), slice(56, 136), 136
_FAULTS = frozenset({4, 5, 7, 8, 11})
"""SIGILL, SIGTRAP, SIGBUS, SIGFPE and SIGSEGV: signals with an address."""
_MOST_NOTES = 1 << 20
_MOST_FILES = 1 << 16
_MOST_AUXILIARY = 1 << 10


class MappedFile(NamedTuple):
    """An entry of NT_FILE."""

    start: int
    end: int
    offset: int
    """In the file, in bytes."""
    path: str


@dataclass(slots=True)
class CoreNotes:
    """What the notes say; columns have an entry a thread, in the order of the notes."""

    tids: list[int] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    registers: list[U64] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    pid: int = 0
    command: str = ""
    arguments: str = ""
    signal: int = 0
    """As NT_SIGINFO has it; 0 where there is none."""
    fault: int | None = None
    """The address that the signal is about."""
    auxiliary: dict[int, int] = field(default_factory=dict)
    files: list[MappedFile] = field(default_factory=list)
    pac_mask: int = 0
    of_kernel: bool = False
    """It is the dump of a whole kernel."""
    troubles: list[str] = field(default_factory=list)


class NotesReader:
    """Takes notes one after the other."""

    def __init__(self, machine: Machine, byteorder: ByteOrder) -> None:
        self.found = CoreNotes()
        self._byteorder = byteorder
        self._order = "<" if byteorder == "little" else ">"
        self._general, self._floating = GENERAL[machine], FLOATING.get(machine)

    def read(self, contents: memoryview, alignment: int, place: tuple[str, int]) -> None:
        """All notes of a segment."""
        try:
            notes = read_notes(contents, self._byteorder, alignment, place)
            for note in islice(notes, _MOST_NOTES):
                self._take(note)
        except ElfError as error:
            self.found.troubles.append(f"damaged notes: {error.message} (offset {error.offset or 0:#x})")

    def _take(self, note: Note) -> None:
        if note.name == "VMCOREINFO":
            self.found.of_kernel = True
        takers = {
            ("CORE", NT_PRSTATUS): self._status,
            ("CORE", NT_FPREGSET): self._more_registers,
            ("CORE", NT_PRPSINFO): self._process,
            ("CORE", NT_AUXV): self._auxiliary,
            ("CORE", NT_SIGINFO): self._signal,
            ("CORE", NT_FILE): self._files,
            ("LINUX", NT_ARM_PAC_MASK): self._pac_mask,
        }
        take = takers.get((note.name, note.type))
        if take is not None:
            try:
                take(note.desc)
            except struct.error:
                self.found.troubles.append(f"a note of type {note.type:#x} is too short (offset {note.offset:#x})")

    def _unpack(self, codes: str, contents: memoryview, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + codes, contents, offset)

    def _status(self, contents: memoryview) -> None:
        (signal,) = self._unpack("h", contents, _CURSIG)
        (tid,) = self._unpack("i", contents, _PID)
        registers = contents[_REGISTERS:]
        if len(registers) < self._general.size:
            raise struct.error
        row = empty_rows(1)[0]
        self._general.fill(row, registers, self._byteorder)
        self.found.tids.append(tid)
        self.found.signals.append(max(signal, 0))
        self.found.registers.append(row)
        self.found.known.append(self._general.known)

    def _more_registers(self, contents: memoryview) -> None:
        """Of the thread whose status came before."""
        if self._floating is None or not self.found.registers:
            return
        if len(contents) < self._floating.size:
            raise struct.error
        self._floating.fill(self.found.registers[-1], contents, self._byteorder)
        self.found.known[-1] |= self._floating.known

    def _process(self, contents: memoryview) -> None:
        if len(contents) < _PSINFO_SIZE:
            raise struct.error
        (self.found.pid,) = self._unpack("i", contents, _PSINFO_PID)
        self.found.command = _text(contents[_PSINFO_NAME])
        self.found.arguments = _text(contents[_PSINFO_ARGS]).rstrip()

    def _auxiliary(self, contents: memoryview) -> None:
        count = min(len(contents) // 16, _MOST_AUXILIARY)
        words = self._unpack(f"{2 * count}Q", contents, 0)
        for kind, value in zip(words[::2], words[1::2], strict=True):
            if kind == 0:
                break
            self.found.auxiliary.setdefault(kind, value)

    def _signal(self, contents: memoryview) -> None:
        """The first is that of the thread that ended the process."""
        if self.found.signal:
            return
        self.found.signal, _, code = self._unpack("iii", contents, 0)
        # A positive code is the kernel's own; else somebody sent the signal.
        if self.found.signal in _FAULTS and code > 0:
            (self.found.fault,) = self._unpack("Q", contents, 16)

    def _files(self, contents: memoryview) -> None:
        count, page = self._unpack("QQ", contents, 0)
        if 16 + 24 * count > len(contents):
            raise struct.error
        count = min(count, _MOST_FILES)
        words = np.frombuffer(contents[16 : 16 + 24 * count], self._order + "u8").reshape(-1, 3).tolist()
        names = _names(contents[16 + 24 * count :], count)
        if len(names) < len(words):
            self.found.troubles.append("the note of mapped files ends before the names of all")
        for (start, end, offset), name in zip(words, names, strict=False):
            if start < end:
                self.found.files.append(MappedFile(start, end, offset * page % 2**64, name))

    def _pac_mask(self, contents: memoryview) -> None:
        _, self.found.pac_mask = self._unpack("QQ", contents, 0)


def _names(contents: memoryview, count: int) -> list[str]:
    names = bytes(contents).split(b"\0", count)
    return [os.fsdecode(name) for name in names[: min(count, len(names) - 1)]]


def _text(contents: memoryview) -> str:
    return os.fsdecode(bytes(contents).partition(b"\0")[0])


def notes_of(
    segments: Iterable[tuple[memoryview, int, int]], machine: Machine, byteorder: ByteOrder, name: str
) -> CoreNotes:
    """Of all note segments: contents, alignment, and place in the file."""
    reader = NotesReader(machine, byteorder)
    for contents, alignment, offset in segments:
        reader.read(contents, alignment, (name, offset))
    return reader.found
