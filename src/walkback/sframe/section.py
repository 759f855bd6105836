"""A section as its bytes say it: columns of functions, rows and shapes.

`Section` is faithful: it keeps what the neutral table cannot hold (version, flags, sizes of fields, order and
position of the rows, gaps, bytes after the end), so that encoding it gives the bytes it came from.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from walkback.base.arch import ByteOrder, Machine
from walkback.base.arrays import I32, I64, U8, U16, U32, U64, Bools
from walkback.base.columns import ColumnRecord
from walkback.base.dataclass import dataclass
from walkback.base.findings import Fault
from walkback.base.oneline import OneLine
from walkback.sframe import layout
from walkback.sframe.header import Places


class RowFault(Fault):
    """Why the rows of a function could not all be read."""

    NONE = 0
    CUT_OFF = 1, "a row runs over the end of the FRE sub-section", "row-cut-off"
    WORD_SIZE = 2, "a row has word size code 3, which means nothing", "row-word-size"
    FRE_TYPE = 3, "the FRE type is none of ADDR1, ADDR2 and ADDR4", "function-fre-type"
    ATTRIBUTE = 4, "the attribute record does not lie in the FRE sub-section", "function-attribute"
    SHARED = 5, "functions claim more rows than the section has bytes", "rows-shared"


@dataclass(slots=True, repr=False)
class FunctionIndex(ColumnRecord, OneLine):
    """The function index: one entry a function in each column, in the order of the index."""

    start: I64
    """As stored; `Section.code_address` has what it means."""
    size: U32
    fre_offset: U32
    num_fres: U32
    """As claimed; `rows` is how many could be read."""
    info: U8
    info2: U8
    """Version 3 only, else 0."""
    rep_size: U8
    """Versions 2 and 3, else 0."""
    padding: U16
    """Version 2 only, else 0."""
    first_row: I64
    """Rows stand function by function, so this is the sum of `rows` before."""
    rows: I64
    fault: U8
    fault_offset: I64
    """Where reading stopped, in the section; meaningful where `fault` is not 0."""

    @property
    def fre_type(self) -> U8:
        """Size code of the row starts."""
        return self.info & np.uint8(15)

    @property
    def start_size(self) -> U8:
        """Bytes of a row's start; 0 for a size code that means nothing."""
        sizes: U8 = np.array((*layout.FRE_START_SIZES, *(0,) * 13), np.uint8)[self.fre_type]
        return sizes

    @property
    def pc_type(self) -> U8:
        """Incrementing, or masking in a repeating block."""
        return (self.info >> np.uint8(layout.FDE_PC_TYPE_SHIFT)) & np.uint8(1)

    @property
    def pauth_key(self) -> U8:
        """AArch64: key A or B signs the return address."""
        return (self.info >> np.uint8(layout.FDE_PAUTH_KEY_SHIFT)) & np.uint8(1)

    @property
    def fde_type(self) -> U8:
        """Default or flex; always default before version 3."""
        return self.info2 & np.uint8(layout.FDE_TYPE_MASK)


@dataclass(slots=True, repr=False)
class Shapes(OneLine):
    """The distinct rows without their starts: how the data words are to be read, the info byte, the words."""

    fde_type: U8
    info: U8
    first_word: I64
    """One entry more than there are shapes: words of shape s are `words[first_word[s]:first_word[s + 1]]`."""
    words: I32
    """Sign-extended."""

    def __len__(self) -> int:
        return len(self.info)

    @property
    def word_count(self) -> U8:
        """Data words of each shape."""
        return (self.info >> np.uint8(1)) & np.uint8(15)

    @property
    def word_size(self) -> U8:
        """Bytes of a data word of each shape."""
        sizes = np.array((*layout.FRE_WORD_SIZES, 0), np.uint8)
        chosen: U8 = sizes[(self.info >> 5) & 3]
        return chosen

    @property
    def length(self) -> I64:
        """Bytes of each shape: the info byte and the words."""
        return 1 + self.word_count.astype(np.int64) * self.word_size

    def first_words(self, count: int) -> I64:
        """The first `count` words of every shape, a row for each position; 0 where there are fewer."""
        words = np.zeros((count, len(self)), np.int64)
        position = np.arange(count)[:, None]
        has = self.word_count > position
        words[has] = self.words[(self.first_word[:-1] + position)[has]]
        return words


