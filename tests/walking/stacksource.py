"""Threads, memory and files for tests of the walker, made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from elfbuilder import ElfBuilder
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder
from walkback.elf import ElfFile
from walkback.stacks.stacks import End, FrameKind, How, Stacks
from walkback.walking.abi import Flag, Op, Step
from walkback.walking.moduletable import ModuleTable, Only
from walkback.walking.points import NO_STEP, Points, empty_blocks
from walkback.walking.samples import COLUMNS, PC, Memory, Samples, Space
from walkback.walking.steps import Steps, steps_of
from walkback.walking.walker import Walker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from walkback.base.arch import Machine

WORD = 2**64 - 1
BASE = 0x10000
"""Where files' code begins, as they count."""
BIAS = 0x7000_0000_0000
STACK = 0x7FFF_0000_0000
ORDERS = [(AMD64, "little"), (AARCH64, "little"), (AARCH64, "big"), (S390X, "big")]
IDS = ["amd64", "aarch64", "aarch64-big", "s390x"]


@dataclass
class Thread:
    """A thread; registers by column, the program counter is `PC`."""

    registers: dict[int, int]
    memory: list[tuple[int, bytes]] = field(default_factory=list)
    space: int = 0
    cut: int = 0

    def words(self, start: int, words: Sequence[int], order: ByteOrder = "little") -> Thread:
        """With a piece of memory more."""
        self.memory.append((start, b"".join((word & WORD).to_bytes(8, order) for word in words)))
        return self


def samples_of(threads: Sequence[Thread]) -> Samples:
    """All threads, each with its own segments."""
    registers = np.zeros((len(threads), COLUMNS), np.uint64)
    known, first, end = [], [], []
    starts: list[Any]
    starts, sizes, offsets, contents = [], [], [], b""
    for row, thread in zip(registers, threads, strict=True):
        for column, value in thread.registers.items():
            row[column] = value
        known.append(sum(1 << column for column in thread.registers))
        first.append(len(starts))
        for start, piece in sorted(thread.memory):
            starts.append(start)
            sizes.append(len(piece))
            offsets.append(len(contents))
            contents += piece
        end.append(len(starts))
    memory = Memory(
        memoryview(contents), np.array(starts, np.uint64), np.array(sizes, np.uint64), np.array(offsets, np.int64)
    )
    return Samples(
        registers.reshape(-1),
        np.array(known, np.uint64),
        np.array([one.space for one in threads], np.int32),
        memory,
        np.array(first, np.int64),
        np.array(end, np.int64),
        np.array([one.cut for one in threads], np.uint64),
    )


def space_of(*mappings: tuple[int, int, int, int]) -> Space:
    """Mappings as (start, size, module, bias), rising."""
    columns = list(zip(*mappings, strict=True)) if mappings else [(), (), (), ()]
    start, size = np.array(columns[0], np.uint64), np.array(columns[1], np.uint64)
    return Space(start, start + size - np.uint64(1), np.array(columns[2], np.int32), np.array(columns[3], np.uint64))


def usual_space(modules: int = 1, size: int = 0x10000) -> Space:
    """Each module at a place of its own."""
    return space_of(*((place_of(n), size, n, place_of(n) - BASE) for n in range(modules)))


def place_of(module: int) -> int:
    """Where the code of a module is mapped in the usual space."""
    return BIAS + BASE + 0x100_0000 * module


HERE = place_of(0)
"""That of the first one."""


def file_of(
    machine: Machine,
    order: ByteOrder = "little",
    *,
    sframe: bytes | None = None,
    cfi: bytes | None = None,
    debug_frame: bytes | None = None,
    code: bytes = bytes(0x10000),
    place: int = 0x80000,
) -> ElfFile:
    """A file with code at `BASE` and tables at `place`."""
    builder = ElfBuilder(order, machine.elf_machine, 3)
    builder.section(".text", code, flags=6, addr=BASE)
    builder.segment(1, ".text", flags=5, vaddr=BASE)
    if sframe is not None:
        builder.section(".sframe", sframe, flags=2, addr=place)
    if cfi is not None:
        builder.section(".eh_frame", cfi, flags=2, addr=place)
    if debug_frame is not None:
        builder.section(".debug_frame", debug_frame)
    return ElfFile(bytes(builder.build()), "built")


