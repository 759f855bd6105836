"""Relocations that stand where the start fields were before a linker merged the sections of several objects.

GNU ld -r does so up to 2.44. It keeps functions and relocations in order, so that they still belong together one by
one. That is believed only if the call frame information says of each function that it has this place and size.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import Bools
from walkback.elf import ElfFile
from walkback.elf.layout import NO_RELOCATION
from walkback.sections.pairs import all_frames
from walkback.sframe.batch import SectionBatch
from walkback.sframe.files import Source


def place_in_order(source: Source, found: list[SectionBatch]) -> bool:
    """Give the functions of a merged section their places by the order of the relocations, if that is right."""
    assert source.elf is not None
    if len(found) != 1 or len(found[0].position) != 1:
        return False
    section, size = found[0].section, found[0].section.functions.size
    entries, targets = source.relocations, source.relocation_targets
    idle = [kind for machine, kind in NO_RELOCATION if machine == source.elf.machine]
    chosen = ~np.isin(entries["type"], idle)
    if int(chosen.sum()) != len(size) or not entries["has_addend"].all() or (targets["section"][chosen] <= 0).any():
        return False
    code_section = targets["section"][chosen].astype(np.int32)
    code_address = (targets["value"] + entries["addend"])[chosen].view(np.uint64)
    if not _known(source.elf, code_section, code_address, size).all():
        return False
    section.code_section, section.code_address = code_section, code_address
    source.strays.clear()
    return True


def _known(elf: ElfFile, section: np.ndarray, start: np.ndarray, size: np.ndarray) -> Bools:
    """Which functions the call frame information has, with the same place and size."""
    table = all_frames(elf)
    if table is None:
        return np.zeros(len(start), np.bool_)
    shape = np.dtype([("section", "i8"), ("start", "u8"), ("size", "u8")])
    known, wanted = np.zeros(len(table), shape), np.zeros(len(start), shape)
    known["section"], known["start"], known["size"] = table.range_section, table.range_start, table.range_size
    wanted["section"], wanted["start"], wanted["size"] = section, start, size
    return np.isin(wanted, known)
