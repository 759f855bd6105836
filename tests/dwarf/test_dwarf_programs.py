"""Instructions and the rows they make: one test for each statement of DWARF 5, section 6.4.2, and its extensions."""

from __future__ import annotations

import pytest

from cfibuilder import (
    ABSPTR,
    DATAREL,
    FUNCREL,
    INDIRECT,
    PCREL,
    SDATA2,
    SDATA4,
    SDATA8,
    SLEB128,
    TEXTREL,
    UDATA2,
    UDATA4,
    UDATA8,
    ULEB128,
    CfiBuilder,
    cfa,
    expr,
)
from dwarf.programs import AT_START, START, amd64, frames_of, last, rows
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.dwarf.decoding import decode
from walkback.dwarf.layout import EntryFault
from walkback.dwarf.rules import to_table

pytestmark = pytest.mark.kernel
BOTH = pytest.mark.parametrize("order", ["little", "big"])


def test_without_instructions_the_rules_are_those_of_the_cie() -> None:
    assert rows("") == [(0, amd64("rsp+8"))]
    assert rows("nop; nop; nop") == [(0, amd64("rsp+8"))]


@pytest.mark.parametrize(
    ("advance", "to"),
    [
        ("advance_loc 1", 1),
        ("advance_loc 63", 63),
        ("advance_loc1 200", 200),
        ("advance_loc2 0x1234", 0x1234),
        ("advance_loc4 0x12345678", 0x12345678),
        ("MIPS_advance_loc8 0x23456789", 0x23456789),
    ],
)
@BOTH
def test_an_advance_begins_a_row(advance: str, to: int, order: ByteOrder) -> None:
    found = rows(f"{advance}; def_cfa_offset 16", order=order)
    assert found == [(0, amd64("rsp+8")), (to, amd64("rsp+16"))]


@pytest.mark.parametrize("advance", ["advance_loc 3", "advance_loc1 3", "advance_loc2 3", "advance_loc4 3"])
def test_advances_are_scaled_and_add_up(advance: str) -> None:
    found = rows(f"{advance}; def_cfa_offset 16; {advance}", code_align=4)
    assert [at for at, _ in found] == [0, 12, 24]


def test_an_advance_by_nothing_makes_no_row() -> None:
    assert rows("advance_loc 0; advance_loc1 0; advance_loc4 0; def_cfa_offset 16") == [(0, amd64("rsp+16"))]


def test_the_last_row_is_at_the_last_of_32_bits() -> None:
    found = rows("advance_loc4 0xfffffffe; advance_loc 1; def_cfa_offset 16")
    assert found[-1] == (0xFFFFFFFF, amd64("rsp+16"))


@pytest.mark.parametrize("advances", ["advance_loc4 0xffffffff; advance_loc 1", "MIPS_advance_loc8 0x100000000"])
def test_a_location_beyond_32_bits_is_a_fault_after_its_rows(advances: str) -> None:
    frames = frames_of("def_cfa_offset 24; " + advances, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.LOCATION]
    assert frames.row_offset.tolist() == [0, 0xFFFFFFFF][: len(frames.row_offset)]


@pytest.mark.parametrize("base", [0, PCREL, TEXTREL, DATAREL, FUNCREL])
@pytest.mark.parametrize(
    "form", [ABSPTR, ULEB128, UDATA2, UDATA4, UDATA8, SLEB128, SDATA2, SDATA4, SDATA8], ids=lambda form: f"{form:#x}"
)
@BOTH
def test_set_loc_in_each_encoding(base: int, form: int, order: ByteOrder) -> None:
    # What is relative counts from below, so that unsigned forms can say it; funcrel means nothing for the start.
    builder = CfiBuilder(order=order, address=0x20, text=0x40, got=0x80)
    encoding = base | form
    cie = builder.cie(cfa(AT_START), encoding=encoding)
    raw = builder.encoded(0x900, form, 0) if base == FUNCREL else None
    for _ in range(2):  # the place of the operand is known the second time
        builder.entries = builder.entries[:1]
        builder.fde(cie, 0x900, 0x100, b"\x01\0\0\0\0\0\0\0\0", raw=raw)
        place = 0x20 + builder.assemble()[1]["fde0.program"] + 1
    operand = builder.encoded(0x930, encoding, place, function=0x900)
    builder.entries = builder.entries[:1]
    builder.fde(cie, 0x900, 0x100, b"\x01" + operand + cfa("def_cfa_offset 16"), raw=raw)
    frames = decode(builder.bytes(), AMD64, address=0x20, byteorder=order, text=0x40, got=0x80)
    assert frames.fdes.start.tolist() == [0x900]
    assert frames.row_offset.tolist() == [0, 0x30]


