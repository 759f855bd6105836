"""Operands of AMD64 that are smaller or larger than a register, and tables of jumps that are hard to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.assembled import verified

_ALLOCATED = "sub %rax,%rsp; .cfi_def_cfa_offset 4112; nop; add %rax,%rsp; .cfi_def_cfa_offset 8; ret"


@pytest.mark.parametrize(
    "change",
    [
        "mov $0x1108,%eax; movzbl %al,%eax",
        "mov $0x11008,%eax; movzwl %ax,%eax",
        "mov $0x1108,%eax; movzbl %ah,%eax",
        "mov $0x19008,%eax; cwtl",
        "mov $0x10000,%eax; mov $0x1008,%ax",
        "mov $0x11008,%ecx; mov $0x20000,%eax; mov %cx,%ax",
        "mov $0x11008,%eax; xor %ax,%ax",
    ],
)
def test_parts_of_registers_are_not_taken_for_the_whole(change: str, tmp_path: Path) -> None:
    found = verified(f"{change}; {_ALLOCATED}", tmp_path)
    assert found.reasons.get("cfa-value", 0) + found.wrong > 0


def test_a_number_that_fits_is_known_when_it_is_extended(tmp_path: Path) -> None:
    assert verified(f"mov $0x1008,%eax; movzwl %ax,%eax; {_ALLOCATED}", tmp_path).functions_proved == 1


@pytest.mark.parametrize("store", ["vmovdqu64 %xmm0,(%rsp)", "vmovups %zmm0,-32(%rsp)", "vmovdqu %ymm0,-16(%rsp)"])
def test_vectors_are_stored_over_what_was_saved(store: str, tmp_path: Path) -> None:
    found = verified(
        f"push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; xor %ebx,%ebx; {store}; call g; pop %rbx;"
        ".cfi_restore 3; .cfi_def_cfa_offset 8; ret",
        tmp_path,
    )
    assert {one.what for one in found.mismatches} == {"rbx"}


def test_entries_of_a_table_may_lead_behind_the_function(tmp_path: Path) -> None:
    found = verified(
        "lea t(%rip),%rax; mov %edi,%edi; movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi;"
        "1: ret; 2: nop; ret; 3: .section .rodata; t: .long 1b-t, 3b-t, 3b-t, 2b-t; .text",
        tmp_path,
    )
    assert (found.proved, found.assumed) == (found.reached, 0)


def test_a_function_that_jumps_through_large_tables_often_is_too_complex(tmp_path: Path) -> None:
    found = verified(
        ".rept 3000; jo 1f; jmp *t(,%rax,8); 1:; .endr; ret; .section .rodata; t: .rept 16384; .quad f; .endr; .text",
        tmp_path,
    )
    assert (found.unknown, set(found.reasons)) == (found.bytes, {"too-complex"})


@pytest.mark.parametrize(("store", "wrong"), [("movb %al,3(%rsp)", 1), ("movl %eax,(%rsp)", 1), ("mov %rax,(%rsp)", 0)])
def test_a_part_of_the_return_address_is_not_replaced_on_purpose(store: str, wrong: int, tmp_path: Path) -> None:
    found = verified(f"{store}; call g; ret", tmp_path)
    assert (found.functions_wrong, {one.what for one in found.mismatches}) == (wrong, {"ra"} if wrong else set())
