"""Rules about the bytes: header, function index, and how rows fill their sub-section."""

from __future__ import annotations

import numpy as np

from walkback.arch import AARCH64
from walkback.arrays import Bools
from walkback.sframe import layout
from walkback.sframe.check.findings import Findings
from walkback.sframe.decode import FAULT_WORDS, fault_rule
from walkback.sframe.section import Fault, Section


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
        message = f"flags {undefined:#x} are not defined in version {section.version}"
        found.add("header-flags", message, offset=3)
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
        message = f"the fixed FP offset is {section.cfa_fixed_fp_offset}"
        found.add("header-fixed-fp", message, offset=5)


def _parts(section: Section, found: Findings) -> None:
    """Header, index and rows tile the section."""
    index_end = section.fde_start + section.num_fdes * section.fde_size
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

    def bits(function: int) -> None:
        message = f"info byte {int(functions.info[function]):#04x}: bits {int(undefined[function]):#04x} are unused"
        found.add("function-bits", message, offset=_info_offset(section, function), function=function)

    found.add_all("function-bits", np.flatnonzero(undefined), bits)
    if version == 3:
        _second_info(section, found)

    def padding(function: int) -> None:
        message = f"the padding is {int(functions.padding[function]):#x}"
        found.add("function-padding", message, offset=section.field_offset(function) + 18, function=function)

    found.add_all("function-padding", np.flatnonzero(functions.padding), padding)

    def block(function: int) -> None:
        message = "a repeating block of size 0"
        found.add("function-block", message, offset=_info_offset(section, function), function=function)

    masked = functions.pc_type == layout.PC_TYPE_MASK
    found.add_all("function-block", np.flatnonzero(masked & (section.block_size == 0)), block)
    _alignment(section, found)

    def no_rows(function: int) -> None:
        found.add("function-no-rows", "no rows", offset=section.field_offset(function), function=function)

    silent = (functions.num_fres == 0) & ~section.signal & (functions.fault == 0)
    found.add_all("function-no-rows", np.flatnonzero(silent), no_rows)

    def outside(function: int) -> None:
        message = f"its rows begin at {int(functions.fre_offset[function]):#x} of {section.fre_len:#x} bytes"
        found.add("function-offset", message, offset=section.field_offset(function) + 8, function=function)

    beyond = (functions.fre_offset.astype(np.int64) > section.fre_len) & (functions.fault == 0)
    found.add_all("function-offset", np.flatnonzero(beyond), outside)


def _alignment(section: Section, found: Findings) -> None:
    """Functions are whole instructions, and repeating blocks fill theirs."""
    functions = section.functions
    unit = 1 if section.machine is None else section.machine.code_alignment

    def aligned(function: int) -> None:
        message = f"it starts at {int(section.code_address[function]):#x} and has {int(functions.size[function])} bytes"
        found.add("function-align", message, offset=section.field_offset(function), function=function)

    wrong = (section.code_address % np.uint64(unit) != 0) | (functions.size % np.uint32(unit) != 0)
    found.add_all("function-align", np.flatnonzero(wrong), aligned)

    def remainder(function: int) -> None:
        message = f"{int(functions.size[function])} bytes are not whole blocks of {int(section.block_size[function])}"
        found.add("function-remainder", message, offset=_info_offset(section, function), function=function)

    block = np.maximum(section.block_size, 1)
    found.add_all("function-remainder", np.flatnonzero(functions.size % block), remainder)


def _second_info(section: Section, found: Findings) -> None:
    """The second info byte of version 3."""
    functions = section.functions

    def bits(function: int) -> None:
        message = f"second info byte {int(functions.info2[function]):#04x}: bits 5 to 7 are unused"
        found.add("function-bits", message, offset=_info_offset(section, function) + 1, function=function)

    unused = functions.info2 & np.uint8(~layout.FDE_TYPE_MASK & 0xFF)
    found.add_all("function-bits", np.flatnonzero(unused), bits)

    def kind(function: int) -> None:
        message = f"function type {int(functions.fde_type[function])} is neither default nor flex"
        found.add("function-type", message, offset=_info_offset(section, function) + 1, function=function)

    unknown = (functions.fde_type > layout.FDE_TYPE_FLEX) & (functions.fault != Fault.ATTRIBUTE)
    found.add_all("function-type", np.flatnonzero(unknown), kind)


