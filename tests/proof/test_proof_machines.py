"""The proof on what compilers make of AArch64 and s390x alone, in small functions and from the compilers themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import walkback
from damaged import SHAPES, assembled, assembly
from peers import peer
from proof.assembled import END, HEAD, verified

if TYPE_CHECKING:
    from pathlib import Path

SAVES = (
    "stmg %r14,%r15,112(%r15); .cfi_offset 14,-48; .cfi_offset 15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320;"
    "brasl %r14,g; lmg %r14,%r15,272(%r15); .cfi_restore 14; .cfi_restore 15; .cfi_def_cfa_offset 160; br %r14"
)


@pytest.mark.parametrize(("link", "is_proved"), [("%r0", True), ("%r14", False)])
def test_the_call_of_a_tracer_keeps_the_link_register_of_s390x(link: str, is_proved: bool, tmp_path: Path) -> None:
    found = verified(f"brasl {link},__fentry__; {SAVES}", tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.functions_proved, found.functions_wrong) == (is_proved, not is_proved)
    assert found.unknown == 0


@pytest.mark.parametrize(
    ("executed", "is_proved"), [("mvc 0(1,%r2),0(%r3)", True), ("lr %r1,%r2", False), ("la %r1,0(%r2)", False)]
)
def test_what_exrl_executes_may_change_any_register(executed: str, is_proved: bool, tmp_path: Path) -> None:
    text = f"exrl %r4,1f; {SAVES}; 1: {executed}"
    found = verified(text, tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.functions_proved, found.functions_wrong) == (is_proved, not is_proved)


@pytest.mark.parametrize(
    ("executed", "where", "is_proved"),
    [
        ("nop", "bras %r1,2f; mvc 0(1,%r2),0(%r3); 2: ex %r4,0(%r1)", True),
        ("nop", "bras %r1,2f; lr %r1,%r2; nopr; 2: ex %r4,0(%r1)", False),
        ("lr %r1,%r2", "larl %r1,1f; ex %r4,0(%r1)", False),
        ("mvc 0(1,%r2),0(%r3)", "ex %r4,0(%r2)", False),
        ("mvc 0(1,%r2),0(%r3)", "larl %r1,1f; ex %r4,0(%r1,%r2)", False),
    ],
)
def test_so_may_what_ex_executes_unless_its_place_is_known(
    executed: str, where: str, is_proved: bool, tmp_path: Path
) -> None:
    found = verified(f"{where}; {SAVES}; 1: {executed}", tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.functions_proved, found.functions_wrong) == (is_proved, not is_proved)


def test_a_jump_over_a_number_is_no_call(tmp_path: Path) -> None:
    found = verified(f"bras %r1,1f; .long 0; 1: l %r2,0(%r1); {SAVES}", tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.functions_proved, found.not_reached) == (1, 4)


@pytest.mark.parametrize(
    ("text", "proved"),
    [
        ("stg %r14,-16(%r15); aghi %r15,-16; .cfi_def_cfa_offset 176; .cfi_offset 14,-176; stg %r14,0(%r15); nopr", 1),
        ("stg %r14,-16(%r15); aghi %r15,-16; .cfi_def_cfa_offset 176; .cfi_offset 14,-176; stg %r2,0(%r15); nopr", 0),
        (
            (
                "lgfi %r1,-524296; stg %r14,0(%r1,%r15); lgfi %r1,-524296; la %r15,0(%r15,%r1);"
                ".cfi_def_cfa_offset 524456; .cfi_offset 14,-524456; nopr; agfi %r15,524296; .cfi_def_cfa_offset 160"
            ),
            1,
        ),
        ("lgfi %r1,-524296; stg %r14,0(%r1,%r15); .cfi_offset 14,-524448; nopr", 0),
    ],
    ids=["stored twice", "something else stored over it", "by an index", "elsewhere by an index"],
)
def test_go_saves_the_link_register_of_s390x_twice_or_by_an_index(text: str, proved: int, tmp_path: Path) -> None:
    end = "; lg %r14,0(%r15); .cfi_restore 14; aghi %r15,16; .cfi_def_cfa_offset 160" if "aghi" in text else ""
    text = f".cfi_val_offset 15,-160; {text}{end}; .cfi_restore 14; br %r14"
    found = verified(text, tmp_path, assembler=peer("s390x-as-2.44"))
    assert found.functions_proved == proved


SHADOW = ("-fsanitize=shadow-call-stack", "-ffixed-x18")
MADE = [
    ("clang-19", "c", ("-O0", "-mapxf")),
    ("clang-19", "c", ("-O2", "-mapxf")),
    ("clang-19", "cc", ("-O2", "-mapxf")),
    ("clang-19", "cc", ("-Os", "-mapxf")),
    ("s390x-gcc", "c", ("-O2", "-pg", "-mfentry")),
    ("s390x-gcc", "cc", ("-O0", "-pg", "-mfentry")),
    ("aarch64-gcc", "c", ("-O0", *SHADOW)),
    ("aarch64-gcc", "c", ("-O2", "-fPIC", *SHADOW)),
    ("aarch64-clang-19", "c", ("-O2", *SHADOW)),
    ("aarch64-clang-19", "cc", ("-O1", *SHADOW)),
    ("aarch64-clang-19", "c", ("-O1", "-moutline")),
    ("aarch64-clang-19", "cc", ("-O2", "-moutline")),
    ("aarch64-clang-19", "cc", ("-Os", "-moutline", "-mbranch-protection=standard")),
]


@pytest.mark.parametrize(("compiler", "ending", "options"), MADE, ids=str)
def test_what_compilers_make_is_proved(compiler: str, ending: str, options: tuple[str, ...], tmp_path: Path) -> None:
    lines = assembly(compiler, *options, folder=tmp_path, source=SHAPES / f"shapes.{ending}")
    whole = assembled(compiler, lines, tmp_path / "whole.o")
    assert whole is not None
    [found] = walkback.verify(whole)
    assert (found.mismatches, found.proved) == ([], found.reached)


OUTLINED = (
    ".type OUTLINED_FUNCTION_0,%function; OUTLINED_FUNCTION_0: .cfi_startproc; {}; ret; .cfi_endproc;"
    ".size OUTLINED_FUNCTION_0,.-OUTLINED_FUNCTION_0;"
)
FRAME = (
    "stp x29,x30,[sp,#-32]!; .cfi_def_cfa_offset 32; .cfi_offset 29,-32; .cfi_offset 30,-24; bl OUTLINED_FUNCTION_0;"
    "{} nop; ldp x29,x30,[sp],#32; .cfi_restore 29; .cfi_restore 30; .cfi_def_cfa_offset 0; ret"
)


@pytest.mark.parametrize(
    ("outlined", "row", "wrong"),
    [
        ("str x19,[sp,#16]; mov x19,x0", ".cfi_offset 19,-16;", []),
        ("mov x1,x0", "", []),
        ("mov x19,x0", "", ["x19"]),
        ("str x19,[sp,#24]; mov x19,x0", ".cfi_offset 19,-16;", ["x19"]),
    ],
)
def test_what_was_outlined_happens_where_it_is_called(
    outlined: str, row: str, wrong: list[str], tmp_path: Path
) -> None:
    before = ".text\n" + OUTLINED.format(outlined).replace(";", "\n") + HEAD.replace("@", "%")
    found = verified(FRAME.format(row), tmp_path, before, END, peer("aarch64-as-2.44"))
    assert [one.what for one in found.mismatches if one.function == "f"] == wrong
    assert [one for one in found.mismatches if one.function != "f"] == []


@pytest.mark.parametrize(
    "load",
    ["ldr w0", "ldr x0", "ldrb w0", "ldrh w0", "ldrsb x0", "ldrsb w0", "ldrsh x0", "ldrsw x0", "ldr s0", "ldr q0"],
)
@pytest.mark.parametrize("place", ["[sp],#16", "[sp,#16]!"])
def test_every_load_of_aarch64_moves_its_base(load: str, place: str, tmp_path: Path) -> None:
    text = f"sub sp,sp,#16; .cfi_def_cfa_offset 16; str w0,[sp]; nop; {load},{place}; .cfi_def_cfa_offset 0; nop; ret"
    found = verified(text, tmp_path, HEAD.replace("@", "%"), END, peer("aarch64-as-2.44"))
    assert (found.proved, found.mismatches) == (found.bytes, [])


def test_a_loop_that_probes_the_stack_may_compare_and_branch_in_one_instruction(tmp_path: Path) -> None:
    """As LLVM's for s390x."""
    text = (
        ".cfi_val_offset 15,-160; lgr %r0,%r15; .cfi_def_cfa_register 0; aghi %r0,-12288; .cfi_def_cfa_offset 12448;"
        "1: aghi %r15,-4096;"
        "cg %r0,4088(%r15); clgrjh %r15,%r0,1b; .cfi_def_cfa_register 15; aghi %r15,-552; .cfi_def_cfa_offset 13000;"
        "aghi %r15,12840; .cfi_def_cfa_offset 160; br %r14"
    )
    found = verified(text, tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.proved, found.mismatches) == (found.reached, [])
    for loop in ("clgrjl %r15,%r0,8f; jh 1b", "clrjh %r15,%r0,1b"):  # another condition, or 32 bits
        other = text.replace("clgrjh %r15,%r0,1b", f"cgr %r2,%r3; {loop}") + "; .cfi_def_cfa 0,13000; 8: nopr; j 8b"
        assert verified(other, tmp_path, assembler=peer("s390x-as-2.44")).wrong


