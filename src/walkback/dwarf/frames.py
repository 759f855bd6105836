"""`Frames`: what an `.eh_frame` or `.debug_frame` section says, as columns.

Two kinds of entries stand in such a section: a CIE (common information entry) has what many functions share, an FDE
(frame description entry) describes one range of code and names its CIE. Their programs, run, give the rows.
"""

from __future__ import annotations

from walkback.base.arch import ByteOrder, Machine
from walkback.base.arrays import I32, I64, U8, U32, U64
from walkback.base.columns import ColumnRecord
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine


@dataclass(slots=True, repr=False)
class Cies(ColumnRecord, OneLine):
    """One element a CIE."""

    position: I64
    end: I64
    fields: I64
    """Where what follows the identifier begins."""
    version: U8
    code_align: U64
    data_align: I64
    ra_column: U64
    address_size: U8
    fde_encoding: U8
    lsda_encoding: U8
    personality: I64
    """Where the pointer to the personality routine stands; -1 if there is none."""
    signal: U8
    b_key: U8
    """AArch64: return addresses are signed with key B."""
    sized: U8
    """Whether the augmentation data say their length."""
    program: I64
    fault: U8


@dataclass(slots=True, repr=False)
class Fdes(ColumnRecord, OneLine):
    """One element an FDE."""

    position: I64
    end: I64
    fields: I64
    cie: I64
    """The number of its CIE."""
    start_field: I64
    """Where the start of the code stands."""
    start: U64
    size: U64
    lsda: U64
    """The address of its language-specific data area; 0 if it has none."""
    program: I64
    fault: U8
    first_row: I64
    rows: I64


@dataclass(slots=True, repr=False)
class Frames(OneLine):
    """What one section says.

    >>> [source] = walkback.dwarf.read("hello")
    >>> source.frames.fdes.size.tolist()
    [17, 8, 10, 9]
    """

    machine: Machine
    data: memoryview
    """Of a relocatable file, with the relocations applied."""
    address: int
    text: int
    got: int
    """What pointers of those encodings count from."""
    byteorder: ByteOrder
    eh: bool
    """`.eh_frame`, not `.debug_frame`."""
    cies: Cies
    fdes: Fdes
    row_offset: U32
    row_rule: U32
    row_touched: U8
    """Whether an instruction set anything since the row before; GNU as writes only such rows to SFrame."""
    rule_words: U64
    """Five words for every distinct rule; see `_program`."""
    stop: int | None
    """Where an entry begins that reaches beyond the end of the section."""
    code_section: I32
    """Of each FDE: in relocatable files the index of its text section, else -1."""
