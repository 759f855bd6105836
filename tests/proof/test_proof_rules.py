"""The proof on small functions of AMD64, each with the rules that it has to find right or wrong."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

import walkback
from effort import rounds
from proof.assembled import END, FRAME, HEAD, LEAVE, verified
from sframebuilder import SFrameBuilder
from sframefiles import SFRAME, SIZE, TEXT, linked
from walkback.base.errors import WalkbackError
from walkback.proof.patterns import Pattern
from walkback.proof.values import CFA_TARGET, Verdict, Why
from walkback.sections.verified import Mismatch

pytestmark = pytest.mark.kernel


def wrong(text: str, folder: Path) -> list[tuple[int, int, str, str, str]]:
    found = verified(text, folder).mismatches
    return [(one.address, one.bytes, one.what, one.claimed, one.computed) for one in found]


RIGHT = {
    "nothing": "ret",
    "a frame": f"{FRAME} sub $32,%rsp; call g; {LEAVE}",
    "saved registers": (
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %rdi,%rbx; call g; mov %rbx,%rax;"
        "pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret"
    ),
    "a register that calls need not keep": (
        "push %rdi; .cfi_def_cfa_offset 16; .cfi_offset 5,-16; xor %edi,%edi; call g; pop %rdi; .cfi_restore 5;"
        ".cfi_def_cfa_offset 8; ret"
    ),
    "a register saved but said later": (
        "push %rbx; .cfi_def_cfa_offset 16; nop; nop; .cfi_offset 3,-16; xor %ebx,%ebx; call g;"
        "pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret"
    ),
    "two ways": (
        "test %edi,%edi; je 1f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; call g;"
        "pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; 1: ret"
    ),
    "a stack that grows": f"{FRAME} sub %rdi,%rsp; mov %rsp,%rdi; call g; {LEAVE}",
    "a large frame, touched page by page": (
        "lea -0x8000(%rsp),%r11; .cfi_def_cfa 11,0x8008; 1: sub $0x1000,%rsp; orq $0,(%rsp); cmp %r11,%rsp; jne 1b;"
        ".cfi_def_cfa_register 7; call g; add $0x8000,%rsp; .cfi_def_cfa_offset 8; ret"
    ),
    "an aligned frame": (
        "lea 8(%rsp),%r10; .cfi_def_cfa 10,0; and $-32,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp;"
        ".cfi_escape 0x10,0x6,0x2,0x76,0; push %r10; .cfi_escape 0xf,0x3,0x76,0x78,0x6; sub $40,%rsp; call g;"
        "add $40,%rsp; pop %r10; .cfi_def_cfa 10,0; pop %rbp; .cfi_restore 6; lea -8(%r10),%rsp; .cfi_def_cfa 7,8; ret"
    ),
    "the old stack pointer in memory": (
        "mov %rsp,%rax; .cfi_def_cfa_register 0; sub $64,%rsp; and $-64,%rsp; mov %rax,32(%rsp);"
        ".cfi_escape 0xf,0x6,0x77,0x20,0x06,0x23,0x08,0x96; call g; mov 32(%rsp),%rsp; .cfi_def_cfa 7,8; ret"
    ),
    "a frame aligned as the stack is": (
        "sub $20,%rsp; .cfi_def_cfa_offset 28; and $-16,%rsp; .cfi_def_cfa_offset 32; call g;"
        "add $24,%rsp; .cfi_def_cfa_offset 8; ret"
    ),
    "a function of a kernel module": (
        "call __fentry__; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %rdi,%rbx; call g; test %eax,%eax;"
        "jne 1f; mov 8(%rbx),%rax; pop %rbx; .cfi_remember_state; .cfi_def_cfa_offset 8; jmp __x86_indirect_thunk_rax;"
        "1: .cfi_restore_state; pop %rbx; .cfi_def_cfa_offset 8; jmp __x86_return_thunk"
    ),
    "a fence on the return address": "lock orq $0,(%rsp); ret",
    "a table of jumps": (
        "cmp $2,%edi; ja 9f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %edi,%edi; lea t(%rip),%rax;"
        "movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi; 1: xor %ebx,%ebx; 2: call g; 3: pop %rbx;"
        ".cfi_restore 3; .cfi_def_cfa_offset 8; 9: ret; .section .rodata; t: .long 1b-t, 2b-t, 3b-t; .text"
    ),
    "a table of jumps that begins with the label of another function": (
        "lea t(%rip),%rax; mov %edi,%edi; movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi; 1: nop; 2: ret;"
        ".cfi_endproc; g: .cfi_startproc; ret; .section .rodata; t: .long g-t, 1b-t, g-t, 2b-t; .text"
    ),
    "a trap behind a call that does not come back": (
        "test %edi,%edi; je 1f; push %rbx; .cfi_def_cfa_offset 16; call g; .cfi_def_cfa_offset 8; ud2; 1: ret"
    ),
    "a call through a register of a function that does not come back": (
        "test %edi,%edi; je 1f; push %rbx; .cfi_def_cfa_offset 16; lea s(%rip),%rax; call *%rax;"
        ".cfi_def_cfa_offset 8; 1: ret; .cfi_endproc; s: .cfi_startproc; 2: jmp 2b"
    ),
    "a table of jumps that BOLT moved": (
        "cmp $1,%edi; ja 2f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %edi,%edi; lea t(%rip),%rax;"
        "movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi; 1: pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8;"
        '2: ret; .section .bolt.org.rodata,"a"; t: .long 1b-t, 1b-t; .text'
    ),
}

WRONG: dict[str, tuple[str, list[tuple[int, int, str, str, str]]]] = {
    "a push that nobody describes": ("push %rbx; call g; pop %rbx; ret", [(1, 6, "cfa", "rsp+8", "rsp+16")]),
    "a row that comes an instruction late": (
        "sub $24,%rsp; nop; .cfi_def_cfa_offset 32; call g; add $24,%rsp; .cfi_def_cfa_offset 8; ret",
        [(4, 1, "cfa", "rsp+8", "rsp+32")],
    ),
    "a register that was changed": ("xor %ebx,%ebx; ret", [(2, 1, "rbx", "unchanged", "lost")]),
    "a frame pointer that was changed": ("mov %rdi,%rbp; ret", [(3, 1, "fp", "unchanged", "lost")]),
    "a register that is elsewhere": (
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-24; call g; pop %rbx; .cfi_def_cfa_offset 8; ret",
        [(1, 7, "rbx", "*(CFA-24)", "unchanged")],
    ),
    "a register that calls need not keep, and that is elsewhere": (
        "push %rsi; .cfi_def_cfa_offset 16; .cfi_offset 5,-16; call g; .cfi_restore 5; pop %rsi; .cfi_def_cfa_offset 8",
        [(1, 5, "rdi", "*(CFA-16)", "unchanged")],
    ),
    "an epilogue moved before the branch": (
        "sub $8,%rsp; .cfi_def_cfa_offset 16; call g; add $8,%rsp; cmp $1,%eax; je 1f; .cfi_def_cfa_offset 8; 1: ret",
        [(13, 5, "cfa", "rsp+16", "rsp+8")],
    ),
    "a first row that is no entry's": (
        ".cfi_def_cfa_offset 16; push %rbx; .cfi_offset 3,-16; pop %rbx; .cfi_def_cfa_offset 8; ret",
        [(0, 1, "cfa", "rsp+16", "rsp+8")],
    ),
    "a frame that is aligned": (
        "mov %rsp,%rbp; and $-64,%rsp; call g; ret",
        [(7, 6, "cfa", "rsp+8", "rbp+8")],
    ),
    "an old stack pointer that was not saved yet": (
        "lea 8(%rsp),%r10; .cfi_def_cfa 10,0; and $-64,%rsp; .cfi_escape 0xf,3,0x77,0x78,6; push %r10; ud2",
        [(9, 4, "cfa", "*(rsp-8)", "r10")],
    ),
    "a stack that grows in a loop": (
        "push %rbp; mov %rsp,%rbp; .cfi_def_cfa 6,16; 1: mov %rsp,%rsi; sub %rdi,%rsi; mov %rsi,%rsp; call g; jmp 1b",
        [(1, 3, "cfa", "rsp+8", "rsp+16")],
    ),
    "two ways that differ": (
        "test %edi,%edi; je 1f; push %rax; .cfi_def_cfa_offset 16; 1: nop; pop %rax; .cfi_def_cfa_offset 8; ret",
        [(5, 3, "cfa", "rsp+16", "different on different paths")],
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_proved(name: str, tmp_path: Path) -> None:
    found = verified(RIGHT[name], tmp_path)
    assert found.mismatches == []
    assert (found.proved, found.functions_proved) == (found.reached, found.functions)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str, tmp_path: Path) -> None:
    text, expected = WRONG[name]
    assert wrong(text, tmp_path)[:1] == expected[:1]


def test_code_that_nothing_leads_to_is_assumed(tmp_path: Path) -> None:
    found = verified("jmp g; push %rbx; ret", tmp_path)
    assert (found.proved, found.assumed, found.unknown) == (5, 1, 1)
    assert found.reasons == {"assumption": 1, "no-path": 1}


@pytest.mark.parametrize("jump", ["jmp *(%rdi)", "jmp *(%rdi,%rsi,8)", "push %rax; .cfi_def_cfa_offset 16; jmp *%rdi"])
def test_code_that_only_a_jump_to_somewhere_may_lead_to_is_unknown(jump: str, tmp_path: Path) -> None:
    found = verified(f"{jump}; nop; mov %edi,%eax; ret", tmp_path)
    assert (found.wrong, found.assumed, found.reasons["indirect-jump"]) == (0, 0, 3)


def test_what_each_call_overwrites_is_wrong_behind_it(tmp_path: Path) -> None:
    found = verified(
        "lea 8(%rsp),%r11; .cfi_def_cfa 11,0; .cfi_offset 16,-8; sub $24,%rsp; test %edi,%edi; je 1f; call g;"
        "1: xor %eax,%eax; add $24,%rsp; .cfi_def_cfa 7,8; ret",
        tmp_path,
    )
    [one] = found.mismatches
    assert (one.address, one.bytes, one.what, one.claimed) == (13, 11, "cfa", "r11")


@pytest.mark.parametrize(("name", "is_wrong"), [("errfinish", False), ("g", True)])
def test_code_behind_a_call_that_mostly_does_not_come_back_is_assumed(
    name: str, is_wrong: bool, tmp_path: Path
) -> None:
    found = verified(
        f"push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %edi,%ebx; call {name};"
        ".cfi_restore 3; .cfi_def_cfa_offset 8; mov %ecx,%eax; ret",
        tmp_path,
    )
    assert (found.wrong, found.assumed) == ((3, 0) if is_wrong else (0, 3))


def test_runs_have_all_that_is_reached_and_not_proved(tmp_path: Path) -> None:
    found = verified("push %rax; nop; pop %rax; jmp g; push %rbx; ret", tmp_path)
    start = int(found.proof.ranges.start[0])
    rows = [(address - start, *rest) for _, address, *rest in found.proof.runs.tolist()]
    assert rows == [
        (1, 2, Verdict.WRONG, CFA_TARGET),
        (8, 1, Verdict.ASSUMED, Why.NO_PATH),
        (9, 1, Verdict.UNKNOWN, Why.ASSUMPTION),
    ]
    assert found.proof.mismatches[:, 2:].tolist() == [[start + 1, 2, CFA_TARGET]]


def test_what_is_no_code_is_unknown(tmp_path: Path) -> None:
    found = verified(".byte 0x06; ret", tmp_path)
    assert found.reasons["bad-code"] == 2  # what is behind it may be anything


def test_a_mismatch_has_the_way_to_it(tmp_path: Path) -> None:
    [one] = verified("test %edi,%edi; je 1f; ret; 1: jmp 2f; nop; 2: push %rax; ret", tmp_path).mismatches
    assert one == Mismatch("f", 0, 10, ".text", 9, 1, "cfa", "rsp+8", "rsp+16", (2, 5), Pattern.PUSH_WITHOUT_RULE)


CATCHES = """.cfi_lsda 3,.Larea; sub $8,%rsp; .cfi_def_cfa_offset 16; push %rdi; {size} 1: call g; 2: {behind}
add $16,%rsp; .cfi_def_cfa_offset 8; ret; 3: {row} mov %rax,%rdi; add $8,%rsp; .cfi_def_cfa_offset 8; ret;
.section .gcc_except_table,"a"; .Larea: .byte 0xff,0xff,1,4; .uleb128 1b-f,2b-1b,3b-f,0; .text"""


@pytest.mark.parametrize(
    ("size", "row", "expected"),
    [
        (".cfi_escape 0x2e,8; .cfi_adjust_cfa_offset 8;", ".cfi_def_cfa_offset 16;", []),
        (".cfi_escape 0x2e,8; .cfi_adjust_cfa_offset 8;", "", [(15, 7, "rsp+24", "rsp+16")]),
        (".cfi_adjust_cfa_offset 8;", ".cfi_def_cfa_offset 16;", [(15, 8, "rsp+16", "rsp+24")]),
    ],
)
def test_an_exception_takes_off_the_stack_what_the_table_says(
    size: str, row: str, expected: list[tuple[int, int, str, str]], tmp_path: Path
) -> None:
    text = CATCHES.format(size=size, row=".cfi_remember_state; .cfi_restore_state;" + row, behind="")
    text = text.replace("ret; 3:", "ret; .cfi_def_cfa_offset 24; 3:")
    found = verified(text, tmp_path)
    assert [(one.address, one.bytes, one.claimed, one.computed) for one in found.mismatches] == expected
    assert (found.assumed, found.unknown) == (0, 0)


def test_exceptions_go_on_whatever_the_section_with_their_areas_is_named(tmp_path: Path) -> None:
    """BOLT puts `.bolt.org` in front of the names of sections that it copies."""
    verified(
        CATCHES.format(size=".cfi_adjust_cfa_offset 8;", row="", behind="").replace("cfi_lsda 3", "cfi_lsda 0x1b"),
        tmp_path,
    )
    linked, renamed = tmp_path / "f.so", tmp_path / "renamed.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", linked, tmp_path / "f.o"], check=True)
    name = ".gcc_except_table"
    subprocess.run(["objcopy", "--rename-section", f"{name}=.bolt.org{name}", linked, renamed], check=True)
    one, other = (next(iter(walkback.verify(path))) for path in (linked, renamed))
    assert (one.proved, one.assumed) == (other.proved, other.assumed)
    assert one.assumed == 0


def test_damaged_files_raise_nothing_else(tmp_path: Path) -> None:
    verified(RIGHT["a table of jumps"], tmp_path)
    whole = (tmp_path / "f.o").read_bytes()
    rng = random.Random(17)
    for _ in range(rounds(600, 40)):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 12)):
            data[rng.randrange(64, len(data))] = rng.randrange(256)
        try:
            for found in walkback.verify(bytes(data)):
                assert found.proved + found.wrong + found.assumed + found.unknown + found.not_reached == found.bytes
                assert found.mismatches is not None
        except WalkbackError:
            pass


def test_a_rule_stays_wrong_behind_each_of_several_calls(tmp_path: Path) -> None:
    text = f"{FRAME} call g; .cfi_def_cfa_offset 24; nop; call g; nop; call g; {LEAVE}"
    found = verified(text, tmp_path)
    assert [(one.address, one.bytes) for one in found.mismatches] == [(9, 13)]
    assert (found.assumed, found.unknown) == (0, 0)


def test_a_function_that_goes_on_with_another_stack_is_not_held_wrong(tmp_path: Path) -> None:
    text = "mov 16(%rdi),%rbx; mov 8(%rdi),%rsp; jmp *(%rdi)"
    found = verified(text, tmp_path)
    assert found.wrong == 0
    assert set(found.reasons) <= {"context-switch", "cfa-value"}


@pytest.mark.parametrize(
    ("back", "wrong"), [("mov %rbx,%rsp; jmp 2b", 1), ("jmp 2b", 0), ("mov 8(%rdi),%rsp; jmp 2b", 0), ("jmp g", 0)]
)
def test_a_function_that_comes_back_to_its_own_stack_is_held_wrong(back: str, wrong: int, tmp_path: Path) -> None:
    text = (
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %rsp,%rbx; test %edi,%edi; je 1f;"
        "2: pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret;"
        f"1: .cfi_def_cfa 3,16; .cfi_offset 3,-16; mov 64(%rdi),%rsp; call g; {back}; nop"
    )
    found = verified(text.replace("2: pop", "push %rax; pop %rax; 2: pop"), tmp_path)
    assert [(one.what, one.claimed, one.computed) for one in found.mismatches] == [("cfa", "rsp+16", "rsp+24")] * wrong


def test_a_function_that_restores_a_whole_context_is_not_held_wrong(tmp_path: Path) -> None:
    found = verified("mov (%rdi),%rbx; mov 8(%rdi),%r12; iretq", tmp_path)
    assert (found.wrong, found.reasons) == (0, {"context-switch": 6})


def test_nothing_is_proved_of_functions_that_go_on_where_an_exception_is_caught(tmp_path: Path) -> None:
    before = HEAD.replace(" f", " _Unwind_Resume").replace("\nf:", "\n_Unwind_Resume:")
    found = verified(
        "push %rbx; .cfi_def_cfa_offset 16; call g; ud2",
        tmp_path,
        before,
        END.replace("size f,.-f", "size _Unwind_Resume,.-_Unwind_Resume"),
    )
    assert (found.proved, found.wrong, found.reasons) == (0, 0, {"context-switch": 6, "padding": 2})


def test_nothing_is_proved_of_a_function_that_is_entered_with_more_on_the_stack(tmp_path: Path) -> None:
    found = verified("nop; nop; .cfi_offset 16,8; nop; .cfi_offset 16,-8; ret", tmp_path)
    assert (found.proved, found.wrong, found.reasons) == (0, 1, {"context-switch": 3})


def test_a_stack_of_variable_size_is_no_other_stack(tmp_path: Path) -> None:
    text = f"{FRAME} sub %rdi,%rsp; mov %rsp,-8(%rbp); sub %rdi,%rsp; mov -8(%rbp),%rsp; xor %ebx,%ebx; call g; {LEAVE}"
    assert {one.what for one in verified(text, tmp_path).mismatches} == {"rbx"}


HELPERS = ".text\nh: .cfi_startproc; ret; .cfi_endproc; g: .cfi_startproc; {}; ret; .cfi_endproc\n".replace(";", "\n")


@pytest.mark.parametrize(
    ("called", "wrong", "unknown"),
    [("call h", 0, 0), ("xor %ecx,%ecx\ncall h", 8, 0), ("call outside", 0, 3), ("call g\ncall h", 0, 0)],
)
def test_a_return_address_in_a_register_outlives_calls_that_keep_it(
    called: str, wrong: int, unknown: int, tmp_path: Path
) -> None:
    text = "pop %rcx; .cfi_def_cfa_offset 0; .cfi_register 16,2; call g; nop; jmp *%rcx"
    found = verified(text, tmp_path, HELPERS.format(called) + HEAD)
    assert (found.wrong, found.unknown, found.reasons) == (wrong, unknown, {"register-value": 3} if unknown else {})


def test_a_return_address_that_may_be_lost_is_not_known_where_it_was_stored_either(tmp_path: Path) -> None:
    moved = "mov %rcx,-64(%rsp); mov -64(%rsp),%rdx; .cfi_register 16,1"
    found = verified(f"pop %rcx; .cfi_def_cfa_offset 0; .cfi_register 16,2; call g; {moved}; jmp *%rdx", tmp_path)
    assert (found.wrong, set(found.reasons)) == (0, {"register-value"})


def test_helpers_without_a_table_may_keep_the_register_that_the_cfa_counts_from(tmp_path: Path) -> None:
    calls = "sub $88,%rsp; call bare; call bare"
    text = f"mov %rsp,%r11; .cfi_def_cfa_register 11; {calls}; mov %r11,%rsp; .cfi_def_cfa 7,8; ret"
    found = verified(text, tmp_path, ".text\nbare: ret\n" + HEAD)
    assert (found.wrong, set(found.reasons)) == (0, {"cfa-value"})


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("call g; ret", True),
        ("call g; hlt", False),
        ("test %edi,%edi; je 1f; call g; ud2; 1: ret", True),
        ("push %rax; call g; ret", False),
        ("call g; .cfi_restore 16; ret", False),
    ],
)
def test_a_row_without_a_caller_is_wrong_where_the_code_returns_to_one(
    text: str, is_wrong: bool, tmp_path: Path
) -> None:
    found = verified(f"nop; .cfi_undefined 16; {text}", tmp_path)
    found_wrong = [(one.what, one.claimed, one.computed, one.pattern) for one in found.mismatches]
    assert (found_wrong, found.wrong) == ([("ra", "undefined", "*(CFA-8)", Pattern.NO_CALLER)] * is_wrong, is_wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("lea 8(%rsp),%r10; .cfi_def_cfa 10,0; call g; .cfi_def_cfa 7,8; ret", [("cfa", "r10", 5)]),
        ("lea 8(%rsp),%r10; .cfi_def_cfa 10,0; call *%rax; .cfi_def_cfa 7,8; ret", [("cfa", "r10", 2)]),
        ("lea 8(%rsp),%r10; .cfi_def_cfa 10,0; nop; .cfi_def_cfa 7,8; call g; ret", []),
        ("lea 8(%rsp),%r10; .cfi_def_cfa 10,0; call keeps; .cfi_def_cfa 7,8; ret", []),
        ("lea 8(%rsp),%r10; .cfi_def_cfa 10,0; call bare; .cfi_def_cfa 7,8; ret", []),
        ("mov %rbx,%rcx; .cfi_register 3,2; xor %ebx,%ebx; call abort", [("rbx", "rcx", 5)]),
        ("mov (%rsp),%rax; .cfi_register 16,0; call g; .cfi_offset 16,-8; ret", []),
    ],
)
def test_a_rule_that_holds_while_something_called_runs_needs_nothing_that_it_overwrites(
    text: str, wrong: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    """Of code that has no table, and of where the return address is, callers may know more."""
    before = ".text; bare: ret; keeps: .cfi_startproc; xor %ecx,%ecx; ret; .cfi_endproc\n".replace(";", "\n")
    found = verified(text, tmp_path, before + HEAD)
    assert [(one.what, one.claimed, one.bytes) for one in found.mismatches] == wrong


def test_a_function_that_comes_back_need_not_do_so_each_time(tmp_path: Path) -> None:
    text = "test %edi,%edi; je 1f; sub $8,%rsp; .cfi_def_cfa_offset 16; call g; .cfi_def_cfa_offset 8; 1: ret"
    found = verified(text, tmp_path, HELPERS.format("call h") + HEAD)
    assert (found.assumed, found.mismatches) == (1, [])


@pytest.mark.parametrize("name", ["camlF.f", "caml_curry3_1_app"])
def test_functions_of_ocaml_keep_no_registers(name: str, tmp_path: Path) -> None:
    head = HEAD.replace("\nf:", f"\n{name}:").replace(" f\n", f" {name}\n").replace(" f,", f" {name},")
    end = END.replace(" f,.-f", f" {name},.-{name}")
    found = verified("xor %ebx,%ebx; push %rax; call g; nop; pop %rax; ret", tmp_path, head, end)
    assert [(one.what, one.bytes) for one in found.mismatches] == [("cfa", 7)]


@pytest.mark.parametrize(("others", "wrong"), [(1, 1), (6, 1), (7, 0)])
def test_a_function_that_a_range_calls_last_comes_back_elsewhere(others: int, wrong: int, tmp_path: Path) -> None:
    """Unless almost all calls of it are like that."""
    last = ".cfi_startproc; sub $8,%rsp; .cfi_def_cfa_offset 16; call g; .cfi_endproc; .p2align 4;"
    text = "push %rax; .cfi_def_cfa_offset 16; call g; pop %rax; ret"
    found = verified(text, tmp_path, ".text\n" + (others * last).replace(";", "\n") + HEAD)
    assert [(one.what, one.claimed, one.computed) for one in found.mismatches] == [("cfa", "rsp+16", "rsp+8")] * wrong


@pytest.mark.parametrize(
    ("section", "rest", "wrong"),
    [
        ("__bug_table", ".short 9, 1", 6),
        ("__bug_table", ".long 0; .short 9, 3", 6),
        ("__bug_table", ".short 9, 0", 2),
        ("__bug_table", ".short 9", 2),
        ("__other", ".short 9, 1", 2),
    ],
)
def test_a_warning_of_linux_comes_back(section: str, rest: str, wrong: int, tmp_path: Path) -> None:
    """Entries have a file or not, the line, and flags."""
    text = (
        "test %edi,%edi; je 1f; sub $8,%rsp; 2: ud2; add $8,%rsp; 1: ret;"
        f'.section {section},"a"; .long 2b-., 0; {rest}; .text'
    )
    found = verified(text, tmp_path)
    assert [(one.address, one.bytes, one.computed) for one in found.mismatches] == [(8, wrong, "rsp+16")]


def test_calls_through_the_global_offset_table_are_followed(tmp_path: Path) -> None:
    calls = "call *abort@GOTPCREL(%rip); xor %ebx,%ebx; 1: jmp *g@GOTPCREL(%rip)"
    found = verified(f"mov v@GOTPCREL(%rip),%rax; test %edi,%edi; je 1f; {calls}", tmp_path)
    assert (found.wrong, found.assumed) == (0, 8)


def test_functions_without_rows_are_unknown() -> None:
    """Two that are called, and one that is not; their table has nothing else."""
    builder = SFrameBuilder(3, address=SFRAME)
    for number in range(3):
        builder.function(TEXT + number * SIZE, SIZE, [])
    elf = linked(builder.bytes())
    code = bytearray(b"\x90" * (3 * SIZE))
    for number in (1, 2):
        struct.pack_into("<Bi", code, 8 * number, 0xE8, number * SIZE - 8 * number - 5)
    [text] = [one for one in elf.sections if one.name == ".text"]
    text.data = bytes(code)
    [found] = walkback.verify(bytes(elf.build()))
    assert (found.unknown, set(found.reasons)) == (found.reached, {"no-rule"})


SILENT_BY_WORD = """test %edi,%edi; je 1f; 0: ret; 1: push %rax; .cfi_def_cfa_offset 16; call *{}@GOTPCREL(%rip)
.cfi_def_cfa_offset 8; jmp 0b; .cfi_endproc; .size f,.-f; .globl own; .type own,@function; own: .cfi_startproc
push %rbp; .cfi_def_cfa_offset 16; call abort@PLT"""


@pytest.mark.parametrize(("name", "wrong"), [("abort", 0), ("own", 0), ("puts", 1)])
@pytest.mark.parametrize("option", ["-Wl,-Bsymbolic", "-Wl,-z,now"])
def test_a_call_through_a_word_may_not_come_back(name: str, wrong: int, option: str, tmp_path: Path) -> None:
    """Code of Rust calls so, and that for which C compilers get `-fno-plt`."""
    verified(SILENT_BY_WORD.format(name), tmp_path, behind="\n.cfi_endproc\n.size own,.-own\n")
    options = ["-shared", "-nostdlib", "-Wl,--no-relax", option]
    subprocess.run(["gcc", *options, "-o", tmp_path / "f.so", tmp_path / "f.o"], check=True)
    [found] = walkback.verify(tmp_path / "f.so")
    assert found.functions_wrong == wrong
