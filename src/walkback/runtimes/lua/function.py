"""Functions of Lua: prototypes, with their lines, and the names by which they call others.

A function of Lua has no name of its own. The instruction that called it says from where it took what it called: that
is the name, as Lua's own tracebacks have it.
"""

from __future__ import annotations

import struct
from functools import cached_property

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I32
from walkback.base.text import clean
from walkback.runtimes.lua import layout, opcodes
from walkback.runtimes.memory import TargetMemory

_FIRST_READ = 128
_MOST_CHARACTERS = 1000
_MOST_SHOWN = 40
"""Characters of a program that is in no file."""
_MOST_BYTES = 1 << 20
"""Of instructions, lines and local variables of one function, each."""
_MOST_MOVES = 4
_LOCAL = (("name", "u8"), ("begin", "i4"), ("end", "i4"))


class Function:
    """One prototype, as it was read once; lines are worked out when they are wanted."""

    def __init__(self, head: bytes, memory: TargetMemory, byteorder: ByteOrder, *, whole: bool = True) -> None:
        """`head` are its `layout.PROTOTYPE_SIZE` bytes; unless it is to be read as a `whole`, it has no lines."""
        self._order = order = "<" if byteorder == "little" else ">"
        self.mark = head[layout.PROTOTYPE_MARK :]
        """What must still be there if this is to be the same object."""

        def table(place: int, count_at: int, size: int) -> bytes:
            (count,) = struct.unpack_from(f"{order}i", head, count_at)
            wanted = max(count, 0) * size
            contents = memory.read(self._word(head, place), wanted) if whole and wanted <= _MOST_BYTES else b""
            return contents[: len(contents) // size * size]

        (first,) = struct.unpack_from(f"{order}i", head, layout.FIRST_LINE)
        self.first_line = max(first, 0)
        self._code_at = self._word(head, layout.CODE)
        (self._code_count,) = struct.unpack_from(f"{order}i", head, layout.CODE_COUNT)
        self._code = np.frombuffer(table(layout.CODE, layout.CODE_COUNT, 4), f"{order}u4")
        self._steps = table(layout.LINES, layout.LINES_COUNT, 1)
        self._known_lines = table(layout.KNOWN_LINES, layout.KNOWN_LINES_COUNT, 8)
        locals_ = table(layout.LOCALS, layout.LOCALS_COUNT, layout.LOCAL_SIZE)
        self._locals = np.frombuffer(locals_, [(name, order + kind) for name, kind in _LOCAL])
        self._upvalues, self._constants = (self._word(head, place) for place in (layout.UPVALUES, layout.CONSTANTS))
        counts = struct.unpack_from(f"{order}2i", head, layout.UPVALUES_COUNT)
        self._upvalue_count, self._constant_count = counts
        source = self._string(self._word(head, layout.SOURCE), memory)
        self.file = _file(source) if source else None
        self._names: dict[int, str | None] = {}

    def __len__(self) -> int:
        return len(self._code)

    @property
    def size(self) -> int:
        """About how many bytes are kept, its lines included."""
        return self._code.nbytes + 5 * len(self._steps) + len(self._known_lines) + self._locals.nbytes

    @property
    def symbol(self) -> str:
        """What it is called if nobody calls it by a name."""
        if not self.first_line:
            return "main chunk"
        file = self.file or "?"
        return f"function <{file.rpartition('/')[2]}:{self.first_line}>"

    def has(self, instruction: int) -> bool:
        """Whether an address is that of an instruction, or the one behind the last."""
        away = instruction - self._code_at
        return 0 <= away <= 4 * self._code_count and not away % 4

    def place(self, instruction: int) -> int:
        """The number of the instruction before the next one, whose address is given; -1 before the first."""
        return (instruction - self._code_at) // 4 - 1

    def line(self, place: int) -> int:
        """The line of an instruction, by its number; 0 if it is not known."""
        lines = self._lines
        return int(lines[place]) if 0 <= place < len(lines) and lines[place] > 0 else self.first_line

    @cached_property
    def _lines(self) -> I32:
        steps = np.frombuffer(self._steps, np.int8).astype(np.int64)
        known = np.frombuffer(self._known_lines, f"{self._order}i4").astype(np.int64).reshape(-1, 2)
        lines = self.first_line + np.cumsum(np.where(steps == layout.NO_STEP, 0, steps))
        # From each known line on all are off by as much.
        known = known[(known[:, 0] >= 0) & (known[:, 0] < len(lines))]
        known = known[np.argsort(known[:, 0], kind="stable")]
        if len(known):
            off = known[:, 1] - lines[known[:, 0]]
            row = np.searchsorted(known[:, 0], np.arange(len(lines)), side="right") - 1
            lines += np.where(row >= 0, off[row], 0)
        found: I32 = lines.astype(np.int32)
        return found

    def called(self, place: int, memory: TargetMemory) -> str | None:
        """What it calls at an instruction; None if that has no name."""
        if place not in self._names:
            self._names[place] = self._called(place, memory) if 0 <= place < len(self) else None
        return self._names[place]

    def _called(self, place: int, memory: TargetMemory) -> str | None:
        word = int(self._code[place])
        number = word & opcodes.OPCODE
        if number in {opcodes.CALL, opcodes.TAILCALL}:
            return self._held(place, opcodes.a(word), memory)
        if number in opcodes.MMBIN:
            number = opcodes.c(word)
            return opcodes.EVENTS[number] if number < len(opcodes.EVENTS) else None
        return opcodes.EVENT_OF.get(number)

    def _held(self, place: int, register: int, memory: TargetMemory) -> str | None:
        """The name of what a register holds at an instruction."""
        for _ in range(_MOST_MOVES):
            variable = self._local(place, register)
            if variable is not None:
                return self._string(variable, memory)
            setter = opcodes.setter(self._code, place, register)
            if setter is None:
                return None
            word = int(self._code[setter])
            number = word & opcodes.OPCODE
            if number != opcodes.MOVE or opcodes.b(word) >= register:
                return self._taken(number, word, setter, memory)
            place, register = setter, opcodes.b(word)
        return None

    def _taken(self, number: int, word: int, place: int, memory: TargetMemory) -> str | None:
        """The name under which an instruction finds what it puts into a register."""
        if number in {opcodes.GETTABUP, opcodes.GETFIELD} or (number == opcodes.SELF and opcodes.k(word)):
            return self._constant(opcodes.c(word), memory)
        if number in {opcodes.GETTABLE, opcodes.SELF}:
            key = opcodes.setter(self._code, place, opcodes.c(word))
            loads = key is not None and int(self._code[key]) & opcodes.OPCODE == opcodes.LOADK
            return self._constant(opcodes.bx(int(self._code[key])), memory) if key is not None and loads else None
        if number == opcodes.GETUPVAL and opcodes.b(word) < self._upvalue_count:
            upvalue = self._upvalues + layout.UPVALUE_SIZE * opcodes.b(word)
            return self._string(self._word(memory.read(upvalue, 8)), memory)
        return None

    def _local(self, place: int, register: int) -> int | None:
        """Where the name of the local variable is that has a register at an instruction."""
        active = np.flatnonzero((self._locals["begin"] <= place) & (place < self._locals["end"]))
        return int(self._locals["name"][active[register]]) if register < len(active) else None

    def _constant(self, number: int, memory: TargetMemory) -> str | None:
        if number >= self._constant_count:
            return None
        value = memory.read(self._constants + layout.VALUE_SIZE * number, layout.VALUE_SIZE)
        return self._string(self._word(value), memory)

    def _string(self, address: int, memory: TargetMemory) -> str | None:
        """The text of a string, cut where it is long; None if there is none."""
        head = memory.read(address, _FIRST_READ) if address else b""
        if len(head) < layout.STRING_TEXT:
            return None
        if head[layout.KIND_AT] == layout.SHORT_STRING:
            length = head[layout.STRING_SHORT_LENGTH]
        elif head[layout.KIND_AT] == layout.LONG_STRING:
            length = self._word(head, layout.STRING_LENGTH)
        else:
            return None
        cut = min(length, _MOST_CHARACTERS)
        if layout.STRING_TEXT + cut > len(head):
            head = memory.read(address, layout.STRING_TEXT + cut)
        text = clean(head[layout.STRING_TEXT : layout.STRING_TEXT + cut].decode("utf-8", "replace"))
        return text + "..." if cut < length else text

    def _word(self, contents: bytes, place: int = 0) -> int:
        return int(struct.unpack_from(f"{self._order}Q", contents, place)[0]) if place + 8 <= len(contents) else 0


def _file(source: str) -> str:
    """What a program says that it was read from: a file, something else, or the program itself."""
    if source[0] in "@=":
        return source[1:]
    line = source.splitlines()[0] if source.splitlines() else ""
    return f'[string "{line[:_MOST_SHOWN]}{"..." if len(source) > min(len(line), _MOST_SHOWN) else ""}"]'
