"""Whether a consumer would load a section, and why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from walkback.elf import layout as elf_layout
from walkback.errors import UnreadableError
from walkback.sframe import layout
from walkback.sframe.check.findings import Findings
from walkback.sframe.files import Piece, Source
from walkback.sframe.section import Section

_UNREADABLE: Final = {
    "function-fre-type",
    "function-attribute",
    "row-cut-off",
    "row-word-size",
    "row-range",
    "row-extra-words",
    "flex-words",
}
"""Findings about rows that make a consumer give up on them."""


def check_linux(source: Source, piece: Piece, found: Findings) -> None:
    """Linux, `kernel/unwind/sframe.c` as posted in 2026, with CONFIG_SFRAME_VALIDATION."""
    section = piece.section
    if section.version != 3:
        found.add("linux-version", f"this is version {section.version}", offset=2)
    wanted = layout.F_FDE_SORTED | layout.F_FDE_FUNC_START_PCREL
    if section.flags != wanted:
        found.add("linux-flags", f"the flags are {section.flags:#x}, not {wanted:#x}", offset=3)
    if section.auxiliary:
        found.add("linux-auxiliary", f"an auxiliary header of {len(section.auxiliary)} bytes", offset=7)
    if not section.num_fdes or not section.num_fres:
        message = f"{section.num_fdes} functions, {section.num_fres} rows"
        found.add("linux-empty", message, offset=8)
    if section.abi_arch == layout.ABI_AARCH64_ENDIAN_BIG or section.machine is None:
        found.add("linux-machine", f"ABI {section.abi_arch}", offset=4)
    if section.fre_start < section.fde_start + section.num_fdes * section.fde_size:
        found.add("linux-layout", "the rows do not come after the index", offset=0x18)
    _rising(section, found)
    _follow(found, "linux-rows", {*_UNREADABLE, "row-order"})
    _follow(found, "linux-flex", {"flex-cfa", "function-type"})
    _segment(source, found, "linux-segment")


def check_glibc(source: Source, piece: Piece, found: Findings) -> None:
    """The GNU C library 2.42 and later, configured with --enable-sframe."""
    section = piece.section
    if section.version != 2:
        found.add("glibc-version", f"this is version {section.version}", offset=2)
    if not section.sorted:
        found.add("glibc-sorted", "the flag SORTED is not set", offset=3)
    if section.machine is None or layout.ABI_BYTE_ORDERS[section.abi_arch] != section.byteorder:
        found.add("glibc-machine", f"ABI {section.abi_arch}, stored {section.byteorder}-endian", offset=4)
    _follow(found, "glibc-rows", _UNREADABLE)
    _segment(source, found, "glibc-segment")


def check_gnu_ld(source: Source, piece: Piece, found: Findings) -> None:
    """GNU ld 2.46 and later, as an input of a link."""
    section, elf = piece.section, source.elf
    if elf is None or not elf.is_relocatable:
        found.add("gnu-ld-object", "this is not a section of a relocatable file")
    elif source.index is not None:
        kind = int(elf.sections["type"][source.index])
        if kind != elf_layout.SHT_GNU_SFRAME:
            found.add("gnu-ld-type", f"the section's type is {kind:#x}, not SHT_GNU_SFRAME (0x6ffffff4)")
        # The linker takes all relocations of the ELF section for those of the one header that it reads.
        if {"relocation-missing", "relocation-stray"} & found.broken:
            found.add("gnu-ld-relocations", "the relocations do not match the functions one to one")
    if section.version != 3:
        found.add("gnu-ld-version", f"this is version {section.version}", offset=2)
    if not section.pcrel:
        found.add("gnu-ld-pcrel", "the flag PCREL is not set", offset=3)
    machine = section.machine
    if machine is None or (elf is not None and machine.elf_machine != elf.machine):
        found.add("gnu-ld-abi", f"ABI {section.abi_arch}", offset=4)
    _follow(found, "gnu-ld-decode", {*_UNREADABLE, "header-flags", "sections-overlap"})


def check_consumer(consumer: str, source: Source, piece: Piece | None, found: Findings) -> None:
    """Add why a consumer would not load the section; `piece` is the first, the only one that readers see."""
    if piece is not None:
        CONSUMERS[consumer](source, piece, found)
    elif len(source.data):
        found.add(f"{consumer}-unreadable", "the header cannot be read")
    elif consumer == "linux":
        found.add("linux-empty", "the section is empty")
    elif consumer == "glibc":
        _segment(source, found, "glibc-segment")


CONSUMERS: dict[str, Callable[[Source, Piece, Findings], None]] = {
    "linux": check_linux,
    "glibc": check_glibc,
    "gnu-ld": check_gnu_ld,
}


def _rising(section: Section, found: Findings) -> None:
    start = section.code_address

    def note(function: int) -> None:
        message = f"it starts at {int(start[function]):#x}, the one before it at {int(start[function - 1]):#x}"
        found.add("linux-order", message, offset=section.field_offset(function), function=function)

    found.add_all("linux-order", np.flatnonzero(start[1:] <= start[:-1]) + 1, note)


def _follow(found: Findings, code: str, causes: set[str]) -> None:
    """One finding of the consumer for what the rules found already."""
    present = sorted(causes & found.broken_first)
    if present:
        found.add(code, f"see {', '.join(present)}")


def _segment(source: Source, found: Findings, code: str) -> None:
    elf = source.elf
    if elf is None:
        return
    if elf.is_relocatable:
        found.add(code, "a relocatable file is not loaded")
        return
    try:
        there = bool((elf.segments["type"] == elf_layout.PT_GNU_SFRAME).any())
    except UnreadableError:
        there = False
    if not there:
        found.add(code, "there is no PT_GNU_SFRAME")