def test_an_impossible_copy_through_vector_registers_leaves_a_doubt(tmp_path: Path) -> None:
    """Of eight elements, in a loop that moves what is left of an array of four: it loads what was saved, too."""
    text = (
        "hint #25; .cfi_negate_ra_state; sub sp,sp,#96; .cfi_def_cfa_offset 96; stp x29,x30,[sp,#64];"
        ".cfi_offset 29,-32; .cfi_offset 30,-24;"
        "add x29,sp,#64; .cfi_def_cfa 29,32; bl g; sub x9,x29,#16; cmp x0,#8; b.lo 2f; 1: ldur q2,[x9,#8];"
        "subs x0,x0,#8; ldur q0,[x9,#24]; stp q2,q0,[x9],#64; b.ne 1b; 2: ldp x29,x30,[sp,#64]; .cfi_restore 29;"
        ".cfi_restore 30; .cfi_def_cfa 31,96; add sp,sp,#96; .cfi_def_cfa_offset 0; hint #29;"
        ".cfi_negate_ra_state; ret"
    )
    found = verified(text, tmp_path, assembler=peer("aarch64-as-2.44"))
    assert found.mismatches == []
    assert set(found.reasons) == {"doubtful-path"}


def test_a_return_address_that_is_signed_with_an_unknown_stack_pointer_is_unknown(tmp_path: Path) -> None:
    """A function with vectors on its stack, whose length is unknown, goes on in one that signs."""
    text = (
        ".arch_extension sve; addvl sp,sp,#-1; .cfi_escape 0xf,0xa,0x8f,0,0x92,0x2e,0,0x38,0x1e,0x22,0x23,0; nop;"
        "addvl sp,sp,#1; .cfi_def_cfa 31,0; b signs"
    )
    behind = (
        "\n.cfi_endproc\n.size f,.-f\nsigns: .cfi_startproc; paciasp; .cfi_negate_ra_state; nop; autiasp;"
        ".cfi_negate_ra_state; ret; .cfi_endproc;"
    )
    found = verified(text, tmp_path, behind=behind.replace(";", "\n"), assembler=peer("aarch64-as-2.44"))
    assert (found.mismatches, found.reasons["cfa-value"]) == ([], 20)


