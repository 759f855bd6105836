"""Paths that control may never go: what is proved only without them is assumed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

import walkback
from proof.assembled import HEAD, verified

if TYPE_CHECKING:
    from pathlib import Path

SAVES = (
    "sub $24,%rsp; .cfi_def_cfa_offset 32; test %edi,%edi; je 1f; mov %rbx,8(%rsp); .cfi_offset 3,-24; mov %edi,%ebx;"
    "call h; mov 8(%rsp),%rbx; {restored} 2: nop; add $24,%rsp; .cfi_def_cfa_offset 8; ret; .cfi_def_cfa_offset 32;"
    ".cfi_restore 3; 1: {call} jmp 2b"
)
JUMPS = (
    "mov %edi,%edi; lea t(%rip),%rax; movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi; 3: pop %rbx;"
    ".cfi_restore 3; .cfi_def_cfa_offset 8; ret; .section .rodata; t: .long 3b-t, 3b-t; .text"
)
BEFORE = (
    ".text; others: .cfi_startproc; je 1f; call g; 1: je 1f; call g; 1: ret; .cfi_endproc\n".replace(";", "\n") + HEAD
)
"""Behind most calls of `g` is what jumps lead to, as if it did not come back."""
DOUBTFUL = {
    "a rule that was not restored, where only a call leads otherwise": (SAVES.format(restored="", call="call g;"), 6),
    "a call that does not come back, with other code behind it": (
        (
            "test %edi,%edi; je 1f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %edi,%ebx; call unknown;"
            ".cfi_def_cfa_offset 8; .cfi_restore 3; 1: ret"
        ),
        1,
    ),
    "a call that does not come back, and padding": (
        (
            "test %edi,%edi; je 1f; sub $8,%rsp; .cfi_def_cfa_offset 16; call unknown; nopw 0(%rax,%rax);"
            ".cfi_def_cfa_offset 8; 1: ret"
        ),
        1,
    ),
    "a call that does not come back, before the code of another way": (
        (
            "test %edi,%edi; je 1f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %edi,%ebx; call g;"
            "mov %r12,-8(%rsp); .cfi_restore 3; .cfi_def_cfa_offset 8; 1: xor %eax,%eax; ret"
        ),
        3,
    ),
    "an index that is never out of bounds": (
        (
            "test %esi,%esi; je 1f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %esi,%ebx; cmp $1,%edi;"
            "jbe 2f; .cfi_remember_state; .cfi_restore 3; .cfi_def_cfa_offset 8; 1: ret; 2: .cfi_restore_state;" + JUMPS
        ),
        1,
    ),
    "an index that is never out of bounds, with its branch there": (
        (
            "test %esi,%esi; je 1f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %esi,%ebx; cmp $1,%edi;"
            "ja 1f;" + JUMPS.replace("ret;", "ret; 1: ret;")
        ),
        1,
    ),
    "bytes behind a table of jumps that are no entries": (
        (
            "sub $24,%rsp; .cfi_def_cfa_offset 32; mov %rbx,8(%rsp); .cfi_offset 3,-24; mov %esi,%ebx;"
            "lea t(%rip),%rax; mov %edi,%edi; movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi;"
            "1: mov 8(%rsp),%rbx; 2: add $24,%rsp; .cfi_def_cfa_offset 8; .cfi_restore 3; ret;"
            ".section .rodata; t: .long 1b-t; .long 2b-t; .text"
        ),
        1,
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_is_right_unless_control_goes_a_doubtful_way_is_assumed(name: str, tmp_path: Path) -> None:
    text, size = DOUBTFUL[name]
    found = verified(text, tmp_path, BEFORE)
    assert (found.mismatches, found.assumed, found.functions_proved) == ([], size, 1)
    assert {why: size for why, size in found.reasons.items() if why not in {"padding", "data"}} == {
        "doubtful-path": size
    }


@pytest.mark.parametrize(
    ("restored", "call", "proved", "wrong"),
    [
        (".cfi_restore 3;", "call g;", True, 0),
        ("", "", False, 6),
        (".cfi_restore 3;", "", True, 0),
        ("", "call g; xor %eax,%eax;", False, 6),
    ],
)
def test_a_way_that_fits_or_is_sure_leaves_no_doubt(
    restored: str, call: str, proved: bool, wrong: int, tmp_path: Path
) -> None:
    found = verified(SAVES.format(restored=restored, call=call), tmp_path)
    assert (found.proved == found.reached, found.assumed, found.wrong) == (proved, 0, wrong)


TABLE = "cmpl $1,%edi; ja 3f; movl %edi,%edi; lea t(%rip),%rax; movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi;"
PUSHES = "1: push %rax; .cfi_def_cfa_offset 16; call die; .cfi_def_cfa_offset 8;"
BEHIND_A_CALL = {
    "a case": f"{TABLE} {PUSHES} 2: mov %esi,%eax; ret; 3: ret; .section .rodata; t: .long 1b-t, 2b-t; .text",
    "a label whose address is taken": f"jmp *(%rdi); {PUSHES} 2: mov %esi,%eax; ret; .data; .quad 1b, 2b; .text",
    "a branch, behind padding": f"test %edi,%edi; je 2f; {PUSHES} nopl 0(%rax); 2: ret",
}


@pytest.mark.parametrize("name", BEHIND_A_CALL)
def test_what_is_behind_a_call_may_be_reached_another_way_only(name: str, tmp_path: Path) -> None:
    found = verified(BEHIND_A_CALL[name], tmp_path)
    assert found.mismatches == []
    assert set(found.reasons) <= {"doubtful-path", "no-path", "indirect-jump", "padding", "assumption"}


def test_a_landing_pad_behind_a_call_may_be_reached_by_exceptions_only(tmp_path: Path) -> None:
    source = tmp_path / "pad.s"
    source.write_text(PAD.replace(";", "\n"))
    subprocess.run(["as", "-o", tmp_path / "pad.o", source], check=True)
    [found] = walkback.verify(tmp_path / "pad.o")
    assert found.mismatches == []


PAD = """.text; .globl f; .type f,@function; f: .cfi_startproc; .cfi_personality 0x9b,DW.ref; .cfi_lsda 0x1b,table
sub $8,%rsp; .cfi_def_cfa_offset 16; b: call may; e: test %eax,%eax; je 2f; push %rax; .cfi_def_cfa_offset 24; call die
.cfi_def_cfa_offset 16; l: add $8,%rsp; .cfi_def_cfa_offset 8; ret; .cfi_def_cfa_offset 16; 2: add $8,%rsp
.cfi_def_cfa_offset 8; ret; .cfi_endproc; .size f,.-f; .section .gcc_except_table,"a"; table: .byte 0xff,0xff,1
.uleb128 9f-8f; 8: .uleb128 b-f; .uleb128 e-b; .uleb128 l-f; .uleb128 0; 9: .data; DW.ref: .quad personality
.section .note.GNU-stack,"",@progbits
"""


def test_a_branch_that_cannot_be_leads_to_the_part_of_another_function(tmp_path: Path) -> None:
    """As the label of an unreachable default, which is where the cold part of the next function begins."""
    others = (
        "part: .cfi_startproc; .cfi_def_cfa_offset 16; call g; add $8,%rsp; .cfi_def_cfa_offset 8; ret; .cfi_endproc;"
        "parent: .cfi_startproc; sub $8,%rsp; .cfi_def_cfa_offset 16; jmp part; .cfi_endproc\n"
    )
    found = verified("cmp $5,%edi; ja part; ret", tmp_path, ".text\n" + others.replace(";", "\n") + HEAD)
    assert (found.mismatches, found.reasons) == ([], {"doubtful-path": 10})


COPIES = (
    "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $16,%rsp; .cfi_def_cfa_offset 32; mov %esi,%ebx;"
    "test %edi,%edi; je 1f; .cfi_remember_state; add $16,%rsp; .cfi_def_cfa_offset 16; pop %rbx; .cfi_restore 3;"
    ".cfi_def_cfa_offset 8; ret; .cfi_restore_state; {before} 1: movups %xmm0,8(%rsp); {behind}"
)
"""A copy over a saved register, and what only that leads to."""


@pytest.mark.parametrize(
    ("before", "behind", "reasons"),
    [
        ("", "3: nop; jmp 3b", {"doubtful-path": 3}),
        ("mov %eax,%edx; 2: nop; jmp 2b;", "3: nop; jmp 3b", {"doubtful-path": 3, "no-path": 5}),
        ("mov %eax,%edx; 2: nop; jmp 2b;", "mov %rdi,%rax; jmp *%rax", {"indirect-jump": 10}),
    ],
)
def test_what_only_a_doubtful_way_leads_to_is_assumed_for_that(
    before: str, behind: str, reasons: dict[str, int], tmp_path: Path
) -> None:
    found = verified(COPIES.format(before=before, behind=behind), tmp_path)
    assert (found.mismatches, found.reasons) == ([], reasons)


def test_what_a_jump_to_an_unknown_place_may_lead_to_is_unknown_whatever_doubt_there_is(tmp_path: Path) -> None:
    """As in interpreters: a label that only the jump leads to is behind a call that does not come back."""
    found = verified(
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov (%rsi),%rax; test %edi,%edi; jne 1f;"
        "jmp *(%rax,%rdi,8); .cfi_remember_state; 1: sub $16,%rsp; .cfi_def_cfa_offset 32; call unknown;"
        ".cfi_restore_state; mov %rdi,%rbx; pop %rbx; .cfi_def_cfa_offset 8; .cfi_restore 3; ret",
        tmp_path,
    )
    assert (found.mismatches, found.reasons) == ([], {"indirect-jump": 5})


def test_a_function_that_begins_as_its_first_row_says_is_assumed_for_that(tmp_path: Path) -> None:
    found = verified(
        ".cfi_def_cfa_offset 16; mov %edi,%eax; test %eax,%eax; je 1f; push %rbx; .cfi_def_cfa_offset 24;"
        ".cfi_offset 3,-24; mov %edi,%ebx; call unknown; .cfi_def_cfa_offset 16; .cfi_restore 3;"
        "1: add $8,%rsp; .cfi_def_cfa_offset 8; ret",
        tmp_path,
    )
    assert found.mismatches == []
    assert found.reasons == {"no-path": 19}
