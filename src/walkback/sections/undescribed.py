"""Functions of a file that a table does not describe."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U64, Bools
from walkback.base.dataclass import dataclass
from walkback.elf import layout
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover


@dataclass(frozen=True, slots=True)
class Undescribed:
    """A function, by its symbol, in whose code the table has no rule: a walk ends there."""

    function: str
    """The symbol."""
    start: int
    """The address; in an object, the offset in its section."""
    size: int
    """The bytes of the function."""
    section: str | None
    """In an object, the section of the code."""


def undescribed(proof: Proof, prover: Prover) -> list[Undescribed]:
    """These functions by address; of several names for one the first."""
    elf, found = prover.elf, dict[int, Undescribed]()
    executable = elf.sections["flags"] & layout.SHF_EXECINSTR != 0
    for index in elf.sections_of_type(layout.SHT_SYMTAB) + elf.sections_of_type(layout.SHT_DYNSYM):
        symbols = elf.symbols(index)
        chosen = np.isin(symbols["info"] & 15, (layout.STT_FUNC, layout.STT_GNU_IFUNC)) & (symbols["size"] > 0)
        chosen &= symbols["section"] < len(executable)
        chosen[chosen] = executable[symbols["section"][chosen]]
        symbols = symbols[chosen]
        places = symbols["value"].astype(np.uint64), symbols["section"].astype(np.int32)
        address, size = prover.image.addresses(*places), symbols["size"].astype(np.uint64)
        bare = ~_is_described(proof, address, size)
        names = elf.strings(int(elf.sections["link"][index]), symbols["name_offset"][bare].tolist())
        for name, at, length in zip(names, address[bare].tolist(), size[bare].tolist(), strict=True):
            section, start = prover.section_of(at)
            found.setdefault(at, Undescribed(name, start, length, elf.section_name(section) if section >= 0 else None))
    return [found[at] for at in sorted(found)]


def _is_described(proof: Proof, address: U64, size: U64) -> Bools:
    """Which stretches of code have a rule somewhere."""
    absent, ranges = proof.absent, proof.ranges
    start = np.concatenate((ranges.start, absent[:, 0], np.zeros(1, np.uint64)))
    end = start + np.concatenate((ranges.size.astype(np.uint64), absent[:, 1], np.zeros(1, np.uint64)))
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    last = np.searchsorted(start, address + size, "left") - 1
    described: Bools = end[last.clip(min=0)] > address
    return described
