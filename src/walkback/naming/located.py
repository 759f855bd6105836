"""Where the addresses of a backtrace are, long after and anywhere: in which file, by its build ID, and which function.

The backtrace has addresses and the image map has files; what has to be there for names are the files, at their path or
among the debug files by build ID, and no process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import numpy as np

from walkback.base.arrays import U8, U64, Numbers, distinct
from walkback.base.dataclass import dataclass
from walkback.cbf.layout import FrameCode
from walkback.cif.imagemap import Image, ImageMap
from walkback.elf import FileSearch
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.symbols.demangle import Demangle
from walkback.symbols.sourceline import SourceLine

_NO_MODULE = -1


class CallObject(TypedDict):
    """A call that is inlined, as JSON."""

    symbol: str | None
    """The function."""
    file: str | None
    """The source file."""
    line: int
    """The line."""


class LocatedObject(TypedDict):
    """Where one frame is, as JSON."""

    module: str | None
    """The path of the image."""
    build_id: str | None
    """Its build ID, in hexadecimal."""
    offset: int
    """The offset from the start of the image."""
    symbol: NotRequired[str]
    """The function, if the file is available."""
    symbol_offset: NotRequired[int]
    """The offset in the function."""
    file: NotRequired[str | None]
    """The source file, if debug information is available."""
    line: NotRequired[int]
    """The line."""
    inlined: NotRequired[list[CallObject]]
    """The calls that are inlined there, innermost first."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where one frame is."""

    image: Image
    offset: int
    """From the beginning of the image."""
    symbol: str | None
    symbol_offset: int = 0
    """From the beginning of the symbol."""
    lines: tuple[SourceLine, ...] = ()
    """The line of source, behind those of the calls that are inlined there, innermost first."""

    @property
    def inlined(self) -> tuple[SourceLine, ...]:
        """The calls that are inlined there, innermost first."""
        return self.lines[:-1]

    def __str__(self) -> str:
        if self.symbol is None:
            return self.image.at(self.image.base + self.offset)
        known = f" ({self.image.build_id.hex()})" if self.image.build_id else ""
        source = f" at {self.lines[-1].place}" if self.lines and self.lines[-1].file else ""
        return f"{self.symbol}+{self.symbol_offset:#x} {self.image.path or 'unknown'}{known}{source}"

    def as_object(self) -> LocatedObject:
        """For JSON."""
        build_id = self.image.build_id.hex() if self.image.build_id else None
        found: LocatedObject = {"module": self.image.path, "build_id": build_id, "offset": self.offset}
        if self.symbol is not None:
            found |= {"symbol": self.symbol, "symbol_offset": self.symbol_offset}
        if self.lines:
            found |= {"file": self.lines[-1].file, "line": self.lines[-1].line}
        if self.inlined:
            found["inlined"] = [{"symbol": one.function, "file": one.file, "line": one.line} for one in self.inlined]
        return found


class Locator:
    """Finds frames in the images of one process; what was read is kept.

    >>> images = walkback.capture.images("core.hello").images
    >>> locator = walkback.naming.Locator(images)
    >>> locator.troubles
    []
    """

    def __init__(
        self,
        images: ImageMap,
        *,
        search: FileSearch | None = None,
        demangle: Demangle = True,
        lines: bool = True,
        inline: bool = True,
    ) -> None:
        """`lines` reads debugging information; without `inline` calls that are inlined are left out."""
        self._images = images
        self._modules = Modules(search)
        self._names = Names(self._modules, demangle=demangle, lines=lines, inline=inline)

    def __repr__(self) -> str:
        return f"Locator(images={len(self._images.images)})"

    @property
    def troubles(self) -> list[str]:
        """Files that have no names to give, and why."""
        return [f"{name}: {reason}" for name, reason in self._names.troubles.items()]

    def locate(self, kind: U8, value: U64) -> list[Located | None]:
        """Of each frame its place, and None for one that is in no image or is an omission.

        A return address is looked up one byte before, where the call is.
        """
        lookup: U64 = value - ((kind == FrameCode.RA) & (value > 0)).astype(np.uint64)
        number = np.where(kind == FrameCode.OMIT, _NO_MODULE, self._images.locate(lookup))
        inside = np.flatnonzero(number >= 0)
        module, address = self._in_files(number[inside], lookup[inside])
        named = self._names.find(module, address)
        found: list[Located | None] = [None] * len(kind)
        rows = zip(inside.tolist(), number[inside].tolist(), value[inside].tolist(), strict=True)
        # Offsets are those of the address, and not of the call before it.
        back = (value - lookup)[inside].tolist()
        for place, (row, which, pc) in enumerate(rows):
            image = self._images.images[which]
            symbol_offset = int(named.offset[place]) + back[place]
            lines = named.lines[place] if named.lines is not None else ()
            found[row] = Located(image, pc - image.base, named.symbol[place], symbol_offset, lines)
        return found

    def _in_files(self, number: Numbers, lookup: U64) -> tuple[Numbers, U64]:
        """The module of each frame, and the address as its file counts."""
        module = np.full(len(number), _NO_MODULE, np.int64)
        address = lookup.copy()
        for which in distinct(number).tolist():
            image = self._images.images[which]
            if image.path is None and image.build_id is None:
                continue
            rows = number == which
            module[rows] = self._modules.file(image.path or "[unknown]", image.build_id)
            bias = self._modules[int(module[rows][0])].bias(image.base, 0)
            address[rows] -= np.uint64(bias)
        return module, address


def locate_frames(
    frames: Sequence[tuple[int, int]],
    images: ImageMap,
    *,
    search: FileSearch | None = None,
) -> list[Located | None]:
    """Where each frame, given as kind and value, is.

    >>> images = walkback.capture.images("core.hello").images
    >>> pc = images.images[0].base + 0x1017
    >>> [place] = walkback.naming.locate_frames([(walkback.cbf.FrameCode.PC, pc)], images)
    >>> place.symbol
    'main'
    """
    kind = np.array([kind for kind, _ in frames], np.uint8)
    value = np.array([value for _, value in frames], np.uint64)
    return Locator(images, search=search).locate(kind, value)
