"""What a section would take if the format were otherwise: the changes that are argued about.

Each answer is the bytes of the whole section. What is assumed about the change:

* `compact_index` (version 2): row counts of 16 bits and no padding, so entries of 16 bytes instead of 20. A function of
  more rows needs an entry more.
* `slim_header`: in the linking view the index follows the header, the rows follow the index, and both can be counted.
  So the header ends behind the number of functions: 12 bytes instead of 28, without `num_fres`, `fre_len`, `fdeoff` and
  `freoff`.
* `section_per_text`: one section for each text section that has functions, which costs its header of 28 bytes and an
  ELF section header of 64 bytes; with `_slim`, its header of 12 bytes. `section_per_function` is the same with a text
  section for each function. What the alignment of sections costs is not counted.
* `shared_rows`: functions whose rows (in version 3 with the attribute record) are equal byte for byte share them.
* `palette`: a row is the 16 bits of its start and the 16 bits of a rule's number, and every distinct rule takes 12
  bytes. Header, index and attributes stay. A function has a part more, with a row more, for every 64 KiB. With more
  than 65,536 rules a number takes 32 bits.
* `stack_deltas`: the same without functions, as OpenTelemetry has it: an entry of 4 bytes wherever another rule begins
  or the last one ends, 12 bytes for every distinct rule, and for each 64 KiB with code a directory entry and an entry
  for its first address, of 4 bytes each.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I32, I64, U64, Bools
from walkback.base.intern import intern_records
from walkback.sframe import layout
from walkback.sframe.section import Section
from walkback.table.table import UnwindTable

ELF_SECTION_HEADER = 64
SLIM_HEADER = 12
COMPACT_ENTRY = 16
COMPACT_ROWS = 0xFFFF
RULE_BYTES = 12
ENTRY_BYTES = 4
NUMBER_BITS = 16
PAGE_BYTES = 2 * ENTRY_BYTES

_WORDS = 6
"""Words of a row that a section which was built here can have."""
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def what_ifs(section: Section, size: int, text_sections: int) -> dict[str, int]:
    """The answers but the last for a section of `size` bytes that was built here; none for version 1."""
    if section.version == 1:
        return {}
    functions = len(section.functions)
    row_shape, shapes = _distinct_shapes(section)
    found = {"compact_index": _compact_index(section, size)} if section.version == 2 else {}
    found["slim_header"] = size - (layout.HEADER_SIZE - SLIM_HEADER)
    for name, count in (("section_per_text", text_sections), ("section_per_function", functions)):
        more = max(count - 1, 0)
        found[name] = size + more * (layout.HEADER_SIZE + ELF_SECTION_HEADER)
        found[f"{name}_slim"] = found["slim_header"] + more * (SLIM_HEADER + ELF_SECTION_HEADER)
    body = np.diff(section.functions.fre_offset.astype(np.int64), append=section.fre_len)
    found["shared_rows"] = size - int(body[_repeated(section, row_shape)].sum())
    found["palette"] = _palette(section, shapes)
    return found


def _compact_index(section: Section, size: int) -> int:
    entries = np.maximum(1, -(-section.functions.rows // COMPACT_ROWS)).sum()
    return size - len(section.functions) * section.fde_size + int(entries) * COMPACT_ENTRY


def _distinct_shapes(section: Section) -> tuple[I64, int]:
    """The shape of each row, numbered so that equal ones have one number; and how many there are."""
    shapes = section.shapes
    records = np.zeros((len(shapes), _WORDS + 2), np.int32)
    records[:, 0], records[:, 1] = shapes.fde_type, shapes.info
    records[:, 2:] = shapes.first_words(_WORDS).T
    first, numbers = intern_records(records.view("V32")[:, 0])
    return numbers.astype(np.int64)[section.row_shape], len(first)


def _repeated(section: Section, row_shape: I64) -> Bools:
    """Which functions have the rows of an earlier one."""
    functions, count = section.functions, len(section.functions)
    position = np.arange(len(row_shape)) - np.repeat(functions.first_row, functions.rows)
    key = _hashed(row_shape.view(np.uint64) << np.uint64(32) | section.row_start, position.view(np.uint64))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(key, dtype=np.uint64)))
    info = functions.info.astype(np.uint64) if section.version == 3 else functions.fre_type.astype(np.uint64)
    if section.version == 3:
        info |= functions.info2.astype(np.uint64) << np.uint64(8) | functions.rep_size.astype(np.uint64) << np.uint64(
            16
        )
    whole = sums[functions.first_row + functions.rows] - sums[functions.first_row]
    _, first, group = np.unique(_hashed(whole, info), return_index=True, return_inverse=True)
    like = first[group]
    same: Bools = (like != np.arange(count)) & (functions.rows == functions.rows[like]) & (info == info[like])
    # What has an equal hash is looked at row by row.
    rows = np.flatnonzero(np.repeat(same, functions.rows))
    owner = np.repeat(np.arange(count), functions.rows)[rows]
    other = functions.first_row[like[owner]] + position[rows]
    unlike = (row_shape[rows] != row_shape[other]) | (section.row_start[rows] != section.row_start[other])
    same[owner[unlike]] = False
    return same


def _hashed(one: U64, other: U64) -> U64:
    """A number for each pair."""
    key: U64 = one * _MIX[0] + other * _MIX[1]
    key ^= key >> np.uint64(31)
    key *= _MIX[2]
    return key ^ (key >> np.uint64(29))


def _palette(section: Section, rules: int) -> int:
    functions = section.functions
    has = functions.rows > 0
    last = np.zeros(len(functions), np.int64)
    last[has] = section.row_start[(functions.first_row + functions.rows)[has] - 1]
    parts = int((last >> NUMBER_BITS).sum())
    head = section.fde_size + (layout.ATTRIBUTE_SIZE if section.version == 3 else 0)
    entry = ENTRY_BYTES if rules <= 1 << NUMBER_BITS else ENTRY_BYTES + 2
    rows = len(section.row_start) + parts
    return section.header_end + (len(functions) + parts) * head + rows * entry + rules * RULE_BYTES


def stack_deltas(table: UnwindTable) -> int:
    """The last answer, for the table of a section of version 3."""
    if not len(table.row_rule):
        return 0
    distinct, numbers = intern_records(table.rules)
    rules, used = numbers[table.row_rule], np.zeros(len(distinct), np.bool_)
    used[rules] = True
    entry = ENTRY_BYTES if int(used.sum()) <= 1 << NUMBER_BITS else ENTRY_BYTES + 2
    return _deltas(table, rules) * entry + int(used.sum()) * RULE_BYTES + _pages(table) * PAGE_BYTES


def _deltas(table: UnwindTable, rules: I32) -> int:
    """How many entries: of ranges that are disjoint and in order, and whose rows stand in that order too."""
    rows, block = table.range_rows, table.range_block
    has = rows > 0
    lead = ~has
    lead[has] = table.row_offset[table.range_first_row[has]] > 0
    tail = np.ones(len(table), np.bool_)
    tail[:-1] = (table.range_section[1:] != table.range_section[:-1]) | (
        table.range_start[1:] != table.range_start[:-1] + table.range_size[:-1]
    )
    # In order of addresses: the rule of each row, and -1 where none holds before the first row or behind the range.
    each = lead + rows + tail
    before = np.cumsum(each) - each + lead
    place = np.repeat(before - table.range_first_row, rows) + np.arange(len(rules))
    rule = np.full(int(each.sum()), -1, np.int64)
    rule[place] = rules
    changes = int(rule[0] >= 0) + int((rule[1:] != rule[:-1]).sum())
    # A repeating block stands there again and again.
    again = np.where((block > 0) & (rows > 1), (table.range_size - np.uint64(1)) // np.maximum(block, 1), 0)
    return changes + int((again.astype(np.int64) * rows).sum())


def _pages(table: UnwindTable) -> int:
    """How many pages of 64 KiB have code with rules."""
    has = table.range_rows > 0
    section, start = table.range_section[has], table.range_start[has]
    last = start + (table.range_size[has] - np.uint64(1))
    first_page = (start + table.row_offset[table.range_first_row[has]]) >> np.uint64(NUMBER_BITS)
    last_page = np.maximum(last >> np.uint64(NUMBER_BITS), first_page)
    known = (first_page[1:] == last_page[:-1]) & (section[1:] == section[:-1])
    return int((last_page - first_page).sum()) + len(section) - int(known.sum())