def test_a_register_that_was_lost_is_no_return_address_whatever_it_is_signed_with(tmp_path: Path) -> None:
    text = (
        ".arch_extension sve; hint #25; .cfi_negate_ra_state; stp x29,x30,[sp,#-16]!; .cfi_def_cfa_offset 16;"
        ".cfi_offset 29,-16; .cfi_offset 30,-8; mov x29,sp; .cfi_def_cfa 29,16; addvl sp,sp,#-1; bl g; .cfi_restore 30;"
        "hint #29; .cfi_negate_ra_state; nop; addvl sp,sp,#1; ldp x29,x30,[sp],#16; .cfi_def_cfa 31,0;"
        ".cfi_restore 29; ret"
    )
    found = verified(text, tmp_path, assembler=peer("aarch64-as-2.44"))
    assert {one.what for one in found.mismatches} == {"ra"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", ("r15", "unchanged", "*(CFA-40)", "save-without-rule")),
        (".cfi_offset 15,-48;", ("r15", "*(CFA-48)", "unchanged", "wrong-slot")),
    ],
)
def test_each_row_of_s390x_finds_the_stack_pointer(said: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    """Unwinders take what no rule is about for unchanged, and so go on with a wrong frame."""
    text = SAVES.replace(".cfi_offset 15,-40;", said)
    [one] = verified(text, tmp_path, assembler=peer("s390x-as-2.44")).mismatches
    assert (one.what, one.claimed, one.computed, one.pattern) == expected


@pytest.mark.parametrize(
    ("store", "wrong"),
    [
        ("str z0,[sp]", True),
        ("str p0,[sp]", True),
        ("st1d {z0.d},p0,[sp]", True),
        ("str z0,[x1]", False),
        ("mov v9.d[1],x0", False),
        ("mov v9.s[1],w0", True),
    ],
)
def test_what_scalable_vectors_are_stored_over_is_lost(store: str, wrong: bool, tmp_path: Path) -> None:
    text = (
        "stp x29,x30,[sp,#-64]!; .cfi_def_cfa_offset 64; .cfi_offset 29,-64; .cfi_offset 30,-56; mov x29,sp;"
        f".arch armv8-a+sve; {store}; bl g; ldp x29,x30,[sp],#64; .cfi_def_cfa_offset 0; .cfi_restore 29;"
        ".cfi_restore 30; ret"
    )
    found = verified(text, tmp_path, HEAD.replace("@", "%"), END, peer("aarch64-as-2.44"))
    assert (found.functions_wrong, found.functions_proved) == (wrong, not wrong)
