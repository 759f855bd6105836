"""The calls of one state, innermost first."""

from __future__ import annotations

import struct
from typing import NamedTuple

from walkback.base.arch import ByteOrder
from walkback.runtimes.lua import layout
from walkback.runtimes.lua.function import Function
from walkback.runtimes.memory import TargetMemory, gathered

_PAGE = 4096
_MOST_NAMES = 256
"""Different places whose names are wanted in one stack."""
_MOST_KEPT = 1 << 24
"""Bytes of functions that are kept."""
_MOST_FUNCTIONS = 1 << 14
_LUA_FUNCTION = layout.CLOSURE | layout.COLLECTABLE


class Call(NamedTuple):
    """A call of a function."""

    function: Function | None
    """None for a function of C."""
    place: int
    """The number of the instruction that it is at; -1 before the first."""
    name: str | None
    """By which it was called."""
    is_first: bool
    """Whether its evaluator began with it."""


class _Row(NamedTuple):
    """A call, as memory has it."""

    function: int
    previous: int
    instruction: int
    status: int


class Calls:
    """The calls of the states of one process, with their functions, which are kept."""

    def __init__(self, byteorder: ByteOrder, limit: int) -> None:
        """At most `limit` calls of a state are followed."""
        self._byteorder, self._limit = byteorder, limit
        order = "<" if byteorder == "little" else ">"
        self._word = struct.Struct(f"{order}Q")
        self._row = struct.Struct(order + layout.CALL)
        self._functions: dict[int, Function] = {}
        self._bytes = 0

    def follow(self, newest: int, base: int, memory: TargetMemory) -> tuple[list[Call], int | None]:
        """The calls from the newest to that at `base`, which no function made, and where they could not be followed."""
        rows, torn = self._rows(newest, base, memory)
        functions, bad = self._functions_of(rows, memory)
        if bad == 0:
            # Its function has just ended, or begins.
            rows, (functions, bad) = rows[1:], self._functions_of(rows[1:], memory)
        if bad is not None:
            rows, torn = rows[:bad], rows[bad].function
        asked: set[tuple[int, int]] = set()
        calls: list[Call] = []
        caller: Call | None = None
        for number in reversed(range(len(rows))):
            row, function = rows[number], functions[number]
            name = None
            if row.status & layout.FINALIZER:
                name = "__gc"
            elif caller is not None and caller.function is not None and not row.status & layout.TAIL_CALL:
                key = id(caller.function), caller.place
                if key in asked or len(asked) < _MOST_NAMES:
                    asked.add(key)
                    is_hooked = rows[number + 1].status & layout.HOOKED
                    name = None if is_hooked else caller.function.called(caller.place, memory)
            place = -1 if function is None else function.place(row.instruction)
            caller = Call(function, place, name, bool(row.status & layout.FIRST_OF_EVALUATOR))
            calls.append(caller)
        return calls[::-1], torn

    def _rows(self, call: int, base: int, memory: TargetMemory) -> tuple[list[_Row], int | None]:
        rows: list[_Row] = []
        start, window = 0, b""
        while call != base:
            if call & 7 or len(rows) == self._limit:
                return rows, call
            if not 0 <= call - start <= len(window) - self._row.size:
                # Its callers are mostly below it.
                start = call & -_PAGE
                window = memory.read(start, call - start + self._row.size)
                if call - start > len(window) - self._row.size:
                    return rows, call
            rows.append(_Row(*self._row.unpack_from(window, call - start)))
            call = rows[-1].previous
        return rows, None

    def _functions_of(self, rows: list[_Row], memory: TargetMemory) -> tuple[list[Function | None], int | None]:
        """The function of each row, None for C, and the number of the first row that has none."""
        found: list[Function | None] = [None] * len(rows)
        ours = [number for number, row in enumerate(rows) if not row.status & layout.OF_C]
        values = gathered([rows[number].function for number in ours], layout.VALUE_SIZE, memory)
        kinds = [value[layout.KIND_AT : layout.KIND_AT + 1] == bytes([_LUA_FUNCTION]) for value in values]
        closures = [self._at(value, 0) if kind else 0 for value, kind in zip(values, kinds, strict=True)]
        heads = gathered(closures, layout.CLOSURE_SIZE, memory)
        prototypes = [
            self._at(head, layout.CLOSURE_PROTOTYPE)
            if head[layout.KIND_AT : layout.KIND_AT + 1] == bytes([layout.CLOSURE])
            else 0
            for head in heads
        ]
        distinct = list(dict.fromkeys(prototypes))
        contents = gathered(distinct, layout.PROTOTYPE_SIZE, memory)
        known = {
            address: self._function(address, head, memory) for address, head in zip(distinct, contents, strict=True)
        }
        for number, prototype in zip(ours, prototypes, strict=True):
            found[number] = known[prototype]
            function = found[number]
            if function is None or not function.has(rows[number].instruction):
                return found, number
        return found, None

    def _function(self, address: int, head: bytes, memory: TargetMemory) -> Function | None:
        """The prototype at an address, whose beginning is given; None if there is none."""
        if len(head) < layout.PROTOTYPE_SIZE or head[layout.KIND_AT] != layout.PROTOTYPE:
            return None
        known = self._functions.get(address)
        if known is None or known.mark != head[layout.PROTOTYPE_MARK :]:
            if len(self._functions) >= _MOST_FUNCTIONS:
                self._functions.clear()
                self._bytes = 0
            # The functions of one stack may be more than are kept: of the last ones only the names are.
            known = Function(head, memory, self._byteorder, whole=self._bytes < _MOST_KEPT)
            self._functions[address] = known
            self._bytes += known.size
        return known

    def forget(self) -> None:
        """Do not keep more than is kept: to be called between looks."""
        if self._bytes >= _MOST_KEPT:
            self._functions.clear()
            self._bytes = 0

    def _at(self, contents: bytes, place: int) -> int:
        return int(self._word.unpack_from(contents, place)[0]) if place + 8 <= len(contents) else 0
