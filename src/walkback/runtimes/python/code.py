"""Code objects: the name of a function, its file, and its lines.

They are read once, while a thread stands still, and kept. A later look compares a few bytes: another object may have
come to the same address since.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Literal

from walkback.base.dataclass import dataclass
from walkback.runtimes.chains import RuntimeFrame
from walkback.runtimes.copying import NotCopiedError
from walkback.runtimes.memory import TargetMemory, gathered
from walkback.runtimes.python.layout import CODE_UNIT, STRING_HEAD
from walkback.runtimes.python.lines import LineTable
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.strings import FIRST_READ, Strings, word

_MOST_LINES = 1 << 20
"""Bytes of one table of lines."""
_MOST_BYTES = 1 << 26
"""Of all tables of lines that are kept."""
_MOST_CODES = 1 << 16
"""Code objects that are kept."""


@dataclass(eq=False)
class Code:
    """One code object."""

    address: int
    mark: bytes
    """What must still be there if this is to be the same object."""
    symbol: str
    file: str | None
    first_line: int
    table: bytes
    is_inner: bool
    """Whether it is the interpreter's own, as that which calls `__init__`: no file has it."""
    copies: int = 0
    """Where the addresses of the copies of its instructions are, which threads have without a GIL."""

    def __post_init__(self) -> None:
        self.frames: dict[int, RuntimeFrame] = {}
        """By the number of an instruction."""
        self.begins: dict[int, int] = {}
        """Where the instructions of each copy begin."""

    @cached_property
    def _lines(self) -> LineTable:
        return LineTable(self.table, self.first_line)

    def frame(self, instruction: int) -> RuntimeFrame:
        """The frame at an instruction, by its number."""
        known = self.frames.get(instruction)
        if known is None:
            # What a function does before its first line has none.
            line = self._lines.find(instruction) or self.first_line
            known = self.frames[instruction] = RuntimeFrame(self.symbol, self.file, line)
        return known


class Codes:
    """The code objects of one process."""

    def __init__(self, build: Build, byteorder: Literal["little", "big"], code_type: int | None) -> None:
        """`code_type` is the address of the type of code objects."""
        self._build, self._layout = build, build.layout
        self._order = ">" if byteorder == "big" else "<"
        self.strings = Strings(build, byteorder)
        self._type = code_type
        self._known: dict[int, Code] = {}
        self._bytes = 0
        layout = build.layout
        self._begin, self._end = layout.code_first_line, layout.code_lines + 8
        """The part of a code object that never changes: numbers, a version, and what it refers to."""
        self._names_too = build.version == (3, 11)
        """There code objects have no version, so that the hash of the name has to distinguish them."""

    def current(self, addresses: list[int], memory: TargetMemory) -> dict[int, Code | None]:
        """The code objects at these addresses now; None where there is none."""
        marks = self._marks(addresses, memory)
        found: dict[int, Code | None] = {}
        for address, mark in zip(addresses, marks, strict=True):
            code = self._known.get(address)
            if code is None or code.mark != mark:
                code = self._read(address, mark, memory)
                self._keep(address, code)
            found[address] = code
        return found

    def learn(self, addresses: list[int], memory: TargetMemory) -> None:
        """Read those that are not known, while the process runs."""
        new = [address for address in addresses if address not in self._known]
        if new:
            self.current(new, memory)

    def unchanged(self, addresses: list[int], memory: TargetMemory) -> dict[int, Code | None]:
        """Those that a thread had a moment ago, while its process runs on; all must be known, and still be there.

        No two code objects have the same mark, so one that is the same before and after was the same in between.
        """
        found = {address: self._known.get(address) for address in addresses}
        for address, mark in zip(addresses, self._marks(addresses, memory), strict=True):
            code = found[address]
            if code is None or code.mark != mark:
                self._known.pop(address, None)
                raise NotCopiedError
        return found

    def _marks(self, addresses: list[int], memory: TargetMemory) -> list[bytes]:
        size = self._end - self._begin
        marks = gathered([(address + self._begin) % 2**64 for address in addresses], size, memory)
        if self._names_too:
            place = self._layout.code_name - self._begin
            names = [((word(mark, place, self._order) or 0) + STRING_HEAD) % 2**64 for mark in marks]
            hashes = gathered(names, 16, memory)
            marks = [mark + its for mark, its in zip(marks, hashes, strict=True)]
        return marks

    def _keep(self, address: int, code: Code | None) -> None:
        if len(self._known) >= _MOST_CODES or self._bytes > _MOST_BYTES:
            self._known.clear()
            self._bytes = 0
        self._known.pop(address, None)
        if code is not None:
            self._known[address] = code
            self._bytes += len(code.table)

    def _read(self, address: int, mark: bytes, memory: TargetMemory) -> Code | None:
        layout, order = self._layout, self._order
        head = memory.read(address, max(layout.code_instructions, layout.code_copies + 8, self._end))
        if len(head) < self._end:
            return None
        if self._type is not None and word(head, layout.object_type, order) != self._type:
            return None
        name_at, file_at = (word(head, place, order) for place in (layout.code_name, layout.code_file))
        symbol, file = self.strings.read(name_at, memory), self.strings.read(file_at, memory)
        table = self._bytes_at(word(head, layout.code_lines, order), memory)
        first = struct.unpack_from(f"{order}i", head, layout.code_first_line)[0]
        copies = word(head, layout.code_copies, order) if layout.code_copies else 0
        if self._marks([address], memory) != [mark]:
            # It is read while the process runs, and another object has just come there.
            return None
        unnamed = f"<code object at {address:#x}>"
        return Code(address, mark, symbol or unnamed, file, max(first, 0), table, name_at == file_at, copies or 0)

    def find_copy(self, code: Code, copy: int, memory: TargetMemory) -> None:
        """Know where the instructions of a copy begin; those of copy 0 are in the code object."""
        if copy not in code.begins and code.copies:
            code.begins[copy] = word(memory.read(code.copies + 8 * (copy + 1), 8), 0, self._order) or 0

    def instruction(self, code: Code, address: int, copy: int) -> int:
        """The number of the instruction at an address; -1 before the first."""
        begin = code.begins.get(copy, code.address + self._layout.code_instructions)
        away = address - begin
        return away // CODE_UNIT if 0 <= away < 2**31 else -1

    def _bytes_at(self, address: int | None, memory: TargetMemory) -> bytes:
        """The contents of a bytes object; none where they are too long."""
        if not address:
            return b""
        begin = self._layout.bytes_contents
        head = memory.read(address, FIRST_READ)
        size = word(head, self._layout.bytes_size, self._order)
        if size is None or size > _MOST_LINES:
            return b""
        if begin + size > len(head):
            head = memory.read(address, begin + size)
        return head[begin : begin + size]
