"""Bytes of a dump to columns.

Information on unwinding and lines comes before the code that it is about. The last record of a process that runs, or
was killed, may not be whole, and nothing behind the first one that is not can be found.
"""

from __future__ import annotations

import struct
from array import array
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.jitdump import layout

_MOST_MOVES = 1 << 20
_CODE = {layout.JIT_CODE_LOAD, layout.JIT_CODE_MOVE}


class Loads(NamedTuple):
    """The pieces of code, in the order of their records; places are in the file."""

    address: U64
    """Where it was first."""
    name: I64
    """Two columns: where the name begins, and where what follows it does."""
    code: I64
    """The same of the code."""
    frames: I64
    """The same of its `.eh_frame`; both 0 where there is none."""
    lines: I64
    """The same of the record with its lines."""


class Moves(NamedTuple):
    """When a piece of code came to an address, in the order of time."""

    time: U64
    address: U64
    load: I64
    """The number of the piece."""


@dataclass(frozen=True, slots=True)
class JitDump:
    """One dump."""

    data: bytes
    name: str
    """Of the file."""
    byteorder: ByteOrder
    is_monotonic: bool
    """Whether its times are those of CLOCK_MONOTONIC."""
    loads: Loads
    moves: Moves
    begin: int
    """Where the records begin."""
    end: int
    """Behind the last piece of code: what follows may belong to the next one."""
    trouble: str | None
    """What of it could not be read."""

    @property
    def prefix(self) -> str:
        """The byte order for `struct`."""
        return _PREFIXES[self.byteorder]

    def size(self) -> U64:
        """Bytes of each piece of code."""
        return (self.loads.code[:, 1] - self.loads.code[:, 0]).astype(np.uint64)


_PREFIXES = {"little": "<", "big": ">"}


def decode(data: bytes, name: str) -> JitDump:
    """Read a dump; raises `UnreadableError` if it is none."""
    byteorder: ByteOrder = "little" if data[:4] == layout.MAGIC.to_bytes(4, "little") else "big"
    shape = struct.Struct(_PREFIXES[byteorder] + layout.HEADER)
    if len(data) < shape.size or int.from_bytes(data[:4], byteorder) != layout.MAGIC:
        raise UnreadableError("this is not a dump of code that was made at run time", file=name)
    _, version, begin, _, _, _, _, flags = shape.unpack_from(data)
    if version != layout.VERSION or begin < shape.size:
        raise UnreadableError(f"a dump of version {version} with a header of {begin} bytes", file=name)
    reader = _Reader(data, _PREFIXES[byteorder])
    reader.read(begin)
    loads, moves = reader.columns()
    monotonic = not flags & layout.FLAG_ARCH_TIMESTAMP
    end = reader.end or begin
    return JitDump(data, name, byteorder, monotonic, loads, moves, begin, end, reader.trouble)


class _Reader:
    """Goes through the records once."""

    def __init__(self, data: bytes, prefix: str) -> None:
        self._data = data
        self._prefix = struct.Struct(prefix + layout.PREFIX)
        self._load = struct.Struct(prefix + layout.LOAD)
        self._move = struct.Struct(prefix + layout.MOVE)
        self._debug_info = struct.Struct(prefix + layout.DEBUG_INFO)
        self._unwinding = struct.Struct(prefix + layout.UNWINDING_INFO)
        self._addresses, self._places = array("Q"), array("q")
        self._moves, self._moved = array("Q"), array("q")
        self._by_index: dict[int, int] = {}
        self._frames = self._lines = (0, 0)
        """For the next piece of code."""
        self._lines_of = 0
        """Its address."""
        self._damaged = 0
        self.end = 0
        self.trouble: str | None = None

    def read(self, place: int) -> None:
        """Take in all records from a place on."""
        data, prefix = self._data, self._prefix
        while place + prefix.size <= len(data):
            kind, size, time = prefix.unpack_from(data, place)
            if size < prefix.size:
                self.trouble = f"at {place:#x} is a record of {size} bytes; nothing behind it is read"
                return
            end = place + size
            if end > len(data) or kind == layout.JIT_CODE_CLOSE:
                break
            if len(self._moved) >= _MOST_MOVES:
                self.trouble = f"only the first {_MOST_MOVES} pieces of code are read"
                return
            self._take(kind, time, place + prefix.size, end)
            place = end
            if kind in _CODE:
                self.end = place
        if self._damaged:
            self.trouble = f"the contents of {self._damaged} records contradict their size; they are left out"

    def _take(self, kind: int, time: int, place: int, end: int) -> None:
        shape = {
            layout.JIT_CODE_LOAD: self._load,
            layout.JIT_CODE_MOVE: self._move,
            layout.JIT_CODE_DEBUG_INFO: self._debug_info,
            layout.JIT_CODE_UNWINDING_INFO: self._unwinding,
        }.get(kind)
        if shape is None:
            return
        if place + shape.size > end:
            self._damaged += 1
            return
        fields = shape.unpack_from(self._data, place)
        behind = place + shape.size
        if kind == layout.JIT_CODE_LOAD:
            self._take_load(time, fields, behind, end)
        elif kind == layout.JIT_CODE_MOVE:
            self._take_move(time, fields)
        elif kind == layout.JIT_CODE_DEBUG_INFO:
            self._lines, self._lines_of = (place, end), fields[0]
        else:
            size, header, _ = fields
            if header > size or size > end - behind:
                self._damaged += 1
            else:
                self._frames = behind, behind + size - header

    def _take_load(self, time: int, fields: tuple[int, ...], place: int, end: int) -> None:
        _, _, _, address, size, index = fields
        frames, lines = self._frames, self._lines if self._lines_of == address else (0, 0)
        self._frames = self._lines = (0, 0)
        name_end = self._data.find(b"\0", place, end)
        if name_end < 0 or size > end - name_end - 1 or address + size > 2**64 - 1:
            self._damaged += 1
            return
        code = name_end + 1
        number = len(self._addresses)
        self._addresses.append(address)
        self._places.extend((place, name_end, code, code + size, *frames, *lines))
        self._by_index[index] = number
        self._arrive(time, address, number)

    def _take_move(self, time: int, fields: tuple[int, ...]) -> None:
        _, _, _, _, address, size, index = fields
        number = self._by_index.get(index)
        if number is None or address + size > 2**64 - 1:
            self._damaged += 1
            return
        self._arrive(time, address, number)

    def _arrive(self, time: int, address: int, number: int) -> None:
        self._moves.extend((time, address))
        self._moved.append(number)

    def columns(self) -> tuple[Loads, Moves]:
        """What was found."""
        places = np.array(self._places, np.int64).reshape(-1, 4, 2)
        moves, load = np.array(self._moves, np.uint64).reshape(-1, 2), np.array(self._moved, np.int64)
        # Several threads write records, each with the time at which it began to.
        order = np.argsort(moves[:, 0], kind="stable")
        loads = Loads(np.array(self._addresses, np.uint64), *(places[:, number] for number in range(4)))
        return loads, Moves(moves[order, 0], moves[order, 1], load[order])
