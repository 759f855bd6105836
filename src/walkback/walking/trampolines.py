"""Where a file has the code that signal handlers return to."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import numpy as np

from walkback.base.arch import Machine
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, is_stored, layout
from walkback.walking.abi import ABIS

_MOST = 4096
_PIECE = 4 << 20
_LAST = (1 << 64) - 1
"""The last address."""


def find_trampolines(elf: ElfFile, machine: Machine, troubles: list[str]) -> list[tuple[int, int]]:
    """The addresses, and which of the ABI's trampolines each is."""
    found: list[tuple[int, int]] = []
    with contextlib.suppress(WalkbackError):
        loads = (elf.segments["type"] == layout.PT_LOAD) & (elf.segments["flags"] & layout.PF_X != 0)
        for number in np.flatnonzero(loads).tolist():
            offset, size = elf.segment_range(number)
            if not is_stored(elf.data, offset, size):
                troubles.append(f"{elf.name}: the {size} bytes of segment {number} are mostly a hole and not searched")
                continue
            for kind, trampoline in enumerate(ABIS[machine].trampolines):
                for place in _find(elf, offset, size, trampoline.code):
                    address = int(elf.segments["vaddr"][number]) + place
                    if address % machine.code_alignment == 0 and address <= _LAST:
                        found.append((address, kind))
    return sorted(found)[:_MOST]


def _find(elf: ElfFile, offset: int, size: int, code: bytes) -> Iterator[int]:
    """Where in a part of a file these bytes are; only a piece of it is in memory at a time."""
    for start in range(0, size, _PIECE):
        contents = elf.data[offset + start : offset + min(start + _PIECE + len(code) - 1, size)]
        for match in re.finditer(re.escape(code), contents):
            yield start + match.start()