def test_set_loc_at_an_aligned_place() -> None:
    builder = CfiBuilder(address=0x23)
    cie = builder.cie(cfa(AT_START), encoding=0x50)
    builder.fde(cie, 0x900, 0x100, b"\x01" + bytes(7))
    place = 0x23 + builder.assemble()[1]["fde0.program"] + 1
    builder.entries = builder.entries[:1]
    builder.fde(cie, 0x900, 0x100, b"\x01" + builder.encoded(0x944, 0x50, place))
    frames = decode(builder.bytes(), AMD64, address=0x23)
    assert frames.fdes.start.tolist() == [0x900]
    assert frames.row_offset.tolist() == [0, 0x44]


def test_set_loc_does_not_go_back() -> None:
    program = b"\x41\x01" + (START).to_bytes(8, "little")
    frames = frames_of(program, faults=True, encoding=ABSPTR)
    assert frames.fdes.fault.tolist() == [EntryFault.LOCATION]
    assert frames.row_offset.tolist() == [0]


def test_set_loc_to_where_it_is_makes_no_row() -> None:
    program = b"\x41\x01" + (START + 1).to_bytes(8, "little") + cfa("def_cfa_offset 16")
    assert [at for at, _ in rows(program, encoding=ABSPTR)] == [0, 1]


def test_an_indirect_set_loc_is_not_read() -> None:
    builder = CfiBuilder()
    cie = builder.cie(cfa(AT_START), encoding=INDIRECT)
    builder.fde(cie, 0x100, 16, b"\x01" + (0x104).to_bytes(8, "little"))
    frames = decode(builder.bytes(), AMD64, pointer_at=lambda at: at, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.INDIRECT]


def test_def_cfa_sets_register_and_offset() -> None:
    assert last("def_cfa 6 24") == amd64("rbp+24")


def test_def_cfa_register_keeps_the_offset_and_def_cfa_offset_the_register() -> None:
    assert last("def_cfa_register 6") == amd64("rbp+8")
    assert last("def_cfa_register 6; def_cfa_offset 32; def_cfa_register 10") == amd64("r10+32")
    assert last("def_cfa_offset 0") == amd64("rsp")


def test_signed_forms_are_scaled_and_unsigned_are_not() -> None:
    assert last("def_cfa_sf 6 -2") == amd64("rbp+16")
    assert last("def_cfa_sf 6 1") == amd64("rbp-8")
    assert last("def_cfa_offset_sf -4") == amd64("rsp+32")
    assert last("def_cfa_offset 4") == amd64("rsp+4")


def test_a_cfa_expression_takes_the_place_of_register_and_offset() -> None:
    assert last(f"def_cfa_expression {expr('breg6 -8; deref')}") == amd64("*(rbp-8)")
    assert last(f"def_cfa_expression {expr('breg6 -8; deref')}; def_cfa 7 8") == amd64("rsp+8")


def test_after_a_cfa_expression_register_and_offset_are_those_before_it() -> None:
    # As libgcc and readelf have it; DWARF forbids it.
    expression = f"def_cfa 7 24; def_cfa_expression {expr('breg6 -8; deref')}"
    assert last(f"{expression}; def_cfa_register 10") == amd64("r10+24")
    assert last(f"{expression}; def_cfa_offset 40") == amd64("*(rbp-8)")
    assert last(f"{expression}; def_cfa_offset 40; def_cfa_register 10") == amd64("r10+40")
    assert last(f"{expression}; def_cfa_offset_sf -1") == amd64("*(rbp-8)")


def test_remembered_expressions_come_back() -> None:
    expression = f"def_cfa_expression {expr('breg6 -8; deref')}"
    assert last(f"{expression}; remember_state; def_cfa 7 8; restore_state") == amd64("*(rbp-8)")
    other = f"def_cfa_expression {expr('breg6 -16; deref')}"
    assert last(f"{expression}; remember_state; {other}; restore_state") == amd64("*(rbp-8)")
    assert last(f"remember_state; {expression}; restore_state; def_cfa_offset 16") == amd64("rsp+16")


