"""The rows of functions, and what their code shows besides.

The frame pointer is not in the table, but compiled code saves it in the same few ways. On AArch64 two instructions take
a large frame off, and the table has no row for the second one. Where a function without a frame calls another one, the
call takes the register that has the return address.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.base.arrays import I64, U8, U32, Bools
from walkback.base.dataclass import dataclass
from walkback.gopclntab.decoding import FunctionTable

_BEYOND = 8
"""Bytes of the longest instruction that saves the frame pointer."""
_OFFSET_BITS = 32
"""Of an offset in a function."""
_FIRST_LENGTHS = (2, 4, 4, 6)
"""Bytes of an instruction of s390x, by the upper two bits of the first."""
_ADD, _ADD_PAGES, _ADD_BITS = 0x910003FF, 0x914003FF, 0xFFC003FF
"""AArch64: `add sp, sp, #number`, the same in units of 4096, and the bits that are fixed."""
_CALL, _CALL_BITS = 0x94000000, 0xFC000000
_CALL_REGISTER, _CALL_REGISTER_BITS = 0xD63F0000, 0xFFFFFC1F
"""AArch64: `bl` and `blr`."""


@dataclass(frozen=True, slots=True)
class _Saves:
    """An instruction that saves the frame pointer, by its first bytes as a number."""

    at: int
    """Where it begins, from where the depth changed."""
    size: int
    value: int
    end: int
    """Behind which the frame pointer is saved, from where the depth changed."""


_SAVES = {
    AMD64: (
        _Saves(-1, 1, 0x55, 0),  # push %rbp
        _Saves(0, 4, 0x242C8948, 4),  # mov %rbp, (%rsp)
        _Saves(0, 4, 0x246C8948, 5),  # mov %rbp, disp8(%rsp)
        _Saves(0, 4, 0x24AC8948, 8),  # mov %rbp, disp32(%rsp)
    ),
    AARCH64: (
        _Saves(0, 4, 0xF81F83FD, 4),  # stur x29, [sp, #-8]
        _Saves(-8, 4, 0xA93FFA9D, 0),  # stp x29, x30, [x20, #-8]; mov sp, x20
    ),
}
SAVES_POINTER = frozenset(_SAVES)
"""The machines on which Go keeps frame pointers."""


@dataclass(slots=True)
class Rows:
    """The rows of functions, an element each, in their order."""

    function: I64
    """The number of the function."""
    offset: I64
    """From its start."""
    depth: I64
    frame: I64
    """The depth at which the function saved the return address: the first that is not 0, or 0 if there is none."""
    is_saved: Bools
    """Whether the frame pointer is saved."""
    is_lost: Bools
    """Whether the return address may be in any register."""

    def __len__(self) -> int:
        return len(self.function)

    def counted(self, functions: int) -> tuple[I64, I64]:
        """The first row of each function, and how many it has."""
        rows = np.bincount(self.function, minlength=functions)
        return np.cumsum(rows) - rows, rows

    def split(self, function: I64, offset: I64) -> tuple[Rows, I64]:
        """The rows with one that begins at each of these places, and which ones these are.

        The places are within what the rows describe, and rise.
        """
        begins, wanted = (self.function << _OFFSET_BITS) + self.offset, (function << _OFFSET_BITS) + offset
        at = np.searchsorted(begins, wanted, "right") - 1
        is_new = begins[at] != wanted
        after = at[is_new] + 1
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        found = Rows(**{name: np.insert(column, after, column[at[is_new]]) for name, column in columns.items()})
        found.offset[after + np.arange(len(after))] = offset[is_new]
        return found, at + np.cumsum(is_new)


def rows_of(functions: FunctionTable, kept: I64, machine: Machine, code: memoryview | None) -> Rows:
    """The rows of the functions that are kept; `code` are the bytes from `functions.text` on."""
    first, rows = functions.first_row[kept], functions.rows[kept]
    function = np.repeat(np.arange(len(kept)), rows)
    row = np.repeat(first - np.cumsum(rows) + rows, rows) + np.arange(len(function))
    depth = functions.row_depth[row].astype(np.int64)
    begins = _beginnings(function, depth)
    frame = np.zeros(len(kept), np.int64)
    frame[function[begins]] = depth[begins]
    nowhere = np.zeros(len(row), np.bool_)
    found = Rows(function, functions.row_offset[row].astype(np.int64), depth, frame[function], nowhere, nowhere)
    if code is None or not len(row):
        return found
    place = (functions.start[kept] - np.uint64(functions.text)).astype(np.int64)
    size = functions.size[kept].astype(np.int64)
    if machine in _SAVES:
        found = _with_saves(found, place, size, machine, np.frombuffer(code, np.uint8))
    if machine is AARCH64:
        found = _in_two_steps(found, place, size, _words(code))
    if machine is not AMD64:
        found = _with_calls(found, place, size, machine, code, frame == 0)
    return found


def _beginnings(function: I64, depth: I64) -> I64:
    """The row of each function in which its frame begins."""
    deep = np.flatnonzero(depth > 0)
    found: I64 = deep[np.diff(function[deep], prepend=-1) != 0]
    return found


def _with_saves(rows: Rows, place: I64, size: I64, machine: Machine, contents: U8) -> Rows:
    """The rows, one more where an instruction saves the frame pointer."""
    begins = _beginnings(rows.function, rows.depth)
    of, offset = rows.function[begins], rows.offset[begins]
    saved = np.full(len(size), -1, np.int64)
    edge = np.zeros(_BEYOND, np.uint8)
    contents = np.concatenate((edge, contents, edge))
    for one in _SAVES[machine]:
        match = _matches(contents, place[of] + offset + _BEYOND, one)
        saved[of[match]] = offset[match] + one.end
    inside = np.flatnonzero((saved >= 0) & (saved < size))
    found, _ = rows.split(inside, saved[inside])
    its = saved[found.function]
    return replace(found, is_saved=(its >= 0) & (found.offset >= its))


def _matches(contents: U8, place: I64, one: _Saves) -> Bools:
    """At which places an instruction of this kind saves the frame pointer."""
    at = place + one.at
    inside = (at >= 0) & (at <= len(contents) - one.size)
    cells = contents[np.where(inside, at, 0)[:, None] + np.arange(one.size)]
    value = (cells.astype(np.uint64) << (np.arange(one.size, dtype=np.uint64) * np.uint64(8))).sum(axis=1)
    return np.asarray(inside & (value == one.value), np.bool_)


def _words(code: memoryview) -> U32:
    """The instructions of AArch64."""
    return np.frombuffer(code[: len(code) // 4 * 4], "<u4")


def _held(at: I64, place: I64, size: I64) -> tuple[I64, I64, I64]:
    """Of places in the code those that functions hold, by their numbers in `at`: these, the function, the offset."""
    number = np.searchsorted(place, at, "right") - 1
    held = np.flatnonzero((number >= 0) & (at - place[number] < size[number]))
    return held, number[held], at[held] - place[number[held]]


def _in_two_steps(rows: Rows, place: I64, size: I64, words: U32) -> Rows:
    """The rows, one more for the second of two instructions that take a frame off, if the table has none for it."""
    kind = words & np.uint32(_ADD_BITS)
    at = np.flatnonzero((kind[:-1] == _ADD) & (kind[1:] == _ADD_PAGES))
    held, function, offset = _held(4 * at + 4, place, size)
    less, more = (((words[at[held] + step] >> np.uint32(10)) & np.uint32(0xFFF)).astype(np.int64) for step in (0, 1))
    begins = (rows.function << _OFFSET_BITS) + rows.offset
    row = np.searchsorted(begins, (function << _OFFSET_BITS) + offset, "right") - 1
    behind = (row + 1).clip(max=len(rows) - 1)
    is_one = (rows.function[behind] == function) & (rows.offset[behind] == offset + 4) & (rows.offset[row] < offset)
    is_one &= (less > 0) & (rows.depth[behind] == rows.depth[row] - less - (more << 12))
    found, new = rows.split(function[is_one], offset[is_one])
    found.depth[new] -= less[is_one]
    return found


def _with_calls(rows: Rows, place: I64, size: I64, machine: Machine, code: memoryview, is_bare: Bools) -> Rows:
    """The rows, one more where a function without a frame calls another one for the first time."""
    called, begins = np.full(len(size), -1, np.int64), [0] * len(size)
    _, function, offset = _held(_calls(machine, code), place, size)
    bare = is_bare[function]
    for number, at in zip(function[bare].tolist(), offset[bare].tolist(), strict=True):
        if called[number] < 0:
            if machine is S390X:
                begins[number] = _next_beginning(code, int(place[number]), begins[number], at)
            if machine is AARCH64 or begins[number] == at:
                called[number] = at
    calling = np.flatnonzero(called >= 0)
    found, _ = rows.split(calling, called[calling])
    its = called[found.function]
    return replace(found, is_lost=(its >= 0) & (found.offset >= its))


def _calls(machine: Machine, code: memoryview) -> I64:
    """Where calls are; on s390x also what looks like one and is within other instructions."""
    if machine is AARCH64:
        words = _words(code)
        is_call = (words & np.uint32(_CALL_BITS)) == _CALL
        is_call |= (words & np.uint32(_CALL_REGISTER_BITS)) == _CALL_REGISTER
        return 4 * np.flatnonzero(is_call)
    assert machine is S390X
    halves = np.frombuffer(code[: len(code) // 2 * 2], ">u2")
    return 2 * np.flatnonzero((halves == 0xC0E5) | (halves == 0xA7E5) | (halves & 0xFFF0 == 0x0DE0))


def _next_beginning(code: memoryview, place: int, at: int, wanted: int) -> int:
    """Where the first instruction of s390x begins that is not in front of a wanted one; `at` is where one does."""
    while at < wanted:
        at += _FIRST_LENGTHS[code[place + at] >> 6]
    return at
