"""Rules about the bytes: header, function index, and how rows fill their sub-section."""

from __future__ import annotations

from functools import partial

import numpy as np

from walkback.base.arch import AARCH64
from walkback.base.arrays import Bools, ends_of
from walkback.sframe import layout
from walkback.sframe.checking.findings import Findings
from walkback.sframe.section import RowFault, Section


def check_structure(section: Section, found: Findings) -> None:
    """All rules of this module."""
    _header(section, found)
    _parts(section, found)
    _functions(section, found)
    _faults(section, found)
    _blocks(section, found)
    _order(section, found)


def _header(section: Section, found: Findings) -> None:
    undefined = section.flags & ~layout.FLAGS_DEFINED[section.version]
    if undefined:
        found.add("header-flags", f"flags {undefined:#x} are not defined in version {section.version}", offset=3)
    machine = section.machine
    if machine is None:
        found.add("header-abi", f"ABI {section.abi_arch} is unknown", offset=4)
    elif layout.ABI_BYTE_ORDERS[section.abi_arch] != section.byteorder:
        message = f"{layout.ABI_NAMES[section.abi_arch]} data is stored {section.byteorder}-endian"
        found.add("header-byteorder", message, offset=0)
    if machine is not None and section.cfa_fixed_ra_offset != machine.ra_from_cfa:
        message = f"the fixed RA offset is {section.cfa_fixed_ra_offset}, on {machine.name} it is {machine.ra_from_cfa}"
        # GNU as 2.40 to the newest all write -8 on AMD64 and 0 elsewhere.
        found.add("header-fixed-ra", message, offset=6)
    if section.cfa_fixed_fp_offset:
        found.add("header-fixed-fp", f"the fixed FP offset is {section.cfa_fixed_fp_offset}", offset=5)


def _parts(section: Section, found: Findings) -> None:
    """Header, index and rows tile the section."""
    index_end = section.fde_end
    if section.fde_start < section.end and section.fre_start < index_end and section.fre_len:
        rows = f"[{section.fre_start:#x}, {section.end:#x})"
        message = f"the index [{section.fde_start:#x}, {index_end:#x}) overlaps the rows {rows}"
        found.add("sections-overlap", message, offset=0x14)
    elif section.fre_start < index_end:
        message = f"the index ends at {index_end:#x}, the rows begin at {section.fre_start:#x}"
        found.add("sections-overlap", message, offset=0x18)
    for position, content in section.gaps:
        inside_rows = section.fre_start <= position < section.end
        if position >= max(section.end, index_end):
            # GNU as fills up to the section's alignment on s390x.
            if len(content) < 8 and position + len(content) == section.length and not any(content):
                continue
            kind = "section-tail"
            message = f"{len(content)} bytes follow the FRE sub-section"
        elif inside_rows:
            kind, message = "rows-gap", f"{len(content)} bytes of the FRE sub-section belong to no function"
        else:
            kind, message = "index-gap", f"{len(content)} bytes belong to no part of the section"
        found.add(kind, message, offset=position)
    total = int(section.functions.num_fres.sum(dtype=np.int64))
    if total != section.num_fres:
        found.add("row-count", f"the header counts {section.num_fres} rows, the functions {total}", offset=0xC)


def _functions(section: Section, found: Findings) -> None:
    """The fields of each entry by itself."""
    functions, version = section.functions, section.version
    defined = layout.FDE_INFO_DEFINED[version]
    key = 1 << layout.FDE_PAUTH_KEY_SHIFT
    defined = defined | key if section.machine is AARCH64 else defined & ~key
    undefined = functions.info & np.uint8(~defined & 0xFF)
    info_place = partial(_info_offset, section)
    found.add_functions(
        "function-bits",
        section,
        undefined > 0,
        lambda number: f"info byte {functions.info[number]:#04x}: bits {undefined[number]:#04x} are unused",
        info_place,
    )
    if version == 3:
        _second_info(section, found)
    found.add_functions(
        "function-padding",
        section,
        functions.padding > 0,
        lambda number: f"the padding is {functions.padding[number]:#x}",
        lambda number: section.field_offset(number) + layout.V2_PADDING_OFFSET,
    )
    empty_block = (functions.pc_type == layout.PC_TYPE_MASK) & (section.block_size == 0)
    found.add_functions("function-block", section, empty_block, lambda _: "a repeating block of size 0", info_place)
    _alignment(section, found)
    silent = (functions.num_fres == 0) & ~section.signal & (functions.fault == 0)
    found.add_functions("function-no-rows", section, silent, lambda _: "no rows")
    found.add_functions(
        "function-offset",
        section,
        (functions.fre_offset.astype(np.int64) > section.fre_len) & (functions.fault == 0),
        lambda number: f"its rows begin at {functions.fre_offset[number]:#x} of {section.fre_len:#x} bytes",
        lambda number: section.field_offset(number) + layout.FRE_OFFSET_OFFSET,
    )


