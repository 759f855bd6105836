"""The instructions of procedure linkage tables: where their entries begin, and which word each of them jumps to.

From the psABI supplements of AMD64, AArch64 and s390x, and from what GNU ld, lld and mold write.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, are_among, first_of_each
from walkback.elf import layout

SLOT_KINDS = {
    layout.EM_X86_64: (6, 7, 37),
    layout.EM_AARCH64: (1025, 1026, 1032),
    layout.EM_S390: (10, 11, 61),
}
"""The relocations that fill words with addresses of functions: GLOB_DAT, JUMP_SLOT and IRELATIVE."""
_BTI_C, _AUTIA1716 = 0xD503245F, 0xD503219F
_BLOCK = 1 << 20
"""Bytes of code that are looked through at once."""
_ENDBR, _NUMBER, _BND = b"\xf3\x0f\x1e\xfa", b"\x41\xbb", b"\xf2"
_BEFORE = ((), ((1, _BND),), ((4, _ENDBR),), ((5, _ENDBR), (1, _BND)), ((6, _NUMBER),), ((10, _ENDBR), (6, _NUMBER)))
"""What stands before the jump of an entry of AMD64, and how far: marks, and the number of the entry."""
_SHORT = b"\x66\x90"
"""What fills an entry of 8 bytes."""
_TRAPS = b"\xcc" * 10
"""What fills one of 16 bytes where mold wrote it."""
_BEHIND = (_SHORT, b"\x68", b"\xcc", b"\x0f\x1f\x44\0\0", b"\x66\x0f\x1f\x44\0\0")
"""`push` of the number of the entry, or what fills it."""
_LOAD_AND_JUMP = b"\xe3\x10\x10\x00\x00\x04\x07\xf1\x0d\x10"
"""`lg %r1,0(%r1)`, `br %r1`, and `basr %r1,%r0`, with which the function is looked up."""


class Stubs(NamedTuple):
    """Entries of a procedure linkage table."""

    start: U64
    slot: U64
    """The address of the word in the global offset table."""


def stubs_of(machine: int, contents: U8, address: int, entry_size: int) -> Stubs:
    """The entries in a section that has nothing else."""
    if machine == layout.EM_X86_64:
        return _amd64(contents, address, entry_size if entry_size in {8, 16, 32} else 16)
    return _aarch64(contents, address) if machine == layout.EM_AARCH64 else _s390x(contents, address)


def stubs_in_code(machine: int, contents: U8, address: int, slots: U64) -> tuple[Stubs, I64]:
    """What looks like entries among other code, for each of these words at most one, and the size of each."""
    if machine == layout.EM_X86_64:
        found, size = _amd64_in_code(contents, address)
    elif machine == layout.EM_AARCH64:
        # A block ends with the first instruction of the next.
        blocks = [
            _aarch64(contents[at : at + _BLOCK + 4], address + at) for at in range(0, max(len(contents), 1), _BLOCK)
        ]
        found = Stubs(*(np.concatenate(column) for column in zip(*blocks, strict=True)))
        at = (found.start - np.uint64(address)).astype(np.int64)
        long = _has(contents, at, _BTI_C.to_bytes(4, "little"))
        size = np.where(long | _has(contents, at + 12, _AUTIA1716.to_bytes(4, "little")), 24, 16)
    else:
        whole = contents[: len(contents) & ~1].reshape(-1, 2)
        at = np.flatnonzero((whole[:, 0] == 0xC0) & (whole[:, 1] == 0x10)) * 2
        at = at[_has(contents, at + 6, _LOAD_AND_JUMP)]
        found, size = _larl(contents, at, address), np.full(len(at), 32)
    chosen = np.flatnonzero(are_among(found.slot, slots))
    _, first = first_of_each(found.slot[chosen])
    chosen = chosen[np.sort(first)]
    return Stubs(found.start[chosen], found.slot[chosen]), size[chosen]


def _has(contents: U8, places: I64, wanted: bytes) -> Bools:
    """Where these bytes stand."""
    found: Bools = (places >= 0) & (places + len(wanted) <= len(contents))
    for number, byte in enumerate(wanted):
        found[found] = contents[places[found] + number] == byte
    return found


def _signed(words: I64, bits: int) -> I64:
    """Numbers of `bits` bits, with their sign."""
    return (words ^ (1 << (bits - 1))) - (1 << (bits - 1))


def _jumps(contents: U8, address: int) -> tuple[I64, U64]:
    """Where `jmp *word(%rip)` stands, and the addresses of the words."""
    head = max(len(contents) - 5, 0)
    at = np.flatnonzero((contents[:head] == 0xFF) & (contents[1 : head + 1] == 0x25)).astype(np.int64)
    distance = np.zeros(len(at), np.int64)
    for byte in range(4):
        distance |= contents[at + 2 + byte].astype(np.int64) << (8 * byte)
    return at, (at + 6 + _signed(distance, 32)).astype(np.uint64) + np.uint64(address)


def _amd64(contents: U8, address: int, entry_size: int) -> Stubs:
    """`jmp *word(%rip)` in each entry, whatever stands before it."""
    at, slot = _jumps(contents, address)
    start, first = first_of_each(at // entry_size * entry_size)
    return Stubs(start.astype(np.uint64) + np.uint64(address), slot[first])


def _amd64_in_code(contents: U8, address: int) -> tuple[Stubs, I64]:
    """The same where an entry begins at a multiple of 8, and has nothing else."""
    at, slot = _jumps(contents, address)
    behind = np.logical_or.reduce([_has(contents, at + 6, one) for one in _BEHIND])
    at, slot = at[behind], slot[behind]
    start = np.full(len(at), -1)
    for marks in _BEFORE:
        begin = at - max((away for away, _ in marks), default=0)
        fits = (start < 0) & ((begin + address % 8) % 8 == 0)
        for away, one in marks:
            fits &= _has(contents, at - away, one)
        start[fits] = begin[fits]
    traps = _has(contents, at + 6, _TRAPS[:2]) & (start == at) & ~_has(contents, at + 6, _TRAPS)
    size = np.where(_has(contents, at + 6, _SHORT) | traps, 8, 16)
    # A function can end so, too; but something stands before that.
    alone = ~are_among(start - 8, start) & ~are_among(start - 16, start) & (start > 0) & (contents[start - 1] != 0)
    is_entry = (start >= 0) & ~((size == 8) & alone)
    return Stubs(start[is_entry].astype(np.uint64) + np.uint64(address), slot[is_entry]), size[is_entry]


def _aarch64(contents: U8, address: int) -> Stubs:
    """`adrp x16, page` and `ldr x17, [x16, #word]`; `bti c` may stand before them."""
    at, slot = loaded_words(contents, address, 16, 17)
    words = contents[: len(contents) & ~3].view("<u4")
    marked = (at > 0) & (words[at - 1] == _BTI_C)
    here = (at * 4).astype(np.uint64) + np.uint64(address)
    return Stubs(here - np.where(marked, np.uint64(4), np.uint64(0)), slot)


def loaded_words(contents: U8, address: int, base: int, target: int) -> tuple[I64, U64]:
    """The numbers of instructions of AArch64 that load a word with the next one, and the addresses of these words.

    The first puts a page into the register `base`, the second the word into `target`.
    """
    words = contents[: len(contents) & ~3].view("<u4").astype(np.int64)
    adrp, ldr = words[:-1], words[1:]
    at = np.flatnonzero(
        ((adrp & 0x9F00001F) == 0x90000000 | base) & ((ldr & 0xFFC003FF) == 0xF9400000 | base << 5 | target)
    )
    pages = _signed((adrp[at] >> 29 & 3) | (adrp[at] >> 5 & 0x7FFFF) << 2, 21)
    here = (at * 4).astype(np.uint64) + np.uint64(address)
    slot = (here & ~np.uint64(0xFFF)) + (pages << 12).astype(np.uint64)
    slot += ((ldr[at] >> 10 & 0xFFF) * 8).astype(np.uint64)
    return at, slot


def _s390x(contents: U8, address: int) -> Stubs:
    """`larl %r1, word` begins each entry of 32 bytes."""
    at = np.arange(0, len(contents) - 5, 32, dtype=np.int64)
    return _larl(contents, at[(contents[at] == 0xC0) & (contents[at + 1] == 0x10)], address)


def _larl(contents: U8, at: I64, address: int) -> Stubs:
    """Entries that begin with it."""
    distance = np.zeros(len(at), np.int64)
    for byte in range(4):
        distance = distance << 8 | contents[at + 2 + byte].astype(np.int64)
    slot = (at + 2 * _signed(distance, 32)).astype(np.uint64) + np.uint64(address)
    return Stubs(at.astype(np.uint64) + np.uint64(address), slot)