@dataclass
class Made:
    """Stands for a file whose table is made by hand."""

    table: ModuleTable
    machine: int


class MadeTables:
    """Stands for the cache: gives what was made."""

    def table(self, elf: Made, machine: Machine, only: Only | None) -> ModuleTable:
        return elf.table


def table_of(
    points: Sequence[tuple[int, Step | None]],
    how: How = How.CFI,
    *,
    expressions: Sequence[bytes] = (),
    trampolines: Sequence[tuple[int, int]] = (),
    declared: bool = False,
) -> ModuleTable:
    """A table by its points, from `BASE` on; the last step ends where the next would begin."""
    steps = [(step, how) for _, step in points if step is not None]
    columns = steps_of(steps)
    end = np.cumsum([len(one) for one in expressions], dtype=np.int64)
    columns = Steps(
        **{name: getattr(columns, name) for name in Steps.__slots__ if not name.startswith("expression_")},
        expression_first=end - np.array([len(one) for one in expressions], np.int64),
        expression_end=end,
        expression_bytes=np.frombuffer(b"".join(expressions), np.uint8),
    )
    start = np.array([BASE + offset for offset, _ in points], np.uint64)
    numbers, count = [], 0
    for _, step in points:
        numbers.append(int(NO_STEP) if step is None else count)
        count += step is not None
    made = Points(start, np.array(numbers, np.uint32), empty_blocks())
    directory, shift = made.directory()
    return ModuleTable(
        made,
        columns,
        directory,
        shift,
        np.array([BASE + place for place, _ in trampolines], np.uint64),
        np.array([kind for _, kind in trampolines], np.uint8),
        declared,
    )


def made_walker(machine: Machine, order: ByteOrder, tables: Sequence[ModuleTable | None], **options: Any) -> Walker:
    """A walker for tables made by hand."""
    files: list[Any] = [None if table is None else Made(table, machine.elf_machine) for table in tables]
    cache: Any = MadeTables()
    return Walker(machine, order, lambda number: files[number], cache=cache, **options)


def frames(stacks: Stacks, number: int = 0) -> list[tuple[int, str, str]]:
    """The frames of a stack: pc, kind and how."""
    chosen = range(int(stacks.first[number]), int(stacks.first[number + 1]))
    return [(int(stacks.pc[i]), FrameKind(int(stacks.kind[i])).name, How(int(stacks.how[i])).name) for i in chosen]


def ended(stacks: Stacks, number: int = 0) -> tuple[str, int]:
    return End(int(stacks.end[number])).name, int(stacks.at[number])


def same_stacks(one: Stacks, other: Stacks) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Stacks.__slots__)


def at_sp(machine: Machine, offset: int, *saves: tuple[int, Op, int, int], flags: int = Flag.KEEPS) -> Step:
    """CFA = sp+offset; the return address where a call leaves it, unless it is among the saves."""
    if not any(save[0] == PC for save in saves):
        usual = (PC, Op.AT_CFA, 0, -8) if machine is AMD64 else (PC, Op.REGISTER, machine.ra, 0)
        saves = (usual, *saves)
    if not any(save[0] == machine.fp for save in saves):
        saves = (*saves, (machine.fp, Op.SAME, 0, 0))
    return Step((Op.REGISTER, machine.sp, offset), tuple(saves), flags)


CALL = at_sp(AMD64, 16, (6, Op.AT_CFA, 0, -16))
"""A function of AMD64 that has pushed the frame pointer."""
OUTERMOST = Step((Op.REGISTER, 7, 8), ((PC, Op.UNKNOWN, 0, 0),), 0)
