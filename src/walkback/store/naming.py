"""Names for the frames of a store, late: when somebody wants to see them, and only of those that are seen.

A frame is a build ID and an address, so its name is in the file with that build ID, wherever a `FileSearch` finds that
file by now. Names that no file could give were stored with the frame. A file without a build ID is not looked into: it
could be another by now.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I64, U64, distinct
from walkback.base.dataclass import dataclass
from walkback.naming.borders import function_at
from walkback.stacks.profile import CodeMapping, NamedFrames
from walkback.symbols.demangle import Demangle, shortened
from walkback.symbols.sourceline import SourceLine

if TYPE_CHECKING:
    from walkback.elf import FileSearch
    from walkback.naming.names import FrameNames
    from walkback.store.sums import StoredFrames


@dataclass(frozen=True, slots=True)
class Naming:
    """How names are looked up.

    >>> store = walkback.Store("stacks", create=True)
    >>> store.select(naming=walkback.store.Naming(demangle=False)).profile()
    Profile(frames=NamedFrames(...), stack_first=<1>, stack_frames=<0>, comms=<0>, comm=<0>, stack=<0>, ...
    """

    search: FileSearch | None = None
    """What finds the files, in the place of the usual one."""
    demangle: Demangle = True
    lines: bool = False
    """Source files and lines as well."""
    inline: bool = True
    """Each inlined call as a frame."""
    troubles: dict[str, str] = field(default_factory=dict, compare=False)
    """For files whose names could not be had, the reason; filled by `named`."""

    def named(self, frames: StoredFrames, chosen: I64) -> tuple[NamedFrames, list[tuple[SourceLine, ...]]]:
        """Some of the frames, with names, and the calls that are inlined in each, innermost first.

        The store's own names come first, so that no file is needed; lines only files have.
        """
        module, address = frames.module[chosen], frames.address[chosen]
        shown = [module_text(*one) for one in frames.modules]
        symbol: list[str | None] = [frames.names[name] if name >= 0 else None for name in frames.name[chosen].tolist()]
        found = _Found([None] * len(chosen), [0] * len(chosen), np.zeros(len(chosen), np.uint64), [()] * len(chosen))
        in_files = np.array([*(_bytes(build_id) is not None for build_id, _ in frames.modules), False], np.bool_)
        asked = in_files[module] & np.array([name is None for name in symbol], np.bool_)
        kept = frames.kept.find([build_id for build_id, _ in frames.modules], module, address)
        known = asked & (kept.function >= 0)
        unnamed = np.array([row >= 0 and not frames.kept.calls[row] for row in kept.function.tolist()], np.bool_)
        if self.lines or not self.demangle:
            self._ask_files(frames, chosen, np.flatnonzero(asked), symbol, found)
        else:
            self._ask_files(frames, chosen, np.flatnonzero(asked & (~known | unnamed)), symbol, found)
        short = self.demangle == "short"
        for row in np.flatnonzero(known).tolist():
            start, file = kept.start(row), shown[int(module[row])]
            # The file may have lost since what it said when the stacks were added.
            if symbol[row] is None or symbol[row] == function_at(file, int(address[row] - found.offset[row])):
                found.offset[row] = int(address[row]) - start
                symbol[row] = kept.symbol(row) or function_at(file, start)
            if not found.inlined[row] and found.file[row] is None:
                its = (shortened(name) if short else name for name in kept.inlined(row))
                found.inlined[row] = tuple(SourceLine(None, 0, name) for name in its)
        if short:
            symbol = [name and shortened(name) for name in symbol]
        modules = [shown[number] if number >= 0 else "" for number in module.tolist()]
        kernel = np.array([one.startswith("[kernel") for one in [*shown, ""]], np.bool_)[module]
        lines = (found.file, found.line) if self.lines else (None, None)
        named = NamedFrames(symbol, modules, address, kernel, found.offset, *lines)
        return named, found.inlined if self.inline else [()] * len(chosen)

    def from_files(self, frames: StoredFrames, chosen: I64) -> tuple[NamedFrames, list[tuple[SourceLine, ...]]]:
        """The same by files alone, with lines if these are wanted."""
        found = self._find(frames, chosen)
        address = frames.address[chosen]
        named = NamedFrames(found.symbol, found.module, address, np.zeros(len(chosen), np.bool_), found.offset)
        return named, found.inlined

    def _ask_files(self, frames: StoredFrames, chosen: I64, rows: I64, symbol: list[str | None], found: _Found) -> None:
        """Fill in what the files of some rows say."""
        if not len(rows):
            return
        named = self._find(frames, chosen[rows])
        found.offset[rows] = named.offset
        columns = (named.symbol, named.file, named.line, named.inlined)
        for place, name, file, line, inlined in zip(rows.tolist(), *columns, strict=True):
            symbol[place], found.file[place], found.line[place], found.inlined[place] = name, file, line, inlined

    def _find(self, frames: StoredFrames, chosen: I64) -> FrameNames:
        """The names of frames that are in files with build IDs."""
        from walkback.naming.modules import Module, Modules
        from walkback.naming.names import Names

        modules = Modules(self.search)
        numbers = np.full(len(frames.modules), -1, np.int64)
        module = frames.module[chosen]
        for number in distinct(module).tolist():
            build_id, path = _bytes(frames.modules[number][0]), frames.modules[number][1]
            name = module_text(*frames.modules[number])
            # A name in brackets is no file, and a path that is not whole would be one of whatever folder this runs in.
            places = tuple(modules.search.path(path)) if path and path.startswith("/") else ()
            numbers[number] = modules.add(Module(name, build_id, places, only_named=True), (number,))
        names = Names(modules, demangle=self.demangle, lines=self.lines, inline=self.inline)
        address = frames.address[chosen]
        for number in distinct(module[module >= 0]).tolist():
            ours = module == number
            address[ours] = modules[int(numbers[number])].as_addresses(address[ours])
        found = names.find(numbers[module], address, weight=np.ones(len(chosen), np.int64))
        self.troubles.update((name, why) for name, why in names.troubles.items() if not name.startswith("["))
        return found


@dataclass(slots=True)
class _Found:
    """What is known of frames besides their names."""

    file: list[str | None]
    line: list[int]
    offset: U64
    inlined: list[tuple[SourceLine, ...]]


def mappings(frames: StoredFrames) -> list[CodeMapping]:
    """The files of frames, with their build IDs."""
    return [CodeMapping(module_text(build_id, path), _bytes(build_id)) for build_id, path in frames.modules]


def module_text(build_id: str | None, path: str | None) -> str:
    """What to call a file: its path, or its build ID where that is all there is."""
    return path or (f"[{build_id}]" if build_id else "")


def _bytes(build_id: str | None) -> bytes | None:
    """A build ID as its file has it; None for what is none."""
    try:
        return bytes.fromhex(build_id) if build_id else None
    except ValueError:
        return None
