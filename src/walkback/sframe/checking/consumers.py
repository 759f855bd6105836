"""Whether a consumer would load a section, and why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from walkback.base.errors import UnreadableError
from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout
from walkback.sframe import layout
from walkback.sframe.checking.findings import Findings
from walkback.sframe.checking.walks import check_walk
from walkback.sframe.checking.witness import Witness
from walkback.sframe.consumers import CONSUMERS, GLIBC, GNU_LD, LINUX, LINUX_KERNEL, Consumer
from walkback.sframe.files import SFrameSection, Source
from walkback.sframe.rules import flex_pairs
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


def check_linux(source: Source, piece: SFrameSection, found: Findings) -> None:
    """Linux, `kernel/unwind/sframe.c` as posted in 2026, with CONFIG_SFRAME_VALIDATION."""
    section = piece.section
    _read_by_linux(LINUX, piece, found)
    if section.abi_arch == layout.ABI_AARCH64_ENDIAN_BIG or section.machine is None:
        found.add("linux-machine", f"ABI {section.abi_arch}", offset=4)
    _rising(section, found)
    _follow(found, "linux-code", {"function-outside-code"})
    if source.elf is not None and not source.elf.is_relocatable:
        texts = _executable_segments(source.elf)
        if texts > 1:
            found.add("linux-code", f"the file has {texts} executable segments, and Linux registers only one")
    _segment(source, found, "linux-segment")


def check_linux_kernel(_: Source, piece: SFrameSection, found: Findings) -> None:
    """The arm64 kernel, with the same reader, as posted in 2026."""
    section = piece.section
    _read_by_linux(LINUX_KERNEL, piece, found)
    if section.abi_arch != layout.ABI_AARCH64_ENDIAN_LITTLE:
        found.add("linux-kernel-machine", f"ABI {section.abi_arch}", offset=4)
    _follow(found, "linux-kernel-order", {"function-order"})


def _read_by_linux(consumer: Consumer, piece: SFrameSection, found: Findings) -> None:
    """What Linux wants wherever it reads a section."""
    section, name = piece.section, consumer.name
    if section.version != consumer.version:
        found.add(f"{name}-version", f"this is version {section.version}", offset=2)
    if section.flags & consumer.flags != consumer.flags:
        found.add(f"{name}-flags", f"the flags are {section.flags:#x}, without {consumer.flags:#x}", offset=3)
    if section.auxiliary:
        found.add(f"{name}-auxiliary", f"an auxiliary header of {len(section.auxiliary)} bytes", offset=7)
    if not section.num_fdes or not section.num_fres:
        found.add(f"{name}-empty", f"{section.num_fdes} functions, {section.num_fres} rows", offset=8)
    if section.fre_start < section.fde_end:
        found.add(f"{name}-layout", "the rows do not come after the index", offset=0x18)
    _follow(found, f"{name}-rows", {*_UNREADABLE, "row-order", "row-at-end", "function-block"})
    _follow(found, f"{name}-flex", {"flex-cfa", "function-type"})
    if section.version == 3 and any(
        (pair.control & layout.FLEX_UNUSED).any() for pair in flex_pairs(section.shapes)[0]
    ):
        found.add(f"{name}-flex", "a control word has unused bits set")


def check_glibc(source: Source, piece: SFrameSection, found: Findings) -> None:
    """The GNU C library 2.42 and later, configured with --enable-sframe."""
    section = piece.section
    if section.version != GLIBC.version:
        found.add("glibc-version", f"this is version {section.version}", offset=2)
    if not section.sorted:
        found.add("glibc-sorted", "the flag SORTED is not set", offset=3)
    _follow(found, "glibc-sorted", {"function-order", "function-overlap"})
    if section.fdeoff or section.freoff != section.num_fdes * section.fde_size:
        where = f"the index is {section.fdeoff:#x} and the rows are {section.freoff:#x} after the header"
        found.add("glibc-layout", where, offset=0x14)
    if section.machine not in GLIBC.machines or layout.ABI_BYTE_ORDERS[section.abi_arch] != section.byteorder:
        found.add("glibc-machine", f"ABI {section.abi_arch}, stored {section.byteorder}-endian", offset=4)
    _follow(found, "glibc-rows", {*_UNREADABLE, "row-order", "function-block"})
    _segment(source, found, "glibc-segment")


def check_gnu_ld(source: Source, piece: SFrameSection, found: Findings) -> None:
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
    if section.version != GNU_LD.version:
        found.add("gnu-ld-version", f"this is version {section.version}", offset=2)
    if not section.pcrel:
        found.add("gnu-ld-pcrel", "the flag PCREL is not set", offset=3)
    machine = section.machine
    if machine is None or (elf is not None and machine.elf_machine != elf.machine):
        found.add("gnu-ld-abi", f"ABI {section.abi_arch}", offset=4)
    _follow(found, "gnu-ld-decode", {*_UNREADABLE, "header-flags", "sections-overlap"})


def check_consumer(
    consumer: str, source: Source, piece: SFrameSection | None, witness: Witness | None, found: Findings
) -> None:
    """Add why a consumer would not load the section, or would not walk to the end by it.

    `piece` is the first, the only one that readers see; `witness` is the call frame information of the file.
    """
    if piece is not None:
        _CHECKS[consumer](source, piece, found)
        wanted = CONSUMERS[consumer]
        if wanted.walks and piece.section.version == wanted.version and piece.section.machine is not None:
            check_walk(wanted, source, piece, witness, found)
    elif len(source.data):
        found.add(f"{consumer}-unreadable", "the header cannot be read")
    elif consumer in {LINUX.name, LINUX_KERNEL.name}:
        found.add(f"{consumer}-empty", "the section is empty")
    elif consumer == "glibc":
        _segment(source, found, "glibc-segment")


_CHECKS: dict[str, Callable[[Source, SFrameSection, Findings], None]] = {
    "linux": check_linux,
    "linux-kernel": check_linux_kernel,
    "glibc": check_glibc,
    "gnu-ld": check_gnu_ld,
}


def _rising(section: Section, found: Findings) -> None:
    start = section.code_address
    found.add_functions(
        "linux-order",
        section,
        np.flatnonzero(start[1:] <= start[:-1]) + 1,
        lambda number: f"it starts at {start[number]:#x}, the one before it at {start[number - 1]:#x}",
    )


def _follow(found: Findings, code: str, causes: set[str]) -> None:
    """One finding of the consumer for what the rules found already."""
    present = sorted(causes & found.broken_first)
    if present:
        found.add(code, f"see {', '.join(present)}")


def _executable_segments(elf: ElfFile) -> int:
    try:
        return len(elf.executable_ranges()[0])
    except UnreadableError:
        return 0


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
