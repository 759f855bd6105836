"""Each pattern of a wrong rule, from a function of AMD64 that makes this mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proof.assembled import FRAME, verified

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kernel

SAVE = "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; xor %ebx,%ebx; call g;"
EPILOGUE = "pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret"
MISTAKES = {
    "push-without-rule": f"push %rbx; call g; {EPILOGUE.replace('.cfi_restore 3;', '')}",
    "pop-without-rule": f"{SAVE} pop %rbx; .cfi_restore 3; nop; ret",
    "rule-early": f"{SAVE} .cfi_restore 3; .cfi_def_cfa_offset 8; pop %rbx; ret",
    "rule-late": f"push %rbx; nop; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; xor %ebx,%ebx; call g; {EPILOGUE}",
    "epilogue-hoisted": (
        "sub $24,%rsp; .cfi_def_cfa_offset 32; call g; lea 24(%rsp),%rsp; test %rdi,%rdi; je 1f;"
        ".cfi_def_cfa_offset 8; ret; 1: ret"
    ),
    "rule-not-restored": (
        f"{SAVE} test %eax,%eax; je 1f; pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret; 1: call g; pop %rbx; ret"
    ),
    "paths-disagree": "test %edi,%edi; je 1f; push %rax; 1: call g; ret",
    "save-without-rule": "mov %rbx,%rax; xor %ebx,%ebx; mov %rax,%rbx; ret",
    "restore-without-rule": f"{SAVE} mov (%rsp),%rbx; add $8,%rsp; .cfi_def_cfa_offset 8; nop; movq $0,-8(%rsp); ret",
    "register-clobbered": "xor %ebx,%ebx; ret",
    "slot-overwritten": f"{SAVE} movq $0,(%rsp); call g; pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret",
    "wrong-slot": f"{SAVE.replace('3,-16', '3,-24')} {EPILOGUE}",
    "wrong-cfa": f"{FRAME} call g; nop; .cfi_def_cfa_offset 24; nop; leave; .cfi_restore 6; .cfi_def_cfa 7,8; ret",
    "frame-lost": f"{FRAME} sub %rdi,%rsp; xor %ebp,%ebp; call g; hlt",
}


@pytest.mark.parametrize(("pattern", "text"), MISTAKES.items(), ids=MISTAKES)
def test_each_pattern_is_known(pattern: str, text: str, tmp_path: Path) -> None:
    worst = verified(text, tmp_path).worst()
    assert [one.pattern for one in worst] == [pattern]


def test_a_register_saved_over_another_overwrites_its_slot(tmp_path: Path) -> None:
    """As GCC for s390x does with -mpacked-stack: the rules come when both are stored."""
    text = (
        "sub $8,%rsp; .cfi_def_cfa_offset 16; mov %rbx,(%rsp); mov %r12,(%rsp); .cfi_offset 3,-16; .cfi_offset 12,-16;"
    )
    found = verified(f"{text} xor %ebx,%ebx; add $8,%rsp; .cfi_def_cfa_offset 8; ret", tmp_path)
    assert [one.pattern for one in found.worst()] == ["slot-overwritten"]


def test_code_that_a_wrong_jump_leads_to_has_the_pattern_of_its_cause(tmp_path: Path) -> None:
    text = "push %rbx; nop; test %edi,%edi; je 1f; pop %rbx; ret; nop; 1: nop; pop %rbx; ret"
    found = verified(text, tmp_path).mismatches
    assert len({one.address for one in found}) > 1
    assert {one.pattern for one in found} == {"push-without-rule"}


def test_the_row_of_the_prologue_does_not_come_early(tmp_path: Path) -> None:
    """It would be right again where a function that describes no epilogue leaves by a jump."""
    frame = "sub $24,%rsp; .cfi_def_cfa_offset 32; test %edi,%edi; je 1f; add $24,%rsp; jmp *%rax; 1: call g; hlt"
    assert [one.pattern for one in verified(frame, tmp_path).worst()] == ["pop-without-rule"]
