"""Where functions begin in code without a table: by symbols, by calls, and behind padding where a pointer leads.

Only starts are found here. Whether each is a function that is entered as the ABI says, `evidence` decides by its code.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AARCH64
from walkback.base.arrays import I64, U64, Bools, are_among, distinct, is_one_of, ranked
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile, layout, loaded_addresses
from walkback.elf.dynamic import dynamic_entries
from walkback.elf.stubs import loaded_words
from walkback.proof._code import Code
from walkback.proof._scan import Scan, bits_at, scan
from walkback.proof._starts import beginnings
from walkback.proof.entries import pointers
from walkback.proof.image import Image
from walkback.proof.known import KnownCode
from walkback.proof.numbering import KEPT
from walkback.proof.patched import mark_ways
from walkback.proof.prove import Prover
from walkback.proof.ranges import Pieces

_ENTRY = 64
"""Bytes of the code that a program begins with."""
_ARRAYS = (layout.SHT_INIT_ARRAY, layout.SHT_FINI_ARRAY, layout.SHT_PREINIT_ARRAY)
LAST = frozenset({"__stack_chk_fail"})
"""Functions whose calls compilers put at the end of others; they do not come back."""
_PADDING = np.uint64(16)
"""Bytes between two functions that are described; fewer are padding."""
_ALIGNED = np.uint64(16)
"""Bytes that functions are aligned to."""
_SAVES = 2
_LIKELY = 3
"""Of a place where code begins: it saves registers, and is behind padding, too."""
_SELDOM = 8
"""Less than one in this number of calls of a function that comes back has other code behind it."""
_LINKAGE = (".plt", ".iplt")
"""Sections whose names begin so have stubs, and no functions."""


class Stretches:
    """Code that is not described, as disjoint ranges of addresses in order."""

    def __init__(self, start: U64, end: U64) -> None:
        some = end > start
        self.start, self.end = start[some], end[some]

    def without(self, start: U64, end: U64) -> Stretches:
        """What is left of it."""
        order = np.argsort(start, kind="stable")
        start, end = start[order], np.maximum.accumulate(end[order])
        edges = distinct(np.concatenate((self.start, self.end, start, end)))
        low, high = edges[:-1], edges[1:]
        last = np.searchsorted(start, low, "right") - 1
        covered = (last >= 0) & (end[np.maximum(last, 0)] > low) if len(start) else np.zeros(len(low), np.bool_)
        left = self.holds(low) & ~covered
        return Stretches(low[left], high[left])

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return int((self.end - self.start).sum())

    def holds(self, addresses: U64) -> Bools:
        """Which addresses are in it."""
        if not len(self.start):
            return np.zeros(len(addresses), np.bool_)
        number = np.searchsorted(self.start, addresses, "right") - 1
        found: Bools = (number >= 0) & (addresses < self.end[np.maximum(number, 0)])
        return found

    def cut(self, places: U64) -> tuple[U64, I64]:
        """The starts and sizes of its pieces, if each of these places begins one."""
        start = distinct(np.concatenate((self.start, places[self.holds(places)])))
        number = np.searchsorted(self.start, start, "right") - 1
        end = np.minimum(np.append(start[1:], np.uint64(2**64 - 1)), self.end[number])
        return start, (end - start).astype(np.int64)


def undescribed_code(prover: Prover, start: U64, size: U64) -> Stretches:
    """The code of a file without ranges that are described, and without linkage stubs."""
    elf, image = prover.elf, prover.image
    code = image.executable != 0
    found = Stretches(image.start[code], image.end[code])
    stubs = [number for number, name in enumerate(elf.section_names()) if name.startswith(_LINKAGE)]
    sections = elf.sections[stubs]
    at = image.addresses(sections["addr"].astype(np.uint64), np.array(stubs, np.int32))
    left = found.without(
        np.concatenate((start, at)), np.concatenate((start + size, at + sections["size"].astype(np.uint64)))
    )
    is_more = left.end - left.start >= _PADDING if len(start) else np.ones(len(left.start), np.bool_)
    return Stretches(left.start[is_more], left.end[is_more])


@dataclass(slots=True)
class Starts:
    """Where functions may begin."""

    sure: U64
    """By a symbol, by a call, or because the code takes their address; and the entry of the program."""
    outside: U64
    """Those that the C library calls."""
    named: U64
    """Those that have the symbol of a function."""
    taken: U64
    """Those whose address the code takes."""
    others: U64
    """Places behind code that does not go on, rising."""
    framing: U64
    """Those that make a frame: behind a call that does not come back, or where only data leads."""
    pointed: Bools
    """To which of the others data points."""
    within: U64
    """Those behind padding that are none, for the symbol of a function says that they are in it."""
    padded: Bools
    """To which of the others nothing jumps, behind padding, where compilers let functions begin."""
    likely: Bools
    """Which of these save registers as functions do."""
    seen: Scan
    """What a look at the code sees."""


def function_starts(prover: Prover, stretches: Stretches) -> Starts:
    """Where functions may begin in stretches of code."""
    elf, image = prover.elf, prover.image
    sections, places = prover.symbols.functions()
    named = image.addresses(places, sections)
    entry = np.array([elf.entry] if begins_at_entry(elf) else [], np.uint64)
    starts = np.concatenate((named, entry))
    starts = starts[stretches.holds(starts)]
    start, size = stretches.cut(starts)
    pieces, code = Pieces(start, size, image.places(start, size)), Code(image, KnownCode())
    seen = scan(code, image, pieces, prover.machine.sp)
    mark_ways(seen, image, prover.patched)
    kept = sum(1 << one for one in KEPT[prover.machine])
    code = Code(image, KnownCode(targets=seen.targets, brief=seen.brief))
    final = prover.called_as(LAST)
    found = beginnings(
        code, seen.targets, pieces, prover.machine.sp, prover.machine.ra, kept, final, _coming_back(image, seen)
    )
    called = _addresses(image, seen.called)
    is_within = _within(found[:, 0], named, prover.symbols.function_sizes()) & ~are_among(found[:, 0], called)
    within, found = found[is_within, 0], found[~is_within]
    behind = found[:, 0].copy()
    outside = _called_from_outside(prover, code, pieces)
    outside = outside[are_among(outside, behind)]
    called = np.concatenate((called, outside))
    taken = are_among(behind, _addresses(image, seen.taken))
    alone = ~bits_at(seen.targets, image.places(behind, np.ones(len(behind), np.int64)))
    pointed = np.zeros(len(behind), np.bool_)
    if not elf.is_relocatable:
        pointed = are_among(behind, pointers(elf, behind))
    may_begin = alone & (behind % _ALIGNED == 0)
    # What the program begins with is no part of a function.
    after = behind[behind > entry[0]][:1] if len(entry) else entry
    return Starts(
        sure=distinct(np.concatenate((starts, called, behind[taken], after))),
        outside=outside,
        named=named[stretches.holds(named)],
        taken=behind[taken],
        others=behind,
        framing=behind[(found[:, 1] != 0) | (pointed & alone & (found[:, 2] & _SAVES != 0))],
        pointed=pointed,
        within=within,
        padded=may_begin & (found[:, 2] != 0),
        likely=may_begin & (found[:, 2] == _LIKELY),
        seen=seen,
    )


def _within(places: U64, start: U64, size: U64) -> Bools:
    """Which places are in functions, behind where they begin: no other begins there, even if something names it."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate((start + size)[order])
    last = np.searchsorted(start, places, "left") - 1
    within: Bools = (last >= 0) & ~are_among(places, start)
    within[within] = places[within] < end[last[within]]
    return within


