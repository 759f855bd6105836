"""Ways that a proof has to follow: into parts of functions, past calls, through tables, along every branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peers import peer
from proof.assembled import FRAME, HEAD, LEAVE, verified

if TYPE_CHECKING:
    from pathlib import Path

PUSH, POP = "push %rax; .cfi_def_cfa_offset 16;", "pop %rax; .cfi_def_cfa_offset 8;"
PART = ".cfi_endproc; part: .cfi_startproc; {rows} call g; pop %rax; .cfi_def_cfa_offset 8; ret"
CFA = "different on different paths"

WRONG = {
    "a part that looks like a function": (
        f"{PUSH} test %edi,%edi; jne part; {POP} ret; {PART.format(rows='')}",
        [("cfa", "rsp+8", "rsp+16", 6)],
    ),
    "a part that is fallen into": (
        f"{PUSH} test %edi,%edi; {PART.format(rows='')}",
        [("cfa", "rsp+8", "rsp+16", 6)],
    ),
    "the default of a switch in a part": (
        (
            f"{PUSH} cmp $1,%rdi; ja part; jmp *t(,%rdi,8); 1: {POP} ret; "
            f"{PART.format(rows='.cfi_def_cfa_offset 24;')}; .section .rodata; t: .quad 1b, 1b; .text"
        ),
        [("cfa", "rsp+24", "rsp+16", 6)],
    ),
    "a case of a switch in a part that does not come back": (
        (
            f"{PUSH} cmp $1,%rdi; ja 1f; jmp *t(,%rdi,8); 1: {POP} ret; .cfi_endproc; .type f.cold,@function;"
            "f.cold: .cfi_startproc; push %rcx; nop; ud2; .size f.cold,.-f.cold; .section .rodata; t: .quad 1b, f.cold;"
            ".text"
        ),
        [("cfa", "rsp+8", "rsp+16", 4)],
    ),
    "a rule of the last byte of a call": (
        f"{PUSH} .byte 0xe8; .cfi_def_cfa_offset 64; .long 64; .cfi_def_cfa_offset 16; nop; {POP} ret",
        [("cfa", "rsp+64", "rsp+16", 5)],
    ),
    "a comparison whose flags are gone": (
        f"test %esi,%esi; je 1f; {FRAME} sub $32,%rsp; cmp %rsp,%rbp; test %edi,%edi; je 1f; {LEAVE}; 1: nop; ret",
        [("cfa", "rsp+8", CFA, 2)],
    ),
    "a bound that is no table's": (
        f"test %esi,%esi; je 1f; {PUSH} cmp $5,%edi; ja 1f; {POP} ret; 1: nop; ret",
        [("cfa", "rsp+8", CFA, 2)],
    ),
    "a table of distances of eight bytes": (
        (
            f"{PUSH} cmp $1,%rdi; ja 2f; lea t(%rip),%rax; add (%rax,%rdi,8),%rax; jmp *%rax; 2: {POP} ret;"
            "1: nop; ret; .section .rodata; t: .quad 2b-t, 1b-t; .text"
        ),
        [("cfa", "rsp+8", "rsp+16", 2)],
    ),
    "a table whose index counts bytes": (
        (
            f"{PUSH} cmp $8,%rdi; ja 2f; lea t(%rip),%rax; add (%rax,%rdi,1),%rax; jmp *%rax; 2: {POP} ret;"
            "1: nop; ret; 3: call g; .section .rodata; t: .quad 2b-t, 1b-t, 0, 3b-t, 3b-t; .text"
        ),
        [("cfa", "rsp+8", "rsp+16", 2)],
    ),
    "a table behind as many sums of arrays as there is room for tables": (
        (
            f"test %esi,%esi; je 1f; {PUSH} {''.join(f'add a+{8 * one}(,%rdi,8),%rdx;' for one in range(1100))}"
            f"cmp $1,%rdi; ja 2f; lea t(%rip),%rax; movslq (%rax,%rdi,4),%rcx; add %rax,%rcx; jmp *%rcx; 2: {POP} ret;"
            "1: nop; ret; .section .rodata; t: .long 2b-t, 1b-t; .bss; a: .zero 8800; .text"
        ),
        [("cfa", "rsp+8", CFA, 2)],
    ),
    "a table that is named in its middle": (
        (
            f"lea t+8(%rip),%rcx; test %esi,%esi; je 1f; {PUSH} cmp $2,%rdi; ja 2f; jmp *t(,%rdi,8); 2: {POP} ret;"
            "1: nop; ret; .section .rodata; t: .quad 2b, 1b, 2b; .text"
        ),
        [("cfa", "rsp+8", CFA, 2)],
    ),
    "a pop over what was saved": (
        (
            "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; push %rax; .cfi_def_cfa_offset 24; xor %ebx,%ebx;"
            "pop (%rsp); .cfi_def_cfa_offset 16; nop; ud2"
        ),
        [("rbx", "*(CFA-16)", "lost", 3)],
    ),
    "a vector over what was saved": (
        (
            "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $32,%rsp; .cfi_def_cfa_offset 48; xor %ebx,%ebx;"
            "vmovups %xmm20,32(%rsp); nop; ud2"
        ),
        [("rbx", "*(CFA-16)", "lost", 3)],
    ),
    "a register over what was saved, behind a branch": (
        (
            "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $32,%rsp; .cfi_def_cfa_offset 48; xor %ebx,%ebx;"
            "test $16,%dl; jne 2f; 2: mov %rax,32(%rsp); nop; add $32,%rsp; .cfi_def_cfa_offset 16; pop %rbx;"
            ".cfi_def_cfa_offset 8; ret"
        ),
        [("rbx", "*(CFA-16)", "lost", 7)],
    ),
    "a wrong rule around a copy of a size that does not occur": (
        (
            "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $32,%rsp; .cfi_def_cfa_offset 48; xor %ebx,%ebx;"
            "test $16,%dl; jne 2f; 2: add $8,%rsp; movups %xmm0,16(%rsp); nop; ud2"
        ),
        [("cfa", "rsp+48", "rsp+40", 8)],
    ),
    "a register that a function changes after its own end": (
        (
            "lea 8(%rsp),%r10; .cfi_def_cfa 10,0; call 3f; nop; ud2; .cfi_endproc;"
            "3: .cfi_startproc; nop; .cfi_endproc; .cfi_startproc; xor %r10d,%r10d; ret"
        ),
        [("cfa", "r10", "rsp+8", 6)],
    ),
}
ASSUMED = {
    "a place that is called and jumped to": (
        f"{PUSH} test %edi,%edi; je 1f; call 1f; {POP} ret; .cfi_def_cfa_offset 16; 1: nop; {POP} ret"
    ),
    "a bound that one of two ways does not have": (
        f"test %ecx,%ecx; je 3f; {PUSH} cmp $1,%rdi; ja 2f; 1: jmp *t(,%rdi,8); 4: {POP} ret; .cfi_def_cfa_offset 16;"
        "2: and $3,%edi; jmp 1b; .cfi_def_cfa_offset 8; 3: nop; ret; .section .rodata; t: .quad 4b, 4b, 3b, 3b; .text"
    ),
    "a bound of another use of the table": (
        f"test %ecx,%ecx; je 3f; {PUSH} test %edx,%edx; je 2f; cmp $1,%rdi; ja 4f; jmp *t(,%rdi,8); 4: {POP} ret;"
        ".cfi_def_cfa_offset 16; 2: and $3,%edi; jmp *t(,%rdi,8); .cfi_def_cfa_offset 8; 3: nop; ret;"
        ".section .rodata; t: .quad 4b, 4b, 3b, 3b; .text"
    ),
    "a copy of a size that does not occur": (
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $32,%rsp; .cfi_def_cfa_offset 48; xor %ebx,%ebx;"
        "test $16,%dl; jne 2f; 1: nop; add $32,%rsp; .cfi_def_cfa_offset 16; pop %rbx; .cfi_def_cfa_offset 8; ret;"
        ".cfi_def_cfa_offset 48; 2: movups %xmm0,24(%rsp); nop; jmp 1b"
    ),
    "a copy over the return address": (
        f"{PUSH} test $16,%dl; jne 2f; 1: nop; {POP} ret; .cfi_def_cfa_offset 16; 2: movups %xmm0,(%rsp); nop; jmp 1b"
    ),
    "a function that goes on in code without a table": (
        f"test %edi,%edi; je 1f; {PUSH} call 3f; .cfi_def_cfa_offset 8; 1: nop; ret; .cfi_endproc; 3: .cfi_startproc;"
        "mov $1,%eax; .cfi_endproc; nop; ret; 4: .cfi_startproc"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_way_is_followed(name: str, tmp_path: Path) -> None:
    text, expected = WRONG[name]
    found = verified(text, tmp_path)
    assert [(one.what, one.claimed, one.computed, one.bytes) for one in found.mismatches] == expected


@pytest.mark.parametrize(
    "jump",
    [
        "add %fs:16,%rax; jmp *%rax",  # memory that is nowhere known
        "add %fs:(%rcx,%rdi,1),%rax; jmp *%rax",
        "mov %fs:16,%rcx; add %rax,%rcx; jmp *%rcx",
        "jmp *%fs:16",
        "movslq (%rax,%rdi,8),%rcx; add %rax,%rcx; jmp *%rcx",  # something else stands between the distances
    ],
)
def test_what_is_no_table_leads_nowhere_known(jump: str, tmp_path: Path) -> None:
    found = verified(
        f"{PUSH} cmp $1,%rdi; ja 2f; lea t(%rip),%rax; {jump}; 2: {POP} ret; 1: nop; ret;"
        ".section .rodata; t: .quad 2b-t, 1b-t; .text",
        tmp_path,
    )
    assert found.mismatches == []
    assert found.reasons["indirect-jump"] == 1


def test_a_bound_may_be_larger_than_the_next_table_of_its_index(tmp_path: Path) -> None:
    """Only some of the values get to the second jump, and a third has its table right behind that of the second."""
    jump = "lea {}(%rip),%rdx; movslq (%rdx,{},4),%rax; add %rdx,%rax; jmp *%rax;"
    found = verified(
        f"{PUSH} cmp $3,%rdi; ja 1f; {jump.format('t', '%rdi')} 1: {POP} ret; .cfi_def_cfa_offset 16;"
        f"2: {jump.format('u', '%rdi')} 3: cmp $1,%rsi; ja 1b; {jump.format('v', '%rsi')} mov $0x90905858,%ecx; 4: nop;"
        "jmp 1b; .section .rodata; t: .long 1b-t, 2b-t, 2b-t, 1b-t; u: .long 3b-u; v: .long 4b-v, 1b-v; .text",
        tmp_path,
    )
    assert (found.mismatches, found.unknown) == ([], 5)


def test_nothing_is_assumed_behind_what_is_no_known_instruction(tmp_path: Path) -> None:
    found = verified("nop; .byte 6; push %rbx; nop; nop; pop %rbx; ret", tmp_path)
    assert (found.proved, found.assumed, found.mismatches) == (1, 0, [])
    assert found.reasons["bad-code"] + found.reasons["assumption"] == found.unknown == 6


@pytest.mark.parametrize("name", ASSUMED)
def test_a_way_that_is_not_sure_leaves_nothing_proved_where_it_does_not_fit(name: str, tmp_path: Path) -> None:
    found = verified(ASSUMED[name], tmp_path)
    assert found.mismatches == []
    assert found.reasons["doubtful-path"] >= 2


def test_a_default_that_cannot_be_leads_into_no_part_of_another_function(tmp_path: Path) -> None:
    """Its own part is empty, and the other function comes to that place only by a table without a bound."""
    text = (
        f"{PUSH} cmp $1,%edi; ja part; jmp *t(,%rdi,8); 1: {POP} ret; .cfi_endproc; .p2align 4; .globl g;"
        "g: .cfi_startproc; push %rax; .cfi_def_cfa_offset 16; push %rcx; .cfi_def_cfa_offset 24; cmpl $1,(%rdi);"
        "ja 3f; mov (%rdi),%eax; jmp *u(,%rax,8); mov %eax,%eax; 2: test %esi,%esi; je part; 3: pop %rcx;"
        f".cfi_def_cfa_offset 16; {POP} ret; .cfi_endproc; part: .cfi_startproc; .cfi_def_cfa_offset 24;"
        "mov 8(%rsp),%rdi; ud2; .section .rodata; t: .quad 1b, 1b; u: .quad 2b, 2b; .text"
    )
    found = verified(text, tmp_path)
    assert found.mismatches == []


@pytest.mark.parametrize(("offset", "wrong"), [(-40, 0), (-32, 12)])
def test_where_the_stack_pointer_of_s390x_is_saved_is_proved(offset: int, wrong: int, tmp_path: Path) -> None:
    text = (
        f"stmg %r14,%r15,112(%r15); .cfi_offset 14,-48; .cfi_offset 15,{offset}; lay %r15,-160(%r15);"
        ".cfi_def_cfa_offset 320; brasl %r14,g; lmg %r14,%r15,272(%r15); .cfi_restore 15; .cfi_restore 14;"
        ".cfi_def_cfa_offset 160; br %r14"
    )
    found = verified(text, tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.wrong > 0, found.unknown, found.assumed) == (wrong > 0, 0, 0)


def test_a_tracer_that_is_called_first_keeps_all_registers(tmp_path: Path) -> None:
    text = (
        "call __fentry__; push %rsi; .cfi_def_cfa_offset 16; .cfi_offset 4,-16; xor %esi,%esi; call g; pop %rsi;"
        ".cfi_restore 4; .cfi_def_cfa_offset 8; ret"
    )
    found = verified(text, tmp_path, HEAD)
    assert (found.proved, found.mismatches) == (found.reached, [])


def test_an_array_is_not_stored_over_the_stack_pointer_that_s390x_saves(tmp_path: Path) -> None:
    """A loop that clears an array goes further in the proof than it does in the program."""
    text = (
        "stmg %r14,%r15,112(%r15); .cfi_offset 14,-48; .cfi_offset 15,-40; lay %r15,-416(%r15);"
        ".cfi_def_cfa_offset 576; la %r1,160(%r15); xc 0(256,%r1),0(%r1); la %r1,256(%r1); xc 0(256,%r1),0(%r1);"
        "brasl %r14,g; lmg %r14,%r15,528(%r15); .cfi_restore 15; .cfi_restore 14; .cfi_def_cfa_offset 160; br %r14"
    )
    found = verified(text, tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.proved, found.mismatches) == (found.reached, [])


@pytest.mark.parametrize(("traps", "wrong"), [("int3", []), ("int3; int3", ["cfa"] * 2)])
def test_a_call_over_a_trap_only_pushes(traps: str, wrong: list[str], tmp_path: Path) -> None:
    """Linux fills the processor's stack of return addresses so. Its own table leaves the traps out."""
    part = ".cfi_endproc; {0}; {1}: .cfi_startproc; .cfi_def_cfa_offset {2};"
    text = (
        f"call 1f; {part.format(traps, 1, 16)} call 2f; {part.format(traps, 2, 24)}"
        "add $16,%rsp; .cfi_def_cfa_offset 8; ret"
    )
    found = verified(text, tmp_path)
    assert [one.what for one in found.mismatches] == wrong
    assert wrong or found.proved == found.reached


