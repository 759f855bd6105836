"""Functions of a file that a table does not describe."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import MACHINES
from walkback.base.arrays import U64, is_one_of
from walkback.base.dataclass import dataclass
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import Flow
from walkback.elf import layout
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover

_GOING_ON = (Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.CALL_INDIRECT, Flow.SYSTEM)


@dataclass(frozen=True, slots=True)
class Undescribed:
    """A function, by its symbol, in whose code the table has no rule, or none for its last part: a walk ends there."""

    function: str
    """The symbol."""
    start: int
    """The address where that code begins; in an object, the offset in its section."""
    size: int
    """Its bytes."""
    section: str | None
    """In an object, the section of the code."""


def undescribed(proof: Proof, prover: Prover) -> list[Undescribed]:
    """These functions by address; of several names for one the first."""
    elf, found = prover.elf, dict[int, Undescribed]()
    executable = elf.sections["flags"] & layout.SHF_EXECINSTR != 0
    for index in elf.sections_of_type(layout.SHT_SYMTAB) + elf.sections_of_type(layout.SHT_DYNSYM):
        symbols = elf.symbols(index)
        chosen = is_one_of(symbols["info"] & 15, layout.STT_FUNC, layout.STT_GNU_IFUNC) & (symbols["size"] > 0)
        chosen &= symbols["section"] < len(executable)
        chosen[chosen] = executable[symbols["section"][chosen]]
        symbols = symbols[chosen]
        places = symbols["value"].astype(np.uint64), symbols["section"].astype(np.int32)
        address, size = prover.image.addresses(*places), symbols["size"].astype(np.uint64)
        described = _described(proof, address, size)
        bare = described < size
        names = elf.strings(int(elf.sections["link"][index]), symbols["name_offset"][bare].tolist())
        stretches = np.stack((address, described, size), axis=1)[bare].tolist()
        for name, (begin, known, whole) in zip(names, stretches, strict=True):
            at, length = begin + known, whole - known
            if known and not _goes_on(proof, prover, begin, known):
                continue
            section, start = prover.section_of(at)
            found.setdefault(at, Undescribed(name, start, length, elf.section_name(section) if section >= 0 else None))
    return [found[at] for at in sorted(found)]


def _goes_on(proof: Proof, prover: Prover, begin: int, size: int) -> bool:
    """Whether control goes on behind some code, which may not be so where data is behind it."""
    place = int(prover.image.places(np.array([begin], np.uint64), np.array([size], np.int64))[0])
    if place < 0:
        return False
    rows = listing(MACHINES.index(proof.machine), bytes(prover.image.data[place : place + size]), begin)
    return int(rows[-1, COLUMNS.index("flow")]) in _GOING_ON


def _described(proof: Proof, address: U64, size: U64) -> U64:
    """How many bytes of each stretch of code are before the end of the last rule in it."""
    absent, ranges = proof.absent, proof.ranges
    start = np.concatenate((ranges.start, absent[:, 0], np.zeros(1, np.uint64)))
    end = start + np.concatenate((ranges.size.astype(np.uint64), absent[:, 1], np.zeros(1, np.uint64)))
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    last = np.searchsorted(start, address + size, "left") - 1
    described: U64 = np.maximum(np.minimum(end[np.maximum(last, 0)], address + size), address) - address
    return described