def begins_at_entry(elf: ElfFile) -> bool:
    """Whether the file is a program, which begins at an address of its own; old linkers gave libraries one, too."""
    if elf.is_relocatable or elf.entry == 0:
        return False
    if elf.type == layout.ET_EXEC or (elf.segments["type"] == layout.PT_INTERP).any():
        return True
    _, entries = dynamic_entries(elf)
    return bool((entries["value"][entries["tag"] == layout.DT_FLAGS_1] & layout.DF_1_PIE).any())


def _called_from_outside(prover: Prover, code: Code, pieces: Pieces) -> U64:
    """What the C library calls: the function that the entry of a program names, and those of its arrays."""
    elf = prover.elf
    if elf.is_relocatable:
        return np.zeros(0, np.uint64)
    begins = np.flatnonzero(pieces.start == np.uint64(elf.entry)) if begins_at_entry(elf) else np.zeros(0, np.int64)
    entry = Pieces(pieces.start[begins], np.minimum(pieces.size[begins], _ENTRY), pieces.pos[begins])
    seen, words = scan(code, prover.image, entry, prover.machine.sp), loaded_addresses(elf)
    named = seen.named
    if prover.machine is AARCH64:  # where `main` is goes from the global offset table into the first argument
        for pos, size, address in zip(entry.pos.tolist(), entry.size.tolist(), entry.start.tolist(), strict=True):
            named = loaded_words(prover.image.data[pos : pos + size], address, 0, 0)[1]
    found = [_addresses(prover.image, seen.taken), words.value[are_among(words.place, named)]]
    for number in np.flatnonzero(is_one_of(elf.sections["type"], *_ARRAYS)).tolist():
        contents = np.frombuffer(elf.section_data(number), np.uint8).copy()
        words.write(contents, int(elf.sections["addr"][number]), elf.byteorder)
        kind = "<u8" if elf.byteorder == "little" else ">u8"
        found.append(contents[: len(contents) // 8 * 8].view(kind).astype(np.uint64))
    return np.concatenate(found)


def _coming_back(image: Image, seen: Scan) -> U64:
    """The functions that come back, as their calls show: behind many of them is code that only they can lead to."""
    _, target, behind = seen.calls.T
    behind = behind.astype(np.int64)
    # Where other code jumps, or functions may begin, they show nothing.
    is_clear = (behind == 0) | (~bits_at(seen.targets, behind) & (image.at(behind) % _ALIGNED != 0))
    found, number = ranked(target[is_clear])
    return found[np.bincount(number, behind[is_clear] == 0) * _SELDOM < np.bincount(number)]


def _addresses(image: Image, bits: np.ndarray) -> U64:
    """The addresses of places in the image that have a bit."""
    some = np.flatnonzero(bits)
    within = np.flatnonzero(np.unpackbits(bits[some], bitorder="little"))
    return image.at(some[within >> 3] * 8 + (within & 7))
