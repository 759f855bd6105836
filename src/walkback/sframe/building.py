"""`UnwindTable` to `Section`: the smallest section that says what the table says.

Row starts get the width that the largest needs, data words the width that the row needs. A function of more rows than
an entry can count is split into several entries. `planning` chooses how rows are coded.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AARCH64, AMD64, ByteOrder, Machine, check_address, check_byteorder
from walkback.base.arrays import I32, I64, U8, U32, U64, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, InexpressibleError
from walkback.base.oneline import OneLine
from walkback.sframe import _rows, layout
from walkback.sframe.planning import Plan, Refused, plan_of, refusal_error, refusals_of
from walkback.sframe.section import FunctionIndex, Section, Shapes, start_bases
from walkback.sframe.words import Refusal, needs_sp_base
from walkback.table.rule import PartKind, RuleArray, of_kind
from walkback.table.table import UnwindTable


@dataclass(frozen=True, slots=True, repr=False)
class Built(OneLine):
    """A section made from a table, and what had to be done for it."""

    section: Section
    refused: tuple[Refused, ...]
    """Ranges that were left out."""
    split: tuple[int, ...]
    """Ranges that needed several entries."""
    outermost: tuple[int, ...]
    """Ranges with a row that is outermost and yet has a CFA: the section keeps of it that it is outermost."""
    ranges: I64
    """For each function of the section the range that it comes from."""


def build(
    table: UnwindTable,
    *,
    version: int = 3,
    pcrel: bool | None = None,
    byteorder: ByteOrder | None = None,
    address: int = 0,
    frame_pointer: bool = False,
    leave_out: bool = False,
    width_by_size: bool = False,
    linked: bool | None = None,
) -> Built:
    """Make the section that says what the table says, for the place `address`.

    Ranges with absolute addresses are sorted and their starts filled in. Ranges of relocatable files keep their order,
    and their start fields are 0: `Section.code_section`, `code_address` and `field_offset` say what to relocate.
    What the version cannot say raises `InexpressibleError`, or with `leave_out` is left out and returned.
    `pcrel` is set by default where the version has it. `frame_pointer` sets the flag of versions 1 and 2. With
    `width_by_size` row starts have the width that the function's size needs, as GNU as chooses it. `linked` says
    whether addresses are absolute; without it the ranges do, and of no ranges it is so.

    >>> [section] = walkback.ElfFile("a.out").sframe
    >>> built = walkback.sframe.build(section.table, version=2, address=0x4000)
    >>> built.section.version, len(walkback.sframe.encode(built.section))
    (2, 116)
    """
    return build_planned(
        plan_of(table, version),
        pcrel=pcrel,
        byteorder=byteorder,
        address=address,
        frame_pointer=frame_pointer,
        leave_out=leave_out,
        width_by_size=width_by_size,
        linked=linked,
    )


def build_planned(
    plan: Plan,
    *,
    pcrel: bool | None,
    byteorder: ByteOrder | None,
    address: int,
    frame_pointer: bool,
    leave_out: bool,
    width_by_size: bool,
    linked: bool | None,
) -> Built:
    """Make the section of a table that was planned; the arguments are those of `build`."""
    table, version = plan.table, plan.version
    if byteorder is not None:
        check_byteorder(byteorder)
    check_address(address)
    placed = table.range_section >= 0
    if linked is None:
        linked = not placed.any()
    if not np.all(placed != linked):
        raise ArgumentError("ranges with absolute addresses and ranges in text sections do not go into one section")
    flags = layout.F_FDE_FUNC_START_PCREL if (version > 1 if pcrel is None else pcrel) else 0
    flags |= layout.F_FRAME_POINTER if frame_pointer else 0
    if flags & ~layout.FLAGS_DEFINED[version]:
        names = " and ".join(n for bit, n in layout.FLAG_NAMES.items() if flags & ~layout.FLAGS_DEFINED[version] & bit)
        raise InexpressibleError(f"version {version} has no flag {names}", rule="header-flags")
    refused = refusals_of(plan)
    order = byteorder or ("big" if table.machine not in {AMD64, AARCH64} else "little")
    while True:
        if refused and not leave_out:
            raise refusal_error(table, refused, version)
        keep = np.ones(len(table), np.bool_)
        keep[[one.range for one in refused]] = False
        entries, split = _entries(plan, keep, linked)
        with_order = flags | (layout.F_FDE_SORTED if linked else 0)
        section = _lay_out(plan, entries, with_order, order, address, linked, width_by_size)
        unreachable = _out_of_reach(section, entries) if linked else []
        if not unreachable:
            bare = _with_bare_rows(table, keep)
            return Built(section, tuple(refused), tuple(split), bare, entries.range)
        refused = sorted([*refused, *unreachable], key=lambda one: one.range)


def _with_bare_rows(table: UnwindTable, keep: Bools) -> tuple[int, ...]:
    """The ranges that lose the CFA of an outermost row, which has no words."""
    bare = of_kind(table.rules["ra"], PartKind.UNDEFINED) & ~of_kind(table.rules["cfa"], PartKind.UNDEFINED)
    return tuple(np.flatnonzero(keep & (table.rows_where(bare) > 0)).tolist())


@dataclass(slots=True)
class _Entries:
    """The index entries to write: parts of ranges, in order."""

    range: I64
    start: U64
    size: U64
    first_row: I64
    """In the table."""
    rows: I64
    row_base: U32
    """Subtracted from the row offsets: not 0 in the second and later parts of a range."""


def _entries(plan: Plan, keep: Bools, linked: bool) -> tuple[_Entries, list[int]]:
    """One entry a range, or as many as its rows need."""
    table = plan.table
    chosen = np.flatnonzero(keep)
    if linked:
        chosen = chosen[np.argsort(table.range_start[chosen], kind="stable")]
    most = layout.V3_MAX_FRES if plan.version == 3 else 0xFFFFFFFF
    if int(table.range_rows[chosen].max(initial=0)) <= most:
        size, first_row, rows = (table.range_size[chosen], table.range_first_row[chosen], table.range_rows[chosen])
        whole = _Entries(chosen, table.range_start[chosen], size, first_row, rows, np.zeros(len(chosen), np.uint32))
        return whole, []
    parts = np.maximum(1, -(-table.range_rows[chosen] // most))
    owner = np.repeat(chosen, parts)
    part = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    first_row = table.range_first_row[owner] + part * most
    rows = np.minimum(table.range_rows[owner] - part * most, most)
    last = part == np.repeat(parts - 1, parts)
    base = np.zeros(len(owner), np.uint32)
    base[part > 0] = table.row_offset[first_row[part > 0]]
    stop = table.range_size[owner].copy()
    stop[~last] = table.row_offset[(first_row + rows)[~last]]
    entries = _Entries(owner, table.range_start[owner] + base, stop - base, first_row, rows, base)
    return entries, [int(index) for index in chosen[parts > 1]]


@dataclass(frozen=True, slots=True)
class _BuiltRows:
    """The rows of all entries, entry by entry."""

    first: I64
    """The first row of each entry."""
    start: U32
    shape: U32
    shapes: Shapes
    largest: I64
    """The largest start of each entry."""
    length: I64
    """Bytes of the rows of each entry, without their starts."""


def _chosen_rows(plan: Plan, entries: _Entries) -> _BuiltRows:
    table, count = plan.table, int(entries.rows.sum())
    first = np.cumsum(entries.rows) - entries.rows
    start, rule = table.row_offset, table.row_rule
    if len(start) != count or not np.array_equal(first, entries.first_row):
        source = np.repeat(entries.first_row - first, entries.rows) + np.arange(count)
        start, rule = start[source], rule[source]
    if entries.row_base.any():
        start = start - np.repeat(entries.row_base, entries.rows)
    shape, shapes = _shapes(plan, rule, plan.is_flex[entries.range], entries.rows)
    largest, length = _rows.measure_rows(first, entries.rows, start, shape, shapes.length)
    return _BuiltRows(first, start, shape, shapes, largest, length)


def _lay_out(
    plan: Plan, entries: _Entries, flags: int, order: ByteOrder, address: int, linked: bool, width_by_size: bool
) -> Section:
    """Columns and positions of the section."""
    table, version, rows = plan.table, plan.version, _chosen_rows(plan, entries)
    largest = entries.size.view(np.int64) if width_by_size else rows.largest
    fre_type = (largest > 0xFF).astype(np.uint8) + (largest > 0xFFFF).astype(np.uint8)
    block = table.range_block[entries.range]
    info: U8 = fre_type | (block > 0).astype(np.uint8) << np.uint8(layout.FDE_PC_TYPE_SHIFT)
    info |= table.range_pauth_key[entries.range] << np.uint8(layout.FDE_PAUTH_KEY_SHIFT)
    if version == 3:
        info |= table.range_signal[entries.range] * np.uint8(layout.FDE_SIGNAL)
    head = layout.ATTRIBUTE_SIZE if version == 3 else 0
    body = rows.length + (entries.rows << fre_type) + head
    fre_offset = np.cumsum(body) - body
    count = len(entries.range)
    index_size = count * layout.FDE_SIZES[version]
    fre_len = int(body.sum())
    if fre_len > 0xFFFFFFFF:
        raise InexpressibleError(f"the rows need {fre_len} bytes, and a section can count 4 GiB", rule="field-range")
    functions = FunctionIndex.zeros(
        count,
        size=entries.size,
        fre_offset=fre_offset,
        num_fres=entries.rows,
        info=info,
        info2=plan.is_flex[entries.range],
        rep_size=block if version > 1 else np.zeros(count),
        first_row=rows.first,
        rows=entries.rows,
    )
    section = Section(
        version=version,
        flags=flags,
        abi_arch=abi_of(plan.machine, order),
        cfa_fixed_fp_offset=0,
        cfa_fixed_ra_offset=plan.machine.ra_from_cfa,
        auxiliary=b"",
        num_fdes=count,
        num_fres=len(rows.start),
        fre_len=fre_len,
        fdeoff=0,
        freoff=index_size,
        byteorder=order,
        functions=functions,
        row_start=rows.start,
        row_shape=rows.shape,
        shapes=rows.shapes,
        length=layout.HEADER_SIZE + index_size + fre_len,
        address=address,
        code_section=None if linked else table.range_section[entries.range],
        code_address=entries.start,
    )
    if linked:
        functions.start = (entries.start - start_bases(section)).view(np.int64)
    return section


def abi_of(machine: Machine, order: ByteOrder) -> int:
    """The ABI identifier; the byte order distinguishes the two of AArch64."""
    if machine is AARCH64 and order == "big":
        return layout.ABI_AARCH64_ENDIAN_BIG
    return next(abi for abi, known in reversed(layout.ABI_MACHINES.items()) if known is machine)


def _out_of_reach(section: Section, entries: _Entries) -> list[Refused]:
    """Versions 1 and 2 have 32 bits for a start."""
    if section.version == 3:
        return []
    start = section.functions.start
    far = (start < -(2**31)) | (start >= 2**31)
    return [Refused(int(i), None, Refusal.FUNCTION_REACH) for i in distinct(entries.range[far])]


def _shapes(plan: Plan, row_rule: U32, entry_flex: Bools, rows: I64) -> tuple[U32, Shapes]:
    """The distinct shapes that the rows need: one for each rule, and one more where flex rows say it too."""
    count_of_rules = len(plan.table.rules)
    pair = row_rule
    if entry_flex.any():
        pair = row_rule + np.repeat(entry_flex, rows) * np.uint32(count_of_rules)
    needed = np.zeros(2 * count_of_rules, np.bool_)
    needed[pair] = True
    numbers = (np.cumsum(needed) - 1).astype(np.uint32)[pair]
    used = np.flatnonzero(needed)
    is_flex: Bools = used >= count_of_rules
    rule = used - is_flex * count_of_rules
    rules: RuleArray = plan.table.rules
    count, code = plan.default.count[rule], plan.default.size_code[rule]
    words = plan.default.words[:, rule]
    base = needs_sp_base(rules, plan.machine)[rule] & ~is_flex
    if plan.flex is not None:
        count = np.where(is_flex, plan.flex.count[rule], count)
        code = np.where(is_flex, plan.flex.size_code[rule], code)
        words = np.where(is_flex, plan.flex.words[:, rule], words)
    signed = (rules["ra_signed"][rule] > 0) & (count > 0)
    info = (base & (count > 0)) | count << 1 | code << 5 | signed * np.uint8(layout.FRE_RA_MANGLED)
    first_word = np.zeros(len(used) + 1, np.int64)
    np.cumsum(count, out=first_word[1:])
    flat = words.T[np.arange(6) < count[:, None]]
    size_of_word = np.repeat(code, count)
    wrapped: I32 = np.select(
        [size_of_word == 0, size_of_word == 1],
        [flat.astype(np.int8).astype(np.int32), flat.astype(np.int16).astype(np.int32)],
        flat.astype(np.int32),
    )
    shapes = Shapes(is_flex.astype(np.uint8), info.astype(np.uint8), first_word, wrapped)
    return numbers, shapes
