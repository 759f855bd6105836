"""Expressions: what has a meaning in the table is understood, all else is inexpressible and never wrong."""

from __future__ import annotations

from typing import Any

import pytest

from cfibuilder import CfiBuilder, cfa, expr, uleb
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.dwarf.decoding import decode
from walkback.dwarf.rules import to_table
from walkback.table.table import UnwindTable

pytestmark = pytest.mark.kernel

NOT_UNDERSTOOD = "inexpressible (an expression that is no rule of the table)"
BOTH = pytest.mark.parametrize("order", ["little", "big"])


def read(
    program: bytes | str,
    *,
    machine: Machine = AMD64,
    start: int = 0x1000,
    size: int = 0x100,
    order: ByteOrder = "little",
) -> UnwindTable:
    builder = CfiBuilder(order=order)
    first = program if isinstance(program, bytes) else cfa(program, order)
    builder.fde(builder.cie(cfa("def_cfa 7 8"), ra=machine.ra, version=3), start, size, first)
    return to_table(decode(builder.bytes(), machine, byteorder=order))


def last(program: bytes | str, **options: Any) -> str:
    table = read(program, **options)
    return table.rule(len(table.row_rule) - 1).text(table.machine)


def of_cfa(expression: str, *, order: ByteOrder = "little", machine: Machine = AMD64) -> str:
    """What a CFA that is an expression becomes."""
    text = last(f"def_cfa_expression {expr(expression, order)}", order=order, machine=machine)
    return text.removesuffix(", RA unchanged, FP unchanged").removeprefix("CFA").removeprefix(" =").strip()


def of_fp(name: str, expression: str) -> str:
    text = last(f"{name} 6 {expr(expression)}")
    return text.removeprefix("CFA = rsp+8, RA unchanged, FP").removeprefix(" =").strip()


@pytest.mark.parametrize(
    ("expression", "meaning"),
    [
        ("breg6 16", "rbp+16"),
        ("breg6 -8", "rbp-8"),
        ("breg31 0", "r31"),
        ("bregx 10 0", "r10"),
        ("bregx 100 -5", "r100-5"),
        ("breg6 -8; deref", "*(rbp-8)"),
        ("breg7 0; lit8; plus", "rsp+8"),
        ("lit8; breg7 0; plus", "rsp+8"),
        ("breg7 40; lit8; minus", "rsp+32"),
        ("breg7 0; plus_uconst 300; deref", "*(rsp+300)"),
        ("breg7 1; const1u 200; plus", "rsp+201"),
        ("breg7 1; const1s -2; plus", "rsp-1"),
        ("breg7 1; const2u 0x8001; plus", "rsp+32770"),
        ("breg7 1; const2s -300; plus", "rsp-299"),
        ("breg7 1; const4u 0x80000001; plus", "rsp+2147483650"),
        ("breg7 1; const4s -70000; plus", "rsp-69999"),
        ("breg7 1; const8u 0x123456789; plus", "rsp+4886718346"),
        ("breg7 1; const8s -5000000000; plus", "rsp-4999999999"),
        ("breg7 1; constu 1000; plus", "rsp+1001"),
        ("breg7 1; consts -1000; plus", "rsp-999"),
        ("nop; breg6 8; nop", "rbp+8"),
        ("breg7 8; dup; drop", "rsp+8"),
        ("lit5; breg7 8; swap; plus", "rsp+13"),
        ("breg3 8; breg7 16; swap; drop", "rsp+16"),
        ("breg3 8; breg7 16; swap", "rbx+8"),
        ("lit1; lit2; plus; breg7 0; plus", "rsp+3"),
    ],
)
@BOTH
def test_what_a_cfa_expression_means(expression: str, meaning: str, order: ByteOrder) -> None:
    assert of_cfa(expression, order=order) == meaning


