"""Core files of AMD64, AArch64 and s390x, read on any machine: written by the kernel, gdb's gcore, or an emulator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Self

import numpy as np

from walkback.base.arch import MACHINES, ByteOrder, Machine
from walkback.base.arrays import Records
from walkback.base.errors import UnreadableError
from walkback.capture.core.code import CoreCode
from walkback.capture.core.memory import CoreMemory, segments_of
from walkback.capture.core.notes import CoreNotes, notes_of
from walkback.capture.core.packed import core_elf
from walkback.capture.registers import empty_rows
from walkback.capture.snapshot import Snapshot, samples_of
from walkback.elf import ElfFile, Input
from walkback.elf import layout as elf_layout
from walkback.naming.modules import Modules
from walkback.runtimes.chains import Standing
from walkback.runtimes.interpreters import Interpreters
from walkback.walking.samples import Samples
from walkback.walking.walker import Walker

_FIRST = 1 << 18
"""Bytes of each stack that are read at first."""
_MOST = 1 << 26
"""Bytes that are read at once."""
_MOST_STACK = 1 << 20
"""Bytes of a stack in which interpreters look for what they have there."""
_MOST_SHOWN = 1000
"""Lines of trouble."""


class CoreFile:
    """A core file with the files that its process had mapped.

    >>> core = walkback.CoreFile.open("core.hello", walkback.naming.Modules())
    >>> core.sample().tids
    [100]
    """

    def __init__(
        self,
        elf: ElfFile,
        modules: Modules,
        exe: str | os.PathLike[str] | None = None,
    ) -> None:
        self.name = elf.name
        self.machine: Machine = _machine(elf)
        self.byteorder: ByteOrder = elf.byteorder
        self.modules = modules
        segments = segments_of(elf)
        self.notes: CoreNotes = notes_of(_note_segments(elf, segments), self.machine, elf.byteorder, elf.name)
        if self.notes.of_kernel:
            raise UnreadableError("this is the dump of a kernel, and not of a process", file=elf.name)
        self.memory = CoreMemory(elf, segments)
        cut = "; it is cut short" if self.memory.missing or _is_short(elf, segments) else ""
        if not self.notes.tids:
            raise UnreadableError(f"the core file has no thread's registers{cut}", file=elf.name)
        self._code = CoreCode(elf, self.machine, self.memory, self.notes, modules, exe)
        self.space = self._code.space()
        self.interpreters: Interpreters | None = None
        """What is asked what each thread runs."""
        troubles = [*self.notes.troubles, *self._code.troubles]
        if cut:
            troubles.insert(0, f"the core file is cut short: {self.memory.missing} bytes of memory are missing")
        more = [f"and {len(troubles) - _MOST_SHOWN} more like these"] if len(troubles) > _MOST_SHOWN else []
        self.troubles = troubles[:_MOST_SHOWN] + more

    def __repr__(self) -> str:
        return f"CoreFile({self.name!r}, machine={self.machine.name})"

    @classmethod
    def open(
        cls,
        source: Input,
        modules: Modules,
        exe: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open a core file, which may be compressed.

        `exe` is its program. With a sysroot, files are looked for there first, and in the system only if they have the
        build ID that the core file has recorded.
        """
        return cls(core_elf(source), modules, exe)

    def sample(self, walker: Walker | None = None) -> Snapshot:
        """All threads as they were; walked if there is a walker."""
        notes = self.notes
        # The kernel gives all threads the signal and writes the one first that got it; emulators give it to that one.
        # NT_SIGINFO alone does not count: a debugger writes there how it stopped the process.
        signalled = next((i for i, signal in enumerate(notes.signals) if signal), -1)
        signal = notes.signals[signalled] if signalled >= 0 else 0
        snapshot = Snapshot(
            machine=self.machine,
            byteorder=self.byteorder,
            pid=notes.pid or notes.tids[0],
            command=notes.command,
            tids=list(notes.tids),
            names=[notes.command] * len(notes.tids),
            samples=self._samples(),
            spaces=[self.space],
            stopped=np.zeros(len(notes.tids), np.int64),
            signal=signal,
            signalled=signalled,
            fault=notes.fault if signal == notes.signal else None,
            arguments=notes.arguments,
            pac_mask=notes.pac_mask,
            troubles=list(self.troubles),
        )
        if walker is not None:
            snapshot.stacks = walker.walk(snapshot.samples, snapshot.spaces, _CoreReader(self))
        if self.interpreters is not None:
            memory = _CoreReading(self)
            self.interpreters.use(self.space.module, self.space.bias, memory, self.byteorder)
            looks = [
                self.interpreters.look(tid, memory, partial(self._standing, number))
                for number, tid in enumerate(notes.tids)
            ]
            snapshot.chains = self.interpreters.chains(looks, snapshot.stacks)
            snapshot.tasks = self.interpreters.tasks(notes.tids, looks, snapshot.troubles)
        return snapshot

    def read(self, _: int, address: int) -> tuple[int, bytes] | None:
        """Memory that the core file does not have and a mapped file does."""
        return self._code.read(address)

    def _standing(self, number: int) -> Standing:
        """A thread, for those who look what it ran."""
        registers = self.notes.registers[number].tolist()
        stack = self.memory.around(registers[self.machine.sp], _MOST_STACK)
        return Standing(tuple(registers), stack.start, stack.contents, stack.start + len(stack.contents))

    def _samples(self) -> Samples:
        count = len(self.notes.tids)
        registers = empty_rows(count)
        registers[:] = self.notes.registers
        sp = registers[:, self.machine.sp].tolist()
        code = self.memory.code()
        pieces = [[self.memory.around(one, _FIRST), *code] for one in sp]
        return samples_of(registers, self.notes.known, pieces, [self.memory.cut_at(one) for one in sp])


