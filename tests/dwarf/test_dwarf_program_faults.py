"""Instructions that are refused: each fault keeps the rows before it."""

from __future__ import annotations

import pytest

from cfibuilder import (
    CfiBuilder,
    cfa,
    expr,
)
from dwarf.programs import AT_START, frames_of
from walkback.base.arch import AMD64
from walkback.dwarf.decoding import decode
from walkback.dwarf.layout import EntryFault

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("code", [0x17, 0x1C, 0x1E, 0x20, 0x2B, 0x30, 0x3F])
def test_instructions_that_do_not_exist(code: int) -> None:
    frames = frames_of(b"\x41" + bytes([code]), faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.INSTRUCTION]
    assert frames.row_offset.tolist() == [0]


@pytest.mark.parametrize(
    "program",
    [
        *("advance_loc1 1", "advance_loc2 1", "advance_loc4 1", "MIPS_advance_loc8 1", "offset 6 2", "def_cfa 7 8"),
        *("offset_extended 6 2", "def_cfa_sf 7 1", "def_cfa_register 6", "def_cfa_offset 8", "def_cfa_offset_sf 1"),
        *("register 6 3", "undefined 6", "same_value 6", "restore_extended 6", "val_offset 6 1", "val_offset_sf 6 1"),
        *("GNU_args_size 1", "GNU_negative_offset_extended 6 2", "offset_extended_sf 6 1"),
        f"def_cfa_expression {expr('breg7 8')}",
        f"expression 6 {expr('breg7 8')}",
        f"val_expression 6 {expr('breg7 8')}",
    ],
)
def test_an_instruction_that_is_cut_off(program: str) -> None:
    whole = cfa(program)
    for length in range(1, len(whole)):
        builder = CfiBuilder()
        builder.fde(builder.cie(cfa(AT_START), padding=1), 0x100, 16, whole[:length], padding=1)
        builder.fde(0, 0x200, 16)
        frames = decode(builder.bytes(), AMD64, faults=True)
        assert frames.fdes.fault.tolist() == [EntryFault.INSTRUCTION, EntryFault.NONE]
        assert frames.fdes.rows.tolist() == [0, 1]


def test_a_fault_keeps_the_rows_before_it() -> None:
    frames = frames_of("advance_loc 1; def_cfa_offset 16; advance_loc 1; restore_state", faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.RESTORE]
    assert frames.row_offset.tolist() == [0, 1]
    assert frames.fdes.rows.tolist() == [2]


@pytest.mark.parametrize("program", ["restore_state", "remember_state; restore_state; restore_state"])
def test_restoring_what_was_not_remembered(program: str) -> None:
    assert frames_of(program, faults=True).fdes.fault.tolist() == [EntryFault.RESTORE]


def test_every_fault_has_its_words() -> None:
    assert [fault for fault in EntryFault if not fault.words] == [EntryFault.NONE]
