"""The walker: samples of any source to stacks.

    walker = Walker(AMD64, "little", elf_of)
    stacks = walker.walk(samples, spaces)

For each address the table of its module says how to go on: `.sframe`, else call frame information, else the frame
pointer. `only` keeps to one of them, to compare. Tables are loaded when the first address in a module is met.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from operator import is_
from typing import Literal, get_args

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I32, I64, U8, U64, distinct
from walkback.base.errors import ArgumentError
from walkback.elf import ElfFile
from walkback.stacks.stacks import End, Stacks, chosen, in_order, joined, replaced
from walkback.table.table import UnwindTable
from walkback.walking._walk import WANTED, Walk
from walkback.walking.abi import ABIS
from walkback.walking.cache import TableCache
from walkback.walking.moduletable import Only, Tables, table_of_rules
from walkback.walking.pool import NOT_LOADED, Pool
from walkback.walking.samples import COLUMNS, Memory, Samples, Space

Read = Callable[[int, int], tuple[int, bytes] | None]
"""The memory of a sample (its number) around an address: where it begins, and its contents; None if there is none."""

LIMIT = 1024
"""Frames of a stack."""

_MOST_READS = 64
"""Pieces of memory that are asked for during one walk."""
_FEW = 256
"""So few samples are not worth a thread of their own."""


class NotLoadedError(Exception):
    """The tables of some modules are wanted, and it is no time to load them."""

    def __init__(self, modules: Sequence[int]) -> None:
        super().__init__(f"the tables of {len(modules)} modules are not loaded")
        self.modules = modules


class Walker:
    """Walks stacks of one machine; tables that were loaded stay.

    >>> elf = walkback.ElfFile("a.out")
    >>> walker = walkback.Walker(elf.sframe[0].table.machine, elf.byteorder, lambda module: elf)
    >>> walker.troubles
    []
    """

    def __init__(
        self,
        machine: Machine,
        byteorder: Literal["little", "big"],
        elf_of: Callable[[int], ElfFile | None],
        *,
        only: Only | None = None,
        max_stack: int = LIMIT,
        cache: TableCache | None = None,
        address_mask: int | None = None,
        threads: int = 1,
        is_kernels: Callable[[int], bool] = lambda _: False,
        rules_of: Callable[[int], UnwindTable | None] = lambda _: None,
    ) -> None:
        """`elf_of` gives the file of a module; `address_mask` has the bits of an address that is not signed.

        `rules_of` gives rules that were made from the code of a module that has no file.
        `is_kernels` says which modules are the kernel's (the vDSO): what returns there is a signal handler.
        """
        if max_stack < 1:
            raise ArgumentError("the limit is at least one frame")
        if only not in {None, *get_args(Only)}:
            raise ArgumentError(f"stacks are walked by {', '.join(get_args(Only))} alone, not by {only!r}")
        abi = ABIS[machine]
        self._machine = machine
        self._elf_of = elf_of
        self._is_kernels, self._rules_of = is_kernels, rules_of
        self._cache = cache or TableCache(None)
        self._threads = threads
        self.nanoseconds = 0
        """Spent walking so far, and not with loading tables."""
        self.troubles: list[str] = []
        """What of the tables could not be read, one line each."""
        self._settings = {
            "big": byteorder == "big",
            "sp": machine.sp,
            "fp": machine.fp,
            "rip": machine.ra if machine.ra_from_cfa else -1,
            "chain_register": abi.chain_register,
            "sp_from_cfa": machine.sp_from_cfa,
            "preserved": abi.preserved,
            "address_mask": abi.address_mask if address_mask is None else address_mask,
            "tables": only != "fp",
            "chains": only in {None, "fp"},
            "limit": max_stack,
        }
        self._patterns = _patterns(machine)
        self._begin(only, tries=only is None)

    def __repr__(self) -> str:
        return f"Walker({self._machine.name})"

    def _begin(self, tables: Tables | None, *, tries: bool) -> None:
        """With no tables yet, and these to load; with `tries` a stack that wants more registers has a second try."""
        self._only = tables
        self._settings = self._settings | {"tries": tries}
        self._pool = Pool(self._machine)
        self._at_once = False
        self._spaces: list[Space] = []
        self._space_columns = _space_columns([])
        self._second: Walker | None = None

    def walk(
        self, samples: Samples, spaces: Sequence[Space], read: Read | None = None, *, at_once: bool = False
    ) -> Stacks:
        """The stacks of all samples, in their order.

        Where a walk needs memory that the samples do not have it is asked for by `read`. With `at_once` no tables are
        loaded on the way: if one is wanted that raises `NotLoadedError`, after which `load` loads it.
        """
        self._at_once = at_once
        stacks = self._walk(samples, spaces, np.arange(len(samples)))
        if self._settings["tries"]:
            stacks = self._with_second(samples, spaces, stacks)
        if read is not None:
            stacks = self._with_reads(samples, spaces, stacks, read)
        return stacks

    def _walk(self, samples: Samples, spaces: Sequence[Space], order: I64) -> Stacks:
        """The stacks of some samples; tables that are wanted on the way are loaded."""
        used = distinct(samples.space)
        used = used[(used >= 0) & (used < len(spaces))]
        self._use_spaces([spaces[number] for number in used.tolist()])
        samples = replace(samples, space=_places(used, samples.space))
        parts: list[tuple[I64, Stacks]] = []
        pending = np.arange(len(order))
        while True:
            wanted = np.zeros(len(self._pool.state), np.uint8)
            begun = time.process_time_ns()
            stacks = self._run(samples, order[pending], wanted)
            self.nanoseconds += time.process_time_ns() - begun
            done = stacks.end != WANTED
            if done.all() and not parts:
                return stacks
            parts.append((pending[done], chosen(stacks, np.flatnonzero(done))))
            pending = pending[~done]
            if not len(pending):
                return in_order(parts)
            modules = np.flatnonzero(wanted).tolist()
            if self._at_once:
                raise NotLoadedError(modules)
            for module in modules:
                self._load(module)

    def _with_second(self, samples: Samples, spaces: Sequence[Space], stacks: Stacks) -> Stacks:
        """Walk again without SFrame where a register was wanted that it does not follow."""
        again = np.flatnonzero(stacks.end == End.UNKNOWN_REGISTER)
        if not len(again):
            return stacks
        if self._second is None:
            self._second = copy(self)
            self._second._begin("registers", tries=False)
        self._second._at_once = self._at_once
        return replaced(stacks, again, [self._second._walk(samples, spaces, again)])

    def load(self, modules: Sequence[int]) -> None:
        """Load the tables of some modules, for the second try as well."""
        for walker in [self] if self._second is None else [self, self._second]:
            for module in modules:
                walker._pool.grow(module + 1)
                if walker._pool.state[module] == NOT_LOADED:
                    walker._load(module)

    def _load(self, module: int) -> None:
        if (rules := self._rules_of(module)) is not None:
            self._pool.add(module, table_of_rules(rules, self._only))
            return
        elf = self._elf_of(module)
        if elf is None or elf.machine != self._machine.elf_machine:
            self._pool.add(module, None, unseen=elf is None and self._is_kernels(module))
            return
        table = self._cache.table(elf, self._machine, self._only)
        self.troubles += [line for line in table.troubles if line not in self.troubles]
        self._pool.add(module, table)

    def _use_spaces(self, spaces: list[Space]) -> None:
        """Make the columns of the spaces, if they are not those of the last time."""
        if len(spaces) == len(self._spaces) and all(map(is_, spaces, self._spaces)):
            return
        self._spaces = spaces
        self._space_columns = _space_columns(spaces)
        self._pool.grow(int(self._space_columns["map_module"].max(initial=-1)) + 1)

    def _run(self, samples: Samples, order: I64, wanted: U8) -> Stacks:
        """Walk with the tables that there are, by as many threads as are worth it."""
        memory = samples.memory
        columns = {
            **self._pool.columns(),
            **self._space_columns,
            "wanted": wanted,
            "buffer": memory.buffer,
            "following": memory.following,
            "segment_start": memory.start,
            "segment_size": memory.size,
            "segment_offset": memory.offset,
            "patterns": self._patterns,
        }
        slices = [one for one in np.array_split(order, max(1, min(self._threads, len(order) // _FEW))) if len(one)]
        if len(slices) <= 1:
            return self._run_one(samples, order, columns)
        # Few walks are long enough for it.
        from concurrent.futures import ThreadPoolExecutor

        from walkback.base.interrupts import result, uninterrupted

        with ThreadPoolExecutor(len(slices)) as executor:
            with uninterrupted():
                running = [executor.submit(self._run_one, samples, one, columns) for one in slices]
            return joined([result(one) for one in running])

    def _run_one(self, samples: Samples, order: I64, columns: dict[str, object]) -> Stacks:
        walk = Walk(columns, self._settings)
        limit = int(self._settings["limit"])
        given = (
            np.ascontiguousarray(samples.registers).reshape(-1),
            samples.known,
            samples.space,
            samples.first_segment,
            samples.end_segment,
            samples.cut,
        )
        first, end = np.zeros(len(order) + 1, np.int64), np.zeros(len(order), np.uint8)
        at = np.zeros(len(order), np.uint64)
        found = _room(limit + 48 * len(order))
        position = 0
        while position < len(order):
            position = walk.run(order, position, given, found, (first, end, at))
            if position < len(order):
                used = int(first[position])
                more = _room(limit + 2 * len(found[0]))
                for old, new in zip(found, more, strict=True):
                    new[:used] = old[:used]
                found = more
        used = int(first[-1])
        pc, kind, how, module, address, sp = (column[:used] for column in found)
        return Stacks(first, pc, kind, how, module, address, sp, end, at)

    def _with_reads(self, samples: Samples, spaces: Sequence[Space], stacks: Stacks, read: Read) -> Stacks:
        """Bring memory that walks ended for want of, and walk again."""
        numbers = np.flatnonzero(np.isin(stacks.end, (End.UNREADABLE, End.STACK_CUT)))
        others: list[Stacks] = []
        for number in numbers.tolist():
            one = _one_sample(samples, number)
            again = chosen(stacks, np.array([number]))
            for _ in range(_MOST_READS):
                if again.end[0] not in {End.UNREADABLE, End.STACK_CUT}:
                    break
                more = read(number, int(again.at[0]))
                if more is None or not more[1]:
                    break
                one = _with_memory(one, *more)
                again = self.walk(one, spaces, at_once=self._at_once)
            others.append(again)
        return replaced(stacks, numbers, others)


def _space_columns(spaces: Sequence[Space]) -> dict[str, np.ndarray]:
    """The mappings of all spaces, one space after the other."""
    columns = {
        f"map_{name}": np.concatenate([np.zeros(0, dtype), *(getattr(one, name) for one in spaces)])
        for name, dtype in (("start", np.uint64), ("last", np.uint64), ("module", np.int32), ("bias", np.uint64))
    }
    return columns | {"space_first": np.cumsum([0, *(len(one.start) for one in spaces)])}


def _places(used: I32, numbers: I32) -> I32:
    """Where each number is among those that are used; -1 where it is not."""
    if not len(used):
        return np.full(len(numbers), -1, np.int32)
    places = np.searchsorted(used, numbers).clip(max=len(used) - 1).astype(np.int32)
    return np.where(used[places] == numbers, places, np.int32(-1))


def _patterns(machine: Machine) -> U64:
    """Of each kind of trampoline what its first 8 bytes and those from the second on must be, and masks for both."""
    words: list[int] = []
    for one in ABIS[machine].trampolines:
        code = one.code
        mask = 2 ** (8 * min(len(code), 8)) - 1
        second = len(code) > 8
        words += [int.from_bytes(code[:8], "little") & mask, int.from_bytes(code[1:9], "little") if second else 0]
        words += [mask, 2**64 - 1 if second else 0]
    return np.array(words, np.uint64)


_FRAME_DTYPES = (np.uint64, np.uint8, np.uint8, np.int32, np.uint64, np.uint64)


def _room(frames: int) -> tuple[np.ndarray, ...]:
    """Columns for frames."""
    return tuple(np.empty(frames, dtype) for dtype in _FRAME_DTYPES)


def _one_sample(samples: Samples, number: int) -> Samples:
    """One of the samples alone; its memory stays where it is."""
    chosen = slice(number, number + 1)
    return replace(
        samples,
        registers=samples.registers.reshape(-1, COLUMNS)[chosen],
        **{name: getattr(samples, name)[chosen] for name in ("known", "space", "first_segment", "end_segment", "cut")},
    )


def _with_memory(sample: Samples, start: int, contents: bytes) -> Samples:
    """One sample with one more piece of memory, which goes before what it overlaps."""
    memory, chosen = sample.memory, slice(int(sample.first_segment[0]), int(sample.end_segment[0]))
    end = start + len(contents)
    pieces = [(start, len(contents), len(memory.buffer) + len(memory.following))]
    columns = (memory.start[chosen].tolist(), memory.size[chosen].tolist(), memory.offset[chosen].tolist())
    for begin, size, offset in zip(*columns, strict=True):
        pieces.append((begin, min(begin + size, start) - begin, offset))
        rest = max(begin, end)
        pieces.append((rest, begin + size - rest, offset + rest - begin))
    pieces = sorted(one for one in pieces if one[1] > 0)
    return replace(
        sample,
        memory=Memory(
            memory.buffer,
            np.array([begin for begin, _, _ in pieces], np.uint64),
            np.array([size for _, size, _ in pieces], np.uint64),
            np.array([offset for _, _, offset in pieces], np.int64),
            memoryview(bytes(memory.following) + contents),
        ),
        first_segment=np.zeros(1, np.int64),
        end_segment=np.full(1, len(pieces)),
    )
