"""What SFrame would have to carry besides to replace `.eh_frame`: exceptions, and all other registers.

SFrame finds callers and nothing else. A replacement would also have to say how exceptions are handled and where each
callee-saved register is. What is assumed, for the functions that version 3 says:

* A function with a personality routine or a language-specific data area (LSDA) gets 1 byte that names the routine, and
  if it has an LSDA 4 bytes that point to it. Every CIE with a routine gets 4 bytes that point to that.
* Registers stand in the rows, as in flex rows: 1 byte that counts them, and for each a control word and a word with
  the offset (or register), of 1, 2 or 4 bytes as the largest in the row needs. An expression stands behind its words.
* Where the registers change and nothing else does, a row is added, with start, info byte and words of the one before.
* `numbered_bytes` instead of `register_bytes`: every distinct set of rules is kept once, and 2 bytes in a row name it.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U64, Bools, changes, marked
from walkback.base.dataclass import dataclass
from walkback.dwarf.frames import Frames
from walkback.dwarf.others import SideTable, side_table
from walkback.sections.derive import Derived

PERSONALITY_BYTES = 1
LSDA_BYTES = 4
ROUTINE_BYTES = 4
COUNT_BYTES = 1
NUMBER_BYTES = 2
_CONTROL_SHIFT = 3


@dataclass(slots=True)
class Replacement:
    """What would be added to version 3."""

    personality_functions: int = 0
    """The number of functions with a personality routine."""
    lsda_functions: int = 0
    """The number of functions with data for exceptions."""
    exception_bytes: int = 0
    """The bytes for these."""
    register_functions: int = 0
    """The number of functions with rules of other registers."""
    register_rows: int = 0
    """The number of rows with rules of other registers, with those that are added."""
    added_rows: int = 0
    """The number of rows that are added for them."""
    added_row_bytes: int = 0
    """The bytes of these rows."""
    register_bytes: int = 0
    """The bytes of the rules of other registers."""
    sets: int = 0
    """The number of distinct sets of rules of other registers."""
    numbered_bytes: int = 0
    """The bytes of these rules if the sets are numbered."""

    @property
    def total(self) -> int:
        """All bytes, with the registers in the rows."""
        return self.exception_bytes + self.added_row_bytes + self.register_bytes

    @property
    def numbered_total(self) -> int:
        """All bytes, with the sets numbered."""
        return self.exception_bytes + self.added_row_bytes + self.numbered_bytes


def replacement_of(made: Derived) -> Replacement:
    """Measure it beside the section that was derived."""
    found = Replacement()
    said = marked(made.table.range_origin, len(made.read.faults))
    said[[one.fde for one in made.uncovered]] = False
    before = 0
    for source in made.read.frame_sources:  # they come first
        covered = said[before : before + len(source.frames.fdes)]
        before += len(covered)
        _add_exceptions(found, source.frames, covered)
        _add_registers(found, source.frames, covered, made)
    return found


def _add_exceptions(found: Replacement, frames: Frames, covered: Bools) -> None:
    if not covered.any():
        return
    cie = frames.fdes.cie[covered]
    personality, lsda = frames.cies.personality[cie] >= 0, frames.fdes.lsda[covered] > 0
    routines = int(marked(cie[personality], len(frames.cies)).sum())
    found.personality_functions += int(personality.sum())
    found.lsda_functions += int(lsda.sum())
    found.exception_bytes += int((personality | lsda).sum()) * PERSONALITY_BYTES
    found.exception_bytes += int(lsda.sum()) * LSDA_BYTES + routines * ROUTINE_BYTES


def _add_registers(found: Replacement, frames: Frames, covered: Bools, made: Derived) -> None:
    others = side_table(frames)
    owner = np.repeat(np.arange(len(frames.fdes)), frames.fdes.rows)
    new_rule = changes(owner, frames.row_rule)
    new_set = np.zeros(len(owner), np.bool_)
    new_set[1:] = others.row_set[1:] != others.row_set[:-1]
    inside = covered[owner] & (frames.row_offset < frames.fdes.size[owner])
    added = inside & new_set & ~new_rule
    changed = inside & (new_rule | new_set) & (others.row_set > 0)
    numbers = others.row_set[changed]
    costs = set_bytes(others)
    used = np.flatnonzero(marked(numbers, len(others)))
    found.register_functions += int(marked(owner[inside & (others.row_set > 0)], len(frames.fdes)).sum())
    found.register_rows += int(changed.sum())
    found.added_rows += int(added.sum())
    places = frames.fdes.start[owner[added]] + frames.row_offset[added]
    found.added_row_bytes += _row_bytes_at(made, places, frames.code_section[owner[added]])
    found.register_bytes += int(costs[numbers].sum())
    found.sets += len(used)
    found.numbered_bytes += NUMBER_BYTES * len(numbers) + int(costs[used].sum())


def set_bytes(others: SideTable) -> I64:
    """Bytes of each set in a row."""
    operand = others.operand.copy()
    expressions = np.flatnonzero(others.is_expression())
    operand[expressions] = [len(others.expression(place)) for place in operand[expressions].tolist()]
    size = np.ones(len(operand), np.int64)
    for width in (1, 2):
        limit = 1 << (8 * width - 1)
        wide = (operand < -limit) | (operand >= limit) | (others.register >= 1 << (8 * width - _CONTROL_SHIFT))
        size[wide] = 2 * width
    owner = np.repeat(np.arange(len(others)), np.diff(others.first))
    largest = np.ones(len(others), np.int64)
    np.maximum.at(largest, owner, size)
    count = np.diff(others.first)
    blocks = np.zeros(len(others), np.int64)
    np.add.at(blocks, owner[expressions], operand[expressions])
    return np.where(count > 0, COUNT_BYTES + 2 * largest * count + blocks, 0)


def _row_bytes_at(made: Derived, places: U64, sections: np.ndarray) -> int:
    """Bytes of the rows of the derived section that hold at these addresses."""
    section, found = made.section, 0
    order = np.argsort(sections, kind="stable")
    border = np.flatnonzero(np.diff(sections[order])) + 1
    for chosen in np.split(order, border) if len(order) else []:
        ranges, rows = made.read_back.find_many(places[chosen], section=int(sections[chosen[0]]))
        there = rows >= 0
        found += int(section.functions.start_size[ranges[there]].sum())
        found += int(section.shapes.length[section.row_shape[rows[there]]].sum())
    return found