@pytest.mark.parametrize(
    "expression",
    [
        *("nop", "lit8", "lit8; deref", "addr 0x1000", "addr 0x1000; deref", "drop", "deref", "plus", "swap"),
        *("breg7 0; breg6 0; plus", "breg7 0; breg6 0; minus", "lit8; breg7 0; minus", "breg7 0; neg"),
        *("breg7 0; deref; deref", "breg7 0; deref; plus_uconst 8", "breg7 0; deref; lit8; minus", "breg7 8; plus"),
        *("breg7 0; lit2; mul", "breg7 0; lit7; and", "breg7 8; lit1; shl", "breg7 0; lit1; ge", "breg7 0; over"),
        *(
            "breg7 0; deref_size 4",
            "call_frame_cfa",
            "call_frame_cfa; deref",
            "breg7 0; const8u 0x7fffffffffffffff; plus",
        ),
        *("bregx 65536 0", f"bregx {2**70} 0", f"bregx 6 {2**43}", f"breg6 {-(2**43)}", f"breg6 {2**80}"),
        *(f"breg7 0; constu {2**64}; plus", f"breg7 0; plus_uconst {2**63}", "breg7 0; " + "lit0; plus; " * 40),
    ],
)
def test_what_is_not_understood(expression: str) -> None:
    assert of_cfa(expression) == NOT_UNDERSTOOD


@pytest.mark.parametrize(
    "operation", [0x00, 0x01, 0x02, 0x07, 0x21, 0x28, 0x2F, 0x50, 0x6F, 0x90, 0x93, 0xA0, 0xE0, 0xFF]
)
def test_operations_that_do_not_belong_here(operation: int) -> None:
    body = bytes([0x77, 8, operation])
    assert of_raw(body) == NOT_UNDERSTOOD


def test_an_empty_expression() -> None:
    assert of_raw(b"") == NOT_UNDERSTOOD
    assert last(b"\x10\x06\0") == "CFA = rsp+8, RA unchanged, FP = *(CFA)"


def of_raw(body: bytes) -> str:
    text = last(b"\x0f" + uleb(len(body)) + body)
    return text.removesuffix(", RA unchanged, FP unchanged").removeprefix("CFA").removeprefix(" =").strip()


@pytest.mark.parametrize(
    "body",
    [b"\x77", b"\x77\x80", b"\x92", b"\x92\x06", b"\x77\x08\x0a\x01", b"\x77\x08\x23", b"\x77\x08\x0e\0\0\0\0\0\0\0"],
)
def test_an_expression_that_is_cut_off(body: bytes) -> None:
    assert of_raw(body) == NOT_UNDERSTOOD


def test_a_long_expression_is_not_taken_for_its_beginning() -> None:
    assert of_raw(b"\x77\x08" + b"\x96" * 254) == "rsp+8"
    assert of_raw(b"\x77\x08" + b"\x96" * 253 + b"\x23\x08") == NOT_UNDERSTOOD
    assert of_raw(b"\x77\x08" + b"\x96" * 255) == NOT_UNDERSTOOD


def test_lengths_and_numbers_can_be_padded() -> None:
    body = b"\x77\x88" + b"\x80" * 11 + b"\0"
    assert last(b"\x0f" + bytes([len(body) | 0x80]) + b"\x80" * 12 + b"\0" + body).startswith("CFA = rsp+8,")


@pytest.mark.parametrize(
    ("expression", "where", "value"),
    [
        ("breg6 -16", "*(rbp-16)", "rbp-16"),
        ("breg6 -16; deref", NOT_UNDERSTOOD, "*(rbp-16)"),
        ("lit16; minus", "*(CFA-16)", "CFA-16"),
        ("plus_uconst 8", "*(CFA+8)", "CFA+8"),
        ("deref", NOT_UNDERSTOOD, "*(CFA)"),
        ("nop", "*(CFA)", "CFA"),
        ("drop; breg3 0", "*(rbx)", "rbx"),
        ("lit5", NOT_UNDERSTOOD, NOT_UNDERSTOOD),
        ("breg7 0; plus", NOT_UNDERSTOOD, NOT_UNDERSTOOD),
        ("drop", NOT_UNDERSTOOD, NOT_UNDERSTOOD),
        ("drop; drop", NOT_UNDERSTOOD, NOT_UNDERSTOOD),
    ],
)
def test_rules_of_registers_begin_with_the_cfa_and_say_a_place_or_a_value(
    expression: str, where: str, value: str
) -> None:
    assert of_fp("expression", expression) == where
    assert of_fp("val_expression", expression) == value