def test_offset_is_scaled_by_the_data_alignment() -> None:
    assert last("offset 6 2") == amd64("rsp+8", fp="FP = *(CFA-16)")
    assert last("offset 6 2", data_align=-4, start="def_cfa 7 8; offset 16 2") == amd64("rsp+8", fp="FP = *(CFA-8)")
    assert last("offset 6 2", data_align=4, start="def_cfa 7 8; offset_extended_sf 16 -2") == amd64(
        "rsp+8", fp="FP = *(CFA+8)"
    )


def test_extended_and_signed_offsets() -> None:
    assert last("offset_extended 6 3") == amd64("rsp+8", fp="FP = *(CFA-24)")
    assert last("offset_extended_sf 6 -3") == amd64("rsp+8", fp="FP = *(CFA+24)")
    assert last("GNU_negative_offset_extended 6 3") == amd64("rsp+8", fp="FP = *(CFA+24)")


def test_val_offsets_are_values() -> None:
    assert last("val_offset 6 2") == amd64("rsp+8", fp="FP = CFA-16")
    assert last("val_offset_sf 6 -2") == amd64("rsp+8", fp="FP = CFA+16")


def test_a_register_in_another() -> None:
    assert last("register 6 3") == amd64("rsp+8", fp="FP = rbx")
    assert last("register 16 10") == amd64("rsp+8", ra="RA = r10")


def test_undefined_and_same_value() -> None:
    assert last("undefined 6") == amd64("rsp+8", fp="FP undefined")
    assert last("offset 6 2; same_value 6") == amd64("rsp+8")
    assert last("undefined 16") == amd64("rsp+8", ra="RA undefined")


def test_registers_that_are_not_followed_change_nothing() -> None:
    program = "offset 3 2; offset_extended 12 3; val_offset 13 1; register 14 15; undefined 0; same_value 1; restore 3"
    program += f"; expression 2 {expr('breg0 0')}; val_expression 2 {expr('addr 5')}"
    assert rows(program) == [(0, amd64("rsp+8"))]


def test_restore_gives_back_what_the_cie_said() -> None:
    start = AT_START + "; offset 6 2"
    for restore in ("restore 6", "restore_extended 6"):
        assert last(f"same_value 6; {restore}", start=start) == amd64("rsp+8", fp="FP = *(CFA-16)")
        assert last(f"offset 6 5; {restore}") == amd64("rsp+8")
    for restore in ("restore 16", "restore_extended 16"):
        assert last(f"undefined 16; {restore}") == amd64("rsp+8")


def test_restore_leaves_the_cfa() -> None:
    assert last("def_cfa 6 16; offset 6 2; restore 6") == amd64("rbp+16")


def test_remembered_states_nest_and_hold_the_cfa_too() -> None:
    program = """
        advance_loc 1; def_cfa_offset 16; offset 6 2; remember_state;
        advance_loc 1; def_cfa 6 32; undefined 16; remember_state;
        advance_loc 1; def_cfa 10 0; same_value 6;
        advance_loc 1; restore_state;
        advance_loc 1; restore_state;
    """
    saved = "FP = *(CFA-16)"
    assert rows(program) == [
        (0, amd64("rsp+8")),
        (1, amd64("rsp+16", fp=saved)),
        (2, amd64("rbp+32", ra="RA undefined", fp=saved)),
        (3, amd64("r10", ra="RA undefined")),
        (4, amd64("rbp+32", ra="RA undefined", fp=saved)),
        (5, amd64("rsp+16", fp=saved)),
    ]


def test_more_states_than_there_is_room_for_at_first() -> None:
    program = "; ".join(f"def_cfa_offset {n}; remember_state" for n in range(100))
    program += "; def_cfa_offset 1000" + "; advance_loc 1; restore_state" * 100
    assert [text for _, text in rows(program)] == [amd64("rsp+1000")] + [
        amd64(f"rsp+{n}" if n else "rsp") for n in range(99, -1, -1)
    ]


def test_states_are_not_remembered_from_one_function_to_the_next() -> None:
    builder = CfiBuilder()
    cie = builder.cie(cfa(AT_START + "; remember_state"))
    builder.fde(cie, 0x100, 16, cfa("remember_state; def_cfa_offset 64"))
    builder.fde(cie, 0x200, 16, cfa("restore_state"))
    frames = decode(builder.bytes(), AMD64, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.NONE, EntryFault.RESTORE]