class _CoreReader:
    """Memory that a walk wants beside what it began with: of the core file, or else of a mapped file."""

    def __init__(self, core: CoreFile) -> None:
        self._core = core
        self._size: dict[int, int] = {}

    def __call__(self, number: int, address: int) -> tuple[int, bytes] | None:
        """More each time: long stacks are rare, and walked from their beginning again."""
        size = self._size[number] = 2 * self._size.get(number, _FIRST)
        piece = self._core.memory.around(address, min(size, _MOST))
        if address < piece.start + len(piece.contents):
            return piece.start, piece.contents
        return self._core.read(number, address)


class _CoreReading:
    """Memory that interpreters want: of the core file, or else of mapped files."""

    def __init__(self, core: CoreFile) -> None:
        self._core = core

    def read(self, address: int, size: int) -> bytes:
        """As much as there is from an address on, up to `size` bytes."""
        address %= 2**64
        found = self._core.memory.read(address, size)
        while len(found) < size:
            more = self._core.read(0, address + len(found))
            if more is None:
                break
            away = address + len(found) - more[0]
            part = more[1][away : away + size - len(found)]
            if not part:
                break
            found += part
        return found

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other, up to the first that cannot be read."""
        parts: list[bytes] = []
        for address in addresses:
            part = self.read(address, size)
            if len(part) < size:
                break
            parts.append(part)
        return b"".join(parts)


def _machine(elf: ElfFile) -> Machine:
    if elf.type != elf_layout.ET_CORE:
        raise UnreadableError("this ELF file is not a core file", file=elf.name)
    for machine in MACHINES:
        if machine.elf_machine == elf.machine:
            return machine
    supported = ", ".join(one.name for one in MACHINES)
    raise UnreadableError(f"this is a core file of machine {elf.machine}; supported are {supported}", file=elf.name)


def _note_segments(elf: ElfFile, segments: Records) -> Iterator[tuple[memoryview, int, int]]:
    """The contents of the note segments, as far as the file has them."""
    for one in segments[segments["type"] == elf_layout.PT_NOTE]:
        offset, size = int(one["offset"]), int(one["filesz"])
        yield elf.data[offset : offset + size], int(one["align"]), offset


def _is_short(elf: ElfFile, segments: Records) -> bool:
    """Whether notes are missing, which some programs write at the end."""
    notes = segments[segments["type"] == elf_layout.PT_NOTE]
    return any(int(one["offset"]) + int(one["filesz"]) > len(elf.data) for one in notes)