def test_a_part_that_is_not_understood_leaves_the_others() -> None:
    text = last(f"offset 16 1; expression 6 {expr('breg7 0; lit2; mul')}")
    assert text == f"CFA = rsp+8, RA = *(CFA-8), FP {NOT_UNDERSTOOD}"


def test_realigned_stack() -> None:
    # GCC's DRAP: r10 holds the CFA, then the word at rbp-8 does.
    program = f"""
        def_cfa 7 8; offset 16 1; advance_loc 5; def_cfa 10 0; advance_loc 12; expression 6 {expr("breg6 0")};
        advance_loc 2; def_cfa_expression {expr("breg6 -8; deref")}
    """
    table = read(program)
    assert [table.rule(row).text(AMD64) for row in range(4)] == [
        "CFA = rsp+8, RA = *(CFA-8), FP unchanged",
        "CFA = r10, RA = *(CFA-8), FP unchanged",
        "CFA = r10, RA = *(CFA-8), FP = *(rbp)",
        "CFA = *(rbp-8), RA = *(CFA-8), FP = *(rbp)",
    ]


def test_signal_trampoline_of_amd64() -> None:
    program = f"def_cfa_expression {expr('breg7 160; deref')}; expression 7 {expr('breg7 160')}"
    program += f"; expression 16 {expr('breg7 168')}; expression 6 {expr('breg7 120')}"
    assert last(program) == "CFA = *(rsp+160), RA = *(rsp+168), FP = *(rsp+120)"
    assert "SP is not the CFA" in last(
        program.replace(f"expression 7 {expr('breg7 160')}", f"expression 7 {expr('breg7 152')}")
    )


# Procedure linkage tables


def plt(
    base: str = "breg7 8", mask: str = "lit15", start: str = "lit11", shift: str = "lit3", pc: str = "breg16 0"
) -> str:
    return f"def_cfa_expression {expr(f'{base}; {pc}; {mask}; and; {start}; ge; {shift}; shl; plus')}"


LAZY = "def_cfa 7 16; offset 16 1; advance_loc 6; def_cfa_offset 24; advance_loc 10; "


def laid(table: UnwindTable) -> list[tuple[int, int, int, list[tuple[int, str]]]]:
    """Start, size, block and rows of each range."""
    found = []
    for number in range(len(table)):
        first = int(table.range_first_row[number])
        rows = range(first, first + int(table.range_rows[number]))
        texts = [(int(table.row_offset[row]), table.rule(row).text(AMD64)) for row in rows]
        found.append(
            (int(table.range_start[number]), int(table.range_size[number]), int(table.range_block[number]), texts)
        )
    return found


def rsp(offset: int) -> str:
    return f"CFA = rsp+{offset}, RA = *(CFA-8), FP unchanged"


@pytest.mark.parametrize("first", [11, 9, 10, 5])
def test_a_lazy_linkage_table_is_its_first_entry_and_repeating_blocks(first: int) -> None:
    table = read(LAZY + plt(start=f"lit{first}"), size=0x60)
    assert laid(table) == [
        (0x1000, 16, 0, [(0, rsp(16)), (6, rsp(24))]),
        (0x1010, 0x50, 16, [(0, rsp(8)), (first, rsp(16))]),
    ]
    assert table.range_origin.tolist() == [0, 0]


def test_blocks_of_other_sizes_and_other_numbers() -> None:
    table = read("offset 16 1; " + plt(mask="const1u 31", start="const1u 20", shift="lit4", base="breg7 24"), size=64)
    assert laid(table) == [(0x1000, 64, 32, [(0, rsp(24)), (20, rsp(40))])]


