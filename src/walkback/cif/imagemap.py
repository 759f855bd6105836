"""The files that a process had mapped, and which of them an address belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U64, Numbers
from walkback.base.dataclass import dataclass
from walkback.base.findings import ByteFinding
from walkback.base.oneline import OneLine
from walkback.base.text import printable

_NONE = -1


class Image(NamedTuple):
    """A file with code, in memory.

    >>> image = walkback.cif.Image("/usr/bin/true", None, 0x400000, 0x401000)
    >>> image.path, hex(image.end)
    ('/usr/bin/true', '0x401000')
    """

    path: str | None
    build_id: bytes | None
    base: int
    """Where its beginning is."""
    end: int
    """Behind the last byte of its code."""

    def at(self, address: int) -> str:
        """An address in it as `module+offset (build ID)`."""
        known = f" ({self.build_id.hex()})" if self.build_id else ""
        return f"{printable(self.path) if self.path else 'unknown'}+{address - self.base:#x}{known}"


@dataclass(frozen=True, repr=False)
class ImageMap(OneLine):
    """The images of a process.

    >>> image = walkback.cif.Image("/usr/bin/true", None, 0x400000, 0x401000)
    >>> images = walkback.cif.ImageMap(64, "Linux", (image,))
    >>> images.find(0x400123).path, images.find(0x1000)
    ('/usr/bin/true', None)
    """

    word: int
    """Bits of an address: 16, 32 or 64."""
    platform: str | None
    """As `Linux 6.1 (x86_64)`; None where the first form of the format has no place for it."""
    images: Sequence[Image]
    findings: tuple[ByteFinding, ...] = field(default=(), compare=False)
    """What was wrong with the bytes that this was read from, and did not keep it from being read."""

    def find(self, address: int) -> Image | None:
        """The image that holds an address."""
        number = int(self.locate([address])[0]) if 0 <= address < 1 << 64 else _NONE
        return self.images[number] if number >= 0 else None

    def locate(self, addresses: Numbers | Sequence[int]) -> I64:
        """Of each address the number of the image that holds it; -1 for none."""
        starts, owners = self._pieces
        place = np.searchsorted(starts, np.asarray(addresses, np.uint64), side="right") - 1
        return owners[place]

    def resolve(self, addresses: Sequence[int], lookup: Sequence[int] | None = None) -> list[str]:
        """Each address as `module+offset (build ID)`, or as a number where no image holds it.

        `lookup` are the addresses to go by, if these are return addresses: those of the calls before them.
        """
        numbers = self.locate(addresses if lookup is None else lookup).tolist()
        return [
            self.images[number].at(address) if number >= 0 else f"{address:#x}"
            for address, number in zip(addresses, numbers, strict=True)
        ]

    @cached_property
    def _pieces(self) -> tuple[U64, I64]:
        """Where the owner of addresses changes, and to which image; the last to begin owns what several hold."""
        starts, owners = [0], [_NONE]

        def change(start: int, owner: int) -> None:
            if starts[-1] == start:
                starts.pop()
                owners.pop()
            starts.append(start)
            owners.append(owner)

        def close(until: int) -> None:
            while holding and self.images[holding[-1]].end <= until:
                end = self.images[holding.pop()].end
                while holding and self.images[holding[-1]].end <= end:
                    holding.pop()
                change(end, holding[-1] if holding else _NONE)

        holding: list[int] = []
        top = 1 << 64
        good = [number for number, one in enumerate(self.images) if 0 <= one.base < one.end < top]
        for number in sorted(good, key=lambda number: self.images[number].base):
            base = self.images[number].base
            close(base)
            change(base, number)
            holding.append(number)
        close(top)
        return np.array(starts, np.uint64), np.array(owners, np.int64)
