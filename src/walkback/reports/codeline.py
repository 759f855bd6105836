"""Code on one line: the executable sections of a file one after the other, each as long as it is.

Addresses leave gaps, and in object files all sections begin at 0. On the line there is nothing but code.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I32, I64, U64, Bools
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout

_NEAR = 4096
"""Functions outside of all sections stand in one stretch up to such a gap."""


@dataclass(slots=True)
class CodeLine:
    """Stretches of code in their order on the line."""

    section: I32
    """The index of each stretch's section; -1 where there is none."""
    start: U64
    """Address, or in object files offset."""
    size: U64
    text_of: I64
    """For each function the number of its stretch."""


def code_line(elf: ElfFile, section: I32, start: U64, size: U64) -> CodeLine:
    """The line for functions that are sorted by section and start.

    A file may have executable sections that no function is in, and functions that no section has.
    """
    known = _sections(elf)
    home = _home(elf, known, section, start)
    lost = np.flatnonzero(home < 0)
    own = _clusters(section[lost], start[lost], size[lost])
    home[lost] = len(known.section) + own.text_of
    all_section = np.concatenate((known.section, own.section))
    all_start, all_size = np.concatenate((known.start, own.start)), np.concatenate((known.size, own.size))
    order = np.lexsort((all_start, all_section)) if elf.is_relocatable else np.argsort(all_start, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return CodeLine(all_section[order], all_start[order], all_size[order], place[home])


def _sections(elf: ElfFile) -> CodeLine:
    """What the headers say is code: sections, or where there are none segments."""
    nothing = np.zeros(0, np.int64)
    if not len(elf.sections):
        start, end = elf.executable_ranges()
        return CodeLine(np.full(len(start), -1, np.int32), start, end - start, nothing)
    wanted = np.uint64(elf_layout.SHF_ALLOC | elf_layout.SHF_EXECINSTR)
    chosen = np.flatnonzero((elf.sections["flags"] & wanted == wanted) & (elf.sections["size"] > 0))
    headers = elf.sections[chosen]
    start = np.zeros(len(chosen), np.uint64) if elf.is_relocatable else headers["addr"].astype(np.uint64)
    size = np.minimum(headers["size"].astype(np.uint64), ~start)
    return CodeLine(chosen.astype(np.int32), start, size, nothing)


def _home(elf: ElfFile, known: CodeLine, section: I32, start: U64) -> I64:
    """The number of the stretch that has each function's start; -1 if none has it."""
    if not len(known.section):
        return np.full(len(start), -1, np.int64)
    if elf.is_relocatable:
        number = np.searchsorted(known.section, section).clip(max=len(known.section) - 1)
        inside: Bools = (known.section[number] == section) & (start < known.size[number])
        return np.where(inside, number, -1)
    order = np.argsort(known.start, kind="stable")
    place = np.searchsorted(known.start[order], start, "right") - 1
    number = order[place.clip(min=0)]
    inside = (place >= 0) & (start - known.start[number] < known.size[number])
    return np.where(inside, number, -1)


def _clusters(section: I32, start: U64, size: U64) -> CodeLine:
    """Stretches made of functions that stand near each other."""
    if not len(start):
        return CodeLine(section, start, size, np.zeros(0, np.int64))
    last = start + np.minimum(np.maximum(size, np.uint64(1)) - np.uint64(1), ~start)
    new = np.ones(len(start), np.bool_)
    new[1:] = (section[1:] != section[:-1]) | (start[1:] < start[:-1])
    new[1:] |= start[1:] - np.minimum(last[:-1], start[1:]) > _NEAR
    first = np.flatnonzero(new)
    end = np.maximum.reduceat(last, first)
    return CodeLine(section[first], start[first], end - start[first] + np.uint64(1), np.cumsum(new) - 1)
