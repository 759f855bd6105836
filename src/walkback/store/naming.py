"""Names for the frames of a store, late: when somebody wants to see them, and only of those that are seen.

A frame is a build ID and an address, so its name is in the file with that build ID, wherever a `FileSearch` finds that
file by now. Names that no file could give were stored with the frame. A file without a build ID is not looked into: it
could be another by now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I64
from walkback.stacks.profile import CodeMapping, NamedFrames
from walkback.symbols.demangle import Demangle

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
    troubles: dict[str, str] = field(default_factory=dict, compare=False)
    """For files whose names could not be had, the reason; filled by `named`."""

    def named(self, frames: StoredFrames, chosen: I64) -> NamedFrames:
        """Some of the frames, with names."""
        module = frames.module[chosen]
        shown = [module_text(*one) for one in frames.modules]
        stored = [frames.names[name] if name >= 0 else None for name in frames.name[chosen].tolist()]
        symbol: list[str | None] = list(stored)
        file: list[str | None] = [None] * len(chosen)
        line = [0] * len(chosen)
        offset = np.zeros(len(chosen), np.uint64)
        known = np.array([*(_bytes(build_id) is not None for build_id, _ in frames.modules), False], np.bool_)
        asked = np.flatnonzero(known[module] & np.array([name is None for name in stored], np.bool_))
        if len(asked):
            found = self._find(frames, chosen[asked])
            offset[asked] = found.offset
            for place, name, its_file, its_line in zip(
                asked.tolist(), found.symbol, found.file, found.line, strict=True
            ):
                symbol[place], file[place], line[place] = name, its_file, its_line
        modules = [shown[number] if number >= 0 else "" for number in module.tolist()]
        kernel = np.array([one.startswith("[kernel") for one in [*shown, ""]], np.bool_)[module]
        lines = (file, line) if self.lines else (None, None)
        return NamedFrames(symbol, modules, frames.address[chosen], kernel, offset, *lines)

    def _find(self, frames: StoredFrames, chosen: I64) -> FrameNames:
        """The names of frames that are in files with build IDs."""
        from walkback.naming.modules import Module, Modules
        from walkback.naming.names import Names

        modules = Modules(self.search)
        numbers = np.full(len(frames.modules), -1, np.int64)
        module = frames.module[chosen]
        for number in np.unique(module).tolist():
            build_id, path = _bytes(frames.modules[number][0]), frames.modules[number][1]
            name = module_text(*frames.modules[number])
            # A name in brackets is no file, and a path that is not whole would be one of whatever folder this runs in.
            places = tuple(modules.search.path(path)) if path and path.startswith("/") else ()
            numbers[number] = modules.add(Module(name, build_id, places), (number,))
        names = Names(modules, demangle=self.demangle, lines=self.lines)
        found = names.find(numbers[module], frames.address[chosen])
        self.troubles.update((name, why) for name, why in names.troubles.items() if not name.startswith("["))
        return found


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