@dataclass(slots=True, repr=False)
class Section(Places, OneLine):
    """One SFrame section, or one complete piece of several that stand in one section.

    >>> [found] = walkback.ElfFile("a.out").sframe
    >>> found.section.sorted, found.section.functions.num_fres.tolist()
    (True, [1, 4, 3])
    """

    version: int
    flags: int
    abi_arch: int
    cfa_fixed_fp_offset: int
    cfa_fixed_ra_offset: int
    auxiliary: bytes
    """The auxiliary header."""
    num_fdes: int
    """As the header claims; `len(functions)` is how many there are."""
    num_fres: int
    fre_len: int
    fdeoff: int
    freoff: int
    byteorder: ByteOrder
    functions: FunctionIndex
    row_start: U32
    row_shape: U32
    shapes: Shapes
    length: int
    """Bytes of the section, with all that follows the rows."""
    gaps: tuple[tuple[int, bytes | memoryview], ...] = ()
    """Bytes that belong to no part: position and content, which is not copied from where it was read."""
    address: int = 0
    """Where the section's first byte is loaded."""
    code_section: I32 | None = None
    """In relocatable files: the index of each function's text section."""
    code_address: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Where each function starts: an address, or in relocatable files the offset in its text section."""

    @property
    def machine(self) -> Machine | None:
        """The machine whose ABI gives the words their meaning; None for an unknown identifier."""
        return layout.ABI_MACHINES.get(self.abi_arch)

    @property
    def sorted(self) -> bool:
        """Whether the header says that the functions are in order of their starts."""
        return bool(self.flags & layout.F_FDE_SORTED)

    @property
    def pcrel(self) -> bool:
        """Whether a start counts from its own field."""
        return bool(self.flags & layout.F_FDE_FUNC_START_PCREL)

    @property
    def auxhdr_len(self) -> int:
        """Bytes of the auxiliary header."""
        return len(self.auxiliary)

    @property
    def signal(self) -> Bools:
        """Which functions are signal frames: nothing before version 3 can say so."""
        if self.version < 3:
            return np.zeros(len(self.functions), np.bool_)
        marked: Bools = (self.functions.info & layout.FDE_SIGNAL) != 0
        return marked

    @property
    def block_size(self) -> U32:
        """The size of each function's repeating block; 0 for functions that are none."""
        masked = self.functions.pc_type == layout.PC_TYPE_MASK
        if self.version == 1:
            return np.where(masked, layout.V1_REP_SIZE, 0).astype(np.uint32)
        return np.where(masked, self.functions.rep_size, 0).astype(np.uint32)

    def field_offset(self, function: int) -> int:
        """Position of a function's start field, where relocations apply."""
        return self.fde_start + function * self.fde_size

    def row_offset(self, function: int, row: int) -> int:
        """Position of one row of a function, which is quicker than that of all."""
        functions = self.functions
        before = self.row_shape[int(functions.first_row[function]) : row]
        width = layout.FRE_START_SIZES[int(functions.fre_type[function])]
        start = self.fre_start + int(functions.fre_offset[function]) + self.head_size
        info = self.shapes.info[before].astype(np.int64)
        return start + len(before) * (width + 1) + int((((info >> 1) & 15) << ((info >> 5) & 3)).sum())

    def row_lengths(self) -> I64:
        """Bytes of every row."""
        return np.repeat(self.functions.start_size, self.functions.rows) + self.shapes.length[self.row_shape]

    def row_offsets(self) -> I64:
        """Position of every row in the section."""
        functions, length = self.functions, self.row_lengths()
        before = np.cumsum(length) - length
        base = self.fre_start + functions.fre_offset.astype(np.int64) + self.head_size
        has = functions.rows > 0
        base[has] -= before[functions.first_row[has]]
        return before + np.repeat(base, functions.rows)


def start_bases(section: Section) -> U64:
    """What each function's start field counts from: its own address, or the section's."""
    base = np.full(len(section.functions), section.address % 2**64, np.uint64)
    if section.pcrel:
        base += np.uint64(section.fde_start)
        base += np.arange(len(base), dtype=np.uint64) * np.uint64(section.fde_size)
    return base