HOLD = "2: pause; lfence; jmp 2b;"
CALLED = "call 1f; {hold} 1: .cfi_def_cfa_offset 16; {does}"


@pytest.mark.parametrize(
    ("hold", "does", "wrong"),
    [
        (HOLD, "lea 8(%rsp),%rsp; .cfi_def_cfa_offset 8; ret", []),
        (HOLD, "lea 8(%rsp),%rsp; ret", [("cfa", "rsp+16", "rsp+8", 1)]),
        (f"{HOLD} .p2align 4;", "mov %rax,(%rsp); ret", []),
    ],
    ids=["returns", "no rule for the pop", "jumps"],
)
def test_a_call_over_a_loop_that_holds_speculation_only_pushes(
    hold: str, does: str, wrong: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    """GCC returns so, and jumps to where a register leads, with `thunk-inline`."""
    found = verified(CALLED.format(hold=hold, does=does), tmp_path)
    assert [(one.what, one.claimed, one.computed, one.bytes) for one in found.mismatches] == wrong
    assert found.proved + found.wrong == found.reached


@pytest.mark.parametrize(("barrier", "unused"), [("dsb sy; isb;", 8), ("dsb nsh; isb;", 8), ("sb;", 4), ("", 0)])
def test_barriers_behind_a_return_are_no_code_and_behind_a_call_they_are(
    barrier: str, unused: int, tmp_path: Path
) -> None:
    """Compilers put them there against speculation in a straight line."""
    enter = "stp x29,x30,[sp,-16]!; .cfi_def_cfa_offset 16; .cfi_offset 29,-16; .cfi_offset 30,-8;"
    leave = "ldp x29,x30,[sp],16; .cfi_restore 29; .cfi_restore 30; .cfi_def_cfa_offset 0; ret;"
    text = f"{enter} cbz x0,1f; .cfi_remember_state; {leave} {barrier} .cfi_restore_state; 1: bl g; {barrier} {leave}"
    head = f".arch armv8.5-a\n{HEAD.replace('@', '%')}"
    found = verified(text, tmp_path, before=head, assembler=peer("aarch64-as-2.44"))
    assert (found.proved, found.bytes - found.reached) == (found.reached, unused)


@pytest.mark.parametrize("body", ["call g; pop %rbx; .cfi_def_cfa_offset 8; ret", "call quits; .cfi_def_cfa_offset 8;"])
def test_a_function_that_gets_more_stack_goes_on_behind_the_return(body: str, tmp_path: Path) -> None:
    """GCC's split stacks. A call in front that may not come back says nothing of it."""
    text = (
        f"cmp %fs:112,%rsp; jb 1f; 2: push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; {body}; .cfi_restore 3;"
        "1: mov $8,%r10d; xor %r11d,%r11d; call __morestack; ret; jmp 2b"
    )
    found = verified(text, tmp_path)
    assert (found.mismatches, found.functions_proved) == ([], "pop" in body)
    assert found.assumed == (0 if "pop" in body else 15)