def test_functions_do_not_change_each_other() -> None:
    builder = CfiBuilder()
    one, other = builder.cie(cfa(AT_START)), builder.cie(cfa("def_cfa 6 16; offset 16 1; offset 6 2"))
    for number, cie in enumerate([one, other, one]):
        builder.fde(cie, 0x100 * number, 16, cfa("advance_loc 1; undefined 6; def_cfa_offset 48"))
    table = to_table(decode(builder.bytes(), AMD64))
    firsts = [table.rule(int(row)).text(AMD64) for row in table.range_first_row]
    assert firsts == [amd64("rsp+8"), amd64("rbp+16", fp="FP = *(CFA-16)"), amd64("rsp+8")]


def test_a_cie_runs_its_whole_program_before_the_function() -> None:
    # It has no locations.
    assert rows("", start="def_cfa 7 8; advance_loc 3; offset 16 1; remember_state; def_cfa_offset 24") == [
        (0, amd64("rsp+24"))
    ]


def test_args_size_is_passed_over() -> None:
    assert rows("GNU_args_size 16; advance_loc 1; GNU_args_size 0x12345; def_cfa_offset 16") == [
        (0, amd64("rsp+8")),
        (1, amd64("rsp+16")),
    ]


AARCH64_CIE = {"machine": AARCH64, "start": "def_cfa 31 0", "code_align": 4, "ra": 30}


@pytest.mark.parametrize("name", ["GNU_window_save", "negate_ra_state"])
def test_aarch64_toggles_the_signature_of_the_return_address(name: str) -> None:
    program = (
        f"advance_loc 1; {name}; advance_loc 1; def_cfa_offset 16; offset 29 2; offset 30 1; advance_loc 2; {name}"
    )
    assert rows(program, **AARCH64_CIE) == [
        (0, "CFA = sp, RA unchanged, FP unchanged"),
        (4, "CFA = sp, RA unchanged signed, FP unchanged"),
        (8, "CFA = sp+16, RA = *(CFA-8) signed, FP = *(CFA-16)"),
        (16, "CFA = sp+16, RA = *(CFA-8), FP = *(CFA-16)"),
    ]


def test_aarch64_signatures_are_remembered() -> None:
    program = "negate_ra_state; remember_state; negate_ra_state; advance_loc 1; restore_state"
    assert [text for _, text in rows(program, **AARCH64_CIE)] == [
        "CFA = sp, RA unchanged, FP unchanged",
        "CFA = sp, RA unchanged signed, FP unchanged",
    ]


def test_aarch64_signed_with_the_place_of_signing_is_inexpressible() -> None:
    program = "advance_loc 1; negate_ra_state_with_pc"
    found = [text for _, text in rows(program, **AARCH64_CIE)]
    reason = "inexpressible (the return address is signed with the place of the signing)"
    assert found == ["CFA = sp, RA unchanged, FP unchanged", f"CFA {reason}, RA {reason}, FP {reason}"]


@pytest.mark.parametrize("machine", [AMD64, S390X])
@pytest.mark.parametrize("name", ["GNU_window_save", "negate_ra_state_with_pc"])
def test_other_machines_have_no_signatures(machine: Machine, name: str) -> None:
    frames = frames_of(name, machine=machine, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.INSTRUCTION]


def test_rows_as_written_are_those_where_something_was_set_and_the_last() -> None:
    program = (
        "advance_loc 1; offset 3 2; advance_loc 1; def_cfa_offset 8; advance_loc 1; GNU_args_size 0; advance_loc 1"
    )
    frames = frames_of(program)
    assert frames.row_touched.tolist() == [1, 0, 1, 0, 0]
    assert to_table(frames).row_offset.tolist() == [0, 1, 2, 3, 4]
    table = to_table(frames, as_written=True)
    assert (table.row_offset.tolist(), table.range_rows.tolist()) == ([0, 2, 4], [3])


def test_equal_rules_have_one_number() -> None:
    program = "advance_loc 1; def_cfa_offset 16; advance_loc 1; def_cfa_offset 8; advance_loc 1; def_cfa_offset 16"
    frames = frames_of(program)
    assert frames.row_rule.tolist() == [0, 1, 0, 1]
    assert len(frames.rule_words) == 2


def test_many_different_rules_have_many_numbers() -> None:
    frames = frames_of("; ".join(f"def_cfa_offset {n}; advance_loc 1" for n in range(1500)))
    assert frames.row_rule.tolist() == [*range(1500), 1499]
    table = to_table(frames)
    assert table.rules["cfa"]["offset"].tolist() == list(range(1500))
