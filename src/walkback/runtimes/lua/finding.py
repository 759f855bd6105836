"""Files that hold Lua, and where they have the evaluator.

What reads a running interpreter is imported only for a process that has one, as most have none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.elf import ElfFile
from walkback.elf.named import LUA, addresses_of
from walkback.runtimes.memory import TargetMemory

if TYPE_CHECKING:
    from walkback.runtimes.lua.reading import LuaRuntime

_EVALUATOR = "luaV_execute"
_RELEASE = re.compile(rb"\$LuaVersion: Lua (\d{1,3})\.(\d{1,3})\.(\d{1,3})\s")
_IDENTITY_SIZE = 64
_CONSTANTS = (".data.rel.ro", ".rodata")
_MOST_CONSTANTS = 1 << 22


@dataclass(frozen=True, slots=True)
class LuaFile:
    """A file that holds Lua."""

    elf: ElfFile
    identity: int

    def open(self, bias: int, memory: TargetMemory, byteorder: ByteOrder, limit: int) -> LuaRuntime:
        """The interpreter in a process."""
        from walkback.runtimes.lua.layout import FIRST, LAST, layout_of
        from walkback.runtimes.lua.reading import LuaRuntime

        found = _RELEASE.match(memory.read((self.identity + bias) % 2**64, _IDENTITY_SIZE))
        release = (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)
        layout = layout_of(release)
        if layout is None:
            shown = ".".join(map(str, release)) if found else "of an unknown release"
            known = " to ".join(".".join(map(str, one)) for one in (FIRST, LAST))
            raise UnreadableError(f"the functions of Lua {shown} cannot be shown; those of {known} can")
        evaluator = _evaluator(self.elf, bias, memory, byteorder)
        if evaluator is None:
            raise UnreadableError("the functions of Lua cannot be shown: its evaluator is not found")
        start, end = ((one + bias) % 2**64 for one in evaluator)
        return LuaRuntime(layout, range(start, end), byteorder, limit=limit)


def lua_in(elf: ElfFile) -> LuaFile | None:
    """What a file has that holds Lua; None for others."""
    identity = next(addresses_of(elf, LUA), None)
    return LuaFile(elf, identity) if identity is not None else None


def _evaluator(elf: ElfFile, bias: int, memory: TargetMemory, byteorder: ByteOrder) -> tuple[int, int] | None:
    """The code of the evaluator: by its name, or because the table that it jumps by leads into it."""
    from walkback.dwarf.files import frame_sources

    fdes = [source.fdes for source in frame_sources(elf)]
    start = np.concatenate([np.zeros(0, np.uint64), *(one.start for one in fdes)])
    end = np.concatenate([np.zeros(0, np.uint64), *(one.start + one.size for one in fdes)])
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return None
    named = next(addresses_of(elf, _EVALUATOR), None)
    if named is not None:
        found = set(np.flatnonzero(start == np.uint64(named)).tolist()[:1])
    else:
        found = {
            number
            for index, name in enumerate(elf.section_names())
            if name.startswith(_CONSTANTS)
            for number in _jumping(elf, index, bias, memory, byteorder, start, end)
        }
    if len(found) != 1:
        return None
    number = found.pop()
    return int(start[number]), int(end[number])


def _jumping(
    elf: ElfFile, index: int, bias: int, memory: TargetMemory, byteorder: ByteOrder, start: U64, end: U64
) -> set[int]:
    """The functions into which a section has as many addresses in a row as the evaluator's table has."""
    from walkback.runtimes.lua.layout import OPCODES

    header = elf.sections[index]
    size = int(header["size"])
    if size > _MOST_CONSTANTS:
        return set()
    contents = memory.read((int(header["addr"]) + bias) % 2**64, size)
    words = np.frombuffer(contents, "<u8" if byteorder == "little" else ">u8", len(contents) // 8)
    places = words.astype(np.uint64) - np.uint64(bias % 2**64)
    number = np.searchsorted(start, places, side="right") - 1
    number[(number < 0) | (places >= end[number])] = -1
    edges = np.flatnonzero(np.diff(number, prepend=-2, append=-2))
    rows = np.diff(edges) == OPCODES
    return set(number[edges[:-1][rows]].tolist()) - {-1}