def _alignment(section: Section, found: Findings) -> None:
    """Functions are whole instructions, and repeating blocks fill theirs."""
    start, size = section.code_address, section.functions.size
    unit = 1 if section.machine is None else section.machine.code_alignment
    found.add_functions(
        "function-align",
        section,
        (start % np.uint64(unit) != 0) | (size % np.uint32(unit) != 0),
        lambda number: f"it starts at {start[number]:#x} and has {size[number]} bytes",
    )
    block = section.block_size
    found.add_functions(
        "function-remainder",
        section,
        size % np.maximum(block, 1) > 0,
        lambda number: f"{size[number]} bytes are not whole blocks of {block[number]}",
        partial(_info_offset, section),
    )


def _second_info(section: Section, found: Findings) -> None:
    """The second info byte of version 3."""
    functions = section.functions

    def place(function: int) -> int:
        return _info_offset(section, function) + 1

    found.add_functions(
        "function-bits",
        section,
        functions.info2 > layout.FDE_TYPE_MASK,
        lambda number: f"second info byte {functions.info2[number]:#04x}: bits 5 to 7 are unused",
        place,
    )
    found.add_functions(
        "function-type",
        section,
        (functions.fde_type > layout.FDE_TYPE_FLEX) & (functions.fault != RowFault.ATTRIBUTE),
        lambda number: f"function type {functions.fde_type[number]} is neither default nor flex",
        place,
    )


def _info_offset(section: Section, function: int) -> int:
    """Where a function's info byte stands."""
    if section.version == 3:
        return section.fre_start + int(section.functions.fre_offset[function]) + layout.V3_INFO_OFFSET
    return section.field_offset(function) + layout.V1_INFO_OFFSET


def _faults(section: Section, found: Findings) -> None:
    faults, place = section.functions.fault, section.functions.fault_offset.item
    for fault in RowFault:
        if fault:
            found.add_functions(
                fault.rule, section, faults == fault, lambda number: RowFault(faults[number]).words, place
            )


def _blocks(section: Section, found: Findings) -> None:
    """The bytes of the functions' rows do not overlap."""
    functions = section.functions
    if not len(section.row_start) and section.version < 3:
        return
    start = functions.fre_offset.astype(np.int64) + section.fre_start
    lengths = np.concatenate(([0], np.cumsum(section.row_lengths())))
    end = start + section.head_size + lengths[functions.first_row + functions.rows] - lengths[functions.first_row]
    order = np.lexsort((end, start))
    order = order[(end > start)[order] & (functions.fault[order] == 0)]
    if not len(order):
        return
    reach = np.maximum.accumulate(end[order])
    overlapping = start[order[1:]] < reach[:-1]
    same = (start[order[1:]] == start[order[:-1]]) & (end[order[1:]] == end[order[:-1]])
    found.add_functions(
        "rows-overlap",
        section,
        order[1:][overlapping & ~same],
        lambda number: f"its rows at {start[number]:#x} belong to another function too",
        start.item,
    )
    found.add_functions(
        "rows-same",
        section,
        order[1:][same],
        lambda number: f"its rows at {start[number]:#x} are another function's too",
        start.item,
    )


def _order(section: Section, found: Findings) -> None:
    """Sorted if promised, and no address twice; in relocatable files within each text section."""
    functions = section.functions
    start, place = section.code_address, section.code_section
    if section.sorted or (section.version == 1 and place is None):
        # By address, not by the stored number: with PCREL the two orders differ.
        falls = start[1:] < start[:-1]
        if place is not None:
            falls &= (place[1:] == place[:-1]) & (place[1:] > 0)
        found.add_functions(
            "function-order",
            section,
            np.flatnonzero(falls) + 1,
            lambda number: f"it starts at {start[number]:#x}, the one before it at {start[number - 1]:#x}",
        )
    overlapping, duplicate, before = _overlaps(section)

    def overlap(function: int) -> str:
        own = f"[{start[function]:#x}, +{functions.size[function]:#x})"
        return f"{own} overlaps function {before[function]} at {start[before[function]]:#x}"

    found.add_functions("function-overlap", section, overlapping, overlap)
    found.add_functions(
        "function-duplicate",
        section,
        duplicate,
        lambda number: f"{start[number]:#x} is described by function {before[number]} too",
    )


def _overlaps(section: Section) -> tuple[Bools, Bools, np.ndarray]:
    """Functions that overlap one before them, those that repeat it, and which that is; empty ones do neither."""
    size = section.functions.size.astype(np.uint64)
    start = section.code_address
    count = len(start)
    overlapping, duplicate = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    before = np.zeros(count, np.int64)
    place = np.zeros(count, np.int32) if section.code_section is None else section.code_section
    placed = size > 0 if section.code_section is None else (size > 0) & (place > 0)
    order = np.lexsort((start, place))
    order = order[placed[order]]
    end = ends_of(start, size)
    firsts = np.flatnonzero(np.diff(place[order], prepend=-1))
    for one in np.split(order, firsts[1:]) if len(order) > 1 else ():
        reach = np.maximum.accumulate(end[one])
        furthest = np.maximum.accumulate(np.where(end[one] == reach, np.arange(len(one)), 0))
        wrong = start[one[1:]] < reach[:-1]
        same = (start[one[1:]] == start[one[:-1]]) & (size[one[1:]] == size[one[:-1]])
        overlapping[one[1:][wrong & ~same]] = True
        duplicate[one[1:][same]] = True
        before[one[1:]] = one[np.where(same, np.arange(len(one) - 1), furthest[:-1])]
    return overlapping, duplicate, before