def _info_offset(section: Section, function: int) -> int:
    """Where a function's info byte stands."""
    if section.version == 3:
        return section.fre_start + int(section.functions.fre_offset[function]) + 2
    return section.field_offset(function) + 16


def _faults(section: Section, found: Findings) -> None:
    functions = section.functions
    for fault in Fault:
        if not fault:
            continue

        def unreadable(function: int, fault: Fault = fault) -> None:
            offset = int(functions.fault_offset[function])
            found.add(fault_rule(fault), FAULT_WORDS[fault], offset=offset, function=function)

        found.add_all(fault_rule(fault), np.flatnonzero(functions.fault == fault), unreadable)


def _blocks(section: Section, found: Findings) -> None:
    """The bytes of the functions' rows do not overlap."""
    functions = section.functions
    if not len(section.row_start) and section.version < 3:
        return
    head = layout.ATTRIBUTE_SIZE if section.version == 3 else 0
    start = functions.fre_offset.astype(np.int64) + section.fre_start
    lengths = np.concatenate(([0], np.cumsum(row_lengths(section))))
    end = start + head + lengths[functions.first_row + functions.rows] - lengths[functions.first_row]
    order = np.lexsort((end, start))
    order = order[(end > start)[order] & (functions.fault[order] == 0)]
    if not len(order):
        return
    reach = np.maximum.accumulate(end[order])
    overlapping = start[order[1:]] < reach[:-1]
    same = (start[order[1:]] == start[order[:-1]]) & (end[order[1:]] == end[order[:-1]])

    def overlap(function: int) -> None:
        message = f"its rows at {int(start[function]):#x} belong to another function too"
        found.add("rows-overlap", message, offset=int(start[function]), function=function)

    def shared(function: int) -> None:
        message = f"its rows at {int(start[function]):#x} are another function's too"
        found.add("rows-same", message, offset=int(start[function]), function=function)

    found.add_all("rows-overlap", order[1:][overlapping & ~same], overlap)
    found.add_all("rows-same", order[1:][same], shared)


def row_lengths(section: Section) -> np.ndarray:
    """Bytes of every row."""
    width = np.array((*layout.FRE_START_SIZES, *(0,) * 13), np.int64)[section.functions.fre_type]
    lengths: np.ndarray = np.repeat(width, section.functions.rows) + section.shapes.length[section.row_shape]
    return lengths


def _order(section: Section, found: Findings) -> None:
    """Sorted if promised, and no address twice; in relocatable files within each text section."""
    functions = section.functions
    start, place = section.code_address, section.code_section
    if section.sorted or (section.version == 1 and place is None):
        # By address, not by the stored number: with PCREL the two orders differ.
        falls = start[1:] < start[:-1]
        if place is not None:
            falls &= (place[1:] == place[:-1]) & (place[1:] > 0)
        falling = np.flatnonzero(falls) + 1

        def unsorted(function: int) -> None:
            message = f"it starts at {int(start[function]):#x}, the one before it at {int(start[function - 1]):#x}"
            found.add("function-order", message, offset=section.field_offset(function), function=function)

        found.add_all("function-order", falling, unsorted)
    overlapping, duplicate, before = _overlaps(section)

    def overlap(function: int) -> None:
        other = int(before[function])
        own = f"[{int(start[function]):#x}, +{int(functions.size[function]):#x})"
        message = f"{own} overlaps function {other} at {int(start[other]):#x}"
        found.add("function-overlap", message, offset=section.field_offset(function), function=function)

    def twice(function: int) -> None:
        message = f"{int(start[function]):#x} is described by function {int(before[function])} too"
        found.add("function-duplicate", message, offset=section.field_offset(function), function=function)

    found.add_all("function-overlap", np.flatnonzero(overlapping), overlap)
    found.add_all("function-duplicate", np.flatnonzero(duplicate), twice)


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
    end = start + np.minimum(size, np.uint64(2**64 - 1) - start)
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