def test_a_linkage_table_keeps_its_place_among_functions() -> None:
    builder = CfiBuilder()
    cie = builder.cie(cfa("def_cfa 7 8; offset 16 1"), augmentation=b"zRS")
    builder.fde(cie, 0x100, 16)
    builder.fde(cie, 0x1000, 0x40, cfa(LAZY + plt()))
    builder.fde(cie, 0x200, 16, cfa("advance_loc 1; def_cfa_offset 16"))
    table = to_table(decode(builder.bytes(), AMD64))
    assert table.range_start.tolist() == [0x100, 0x1000, 0x1010, 0x200]
    assert table.range_origin.tolist() == [0, 1, 1, 2]
    assert table.range_signal.tolist() == [True] * 4
    assert table.find(0x2FFF) is None
    assert [table.find(pc).rule.cfa.offset for pc in (0x1000, 0x1006, 0x1010, 0x101A, 0x101B, 0x1020, 0x103F)] == [
        *(16, 24, 8, 8, 16, 8, 16)
    ]
    assert table.find(0x201).rule.cfa.offset == 16


def test_rows_after_the_blocks_are_a_range_again() -> None:
    table = read("offset 16 1; " + plt() + "; advance_loc 32; def_cfa 7 8; advance_loc 4; def_cfa_offset 16", size=48)
    assert laid(table) == [
        (0x1000, 32, 16, [(0, rsp(8)), (11, rsp(16))]),
        (0x1020, 16, 0, [(0, rsp(8)), (4, rsp(16))]),
    ]


def test_blocks_that_do_not_begin_where_the_code_does_are_inexpressible() -> None:
    table = read("offset 16 1; advance_loc 4; " + plt(), size=48)
    reason = "inexpressible (the CFA changes within blocks that are not aligned)"
    assert laid(table)[0][3] == [(0, rsp(8)), (4, f"CFA {reason}, RA {reason}, FP {reason}")]


def test_rows_after_the_end_of_a_linkage_table_are_left_out() -> None:
    assert laid(read(LAZY + plt(), size=8)) == [(0x1000, 8, 0, [(0, rsp(16)), (6, rsp(24))])]


@pytest.mark.parametrize("size", [0, 2**63, 2**64 - 1])
def test_linkage_tables_of_impossible_sizes(size: int) -> None:
    builder = CfiBuilder(eh=False)
    builder.fde(builder.cie(cfa("def_cfa 7 8; offset 16 1")), 0, size, cfa(plt()))
    table = to_table(decode(builder.bytes(), AMD64, eh=False))
    assert table.range_size.tolist() == [size]
    assert table.find(2**62 + 13) is None if not size else table.find(2**62 + 13).rule.cfa.offset == 16


@pytest.mark.parametrize(
    "options",
    [
        {"mask": "lit14"},
        {"mask": "const1s -1"},
        {"mask": "const1s -16"},
        {"mask": "lit0"},
        {"mask": "constu 0x1ffff"},
        {"start": "lit0"},
        {"start": "lit16"},
        {"start": "const1s -4"},
        {"shift": "lit17"},
        {"shift": "const1s -1"},
        {"pc": "breg15 0"},
        {"pc": "breg16 1"},
        {"base": "bregx 65536 8"},
        {"base": f"breg7 {2**70}"},
        {"base": "lit8"},
    ],
)
def test_steps_of_other_kinds_are_not_understood(options: dict[str, Any]) -> None:
    table = read(plt(**options))
    assert laid(table) == [(0x1000, 0x100, 0, [(0, f"CFA {NOT_UNDERSTOOD}, RA unchanged, FP unchanged")])]


@pytest.mark.parametrize("machine", [AARCH64, S390X])
def test_only_amd64_names_the_program_counter(machine: Machine) -> None:
    # The column of the return address is an ordinary register there.
    assert (
        of_cfa(f"breg7 8; bregx {machine.ra} 0; lit15; and; lit11; ge; lit3; shl; plus", machine=machine)
        == NOT_UNDERSTOOD
    )
