"""What tables made from code know of where functions begin, how they are entered, and where a frame is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from codetables import table_of
from walkback.elf import ElfFile
from walkback.proof._found import Found
from walkback.proof.findings import Findings
from walkback.table.rule import PartKind
from walkback.table.table import UnwindTable

CALLED = ".globl _start\n_start: call {0}\nhlt\n"
"""A program that calls a function."""


def program(folder: Path, text: str) -> tuple[ElfFile, dict[str, int]]:
    """A linked program, and where its labels are; it is stripped, so that only its code says where functions are."""
    (folder / "one.s").write_text(f".text\n{text}")
    subprocess.run(["gcc", "-nostdlib", "-no-pie", "-Wl,-z,norelro", "-o", "one", "one.s"], cwd=folder, check=True)
    symbols = subprocess.run(["nm", "one"], cwd=folder, check=True, capture_output=True, text=True).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
    subprocess.run(["strip", "one"], cwd=folder, check=True)
    return ElfFile(folder / "one"), places


def rule_at(table: UnwindTable, address: int) -> str | None:
    """The text of the rule of an address; None where there is none."""
    found = table.find(address)
    if found is None or found.rule.cfa.kind == PartKind.INEXPRESSIBLE:
        return None
    return found.rule.text(table.machine)


def test_a_frame_on_an_aligned_stack(tmp_path: Path) -> None:
    elf, places = program(
        tmp_path,
        CALLED.format("realigned")
        + """
realigned:
    lea 8(%rsp), %r10
aligned:
    and $-32, %rsp
    push -8(%r10)
    push %rbp
    mov %rsp, %rbp
framed:
    push %r10
saved:
    sub $8, %rsp
    call leaf
    mov -8(%rbp), %r10
    leave
    lea -8(%r10), %rsp
    ret
leaf: ret
""",
    )
    table = table_of(elf)
    assert rule_at(table, places["realigned"]) == "CFA = rsp+8, RA = *(CFA-8), FP unchanged"
    assert rule_at(table, places["framed"]) == "CFA = r10, RA = *(CFA-8), FP = *(rbp)"
    assert rule_at(table, places["saved"]) == "CFA = *(rbp-8), RA = *(CFA-8), FP = *(rbp)"


FOLLOWED = {
    "a register that calls keep": ("mov (%r14), %rax", None),
    "a register of an argument": ("mov (%rdi), %rax", "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
}


@pytest.mark.parametrize(("instruction", "expected"), FOLLOWED.values(), ids=FOLLOWED)
def test_code_with_its_own_ideas_of_registers_is_left_out(
    instruction: str, expected: str | None, tmp_path: Path
) -> None:
    elf, places = program(tmp_path, CALLED.format("other") + f"other: {instruction}\ncall leaf\nend: ret\nleaf: ret\n")
    assert rule_at(table_of(elf), places["end"]) == expected


def test_arguments_that_are_pushed_where_functions_begin(tmp_path: Path) -> None:
    elf, places = program(
        tmp_path,
        CALLED.format("caller")
        + """
    .p2align 4
caller:
    sub $8, %rsp
    .skip 7, 0x90
    call leaf
    .p2align 4
pushing:
    push %r14
    push %r12
    call leaf
    add $16, %rsp
    add $8, %rsp
    ret
    .p2align 4
leaf: ret
"""
        + "call leaf\ninc %eax\n" * 9,
    )
    assert places["pushing"] % 16 == 0
    assert rule_at(table_of(elf), places["pushing"]) == "CFA = rsp+16, RA = *(CFA-8), FP unchanged"


def test_code_where_nothing_leads_does_not_spoil_a_function(tmp_path: Path) -> None:
    elf, places = program(
        tmp_path,
        CALLED.format("whole")
        + """
whole:
    push %rbx
    sub $16, %rsp
    call leaf
shared:
    add $16, %rsp
    pop %rbx
    ret
pad:
    mov %rax, %rdi
    jmp shared
leaf: ret
""",
    )
    table = table_of(elf)
    assert rule_at(table, places["shared"]) == "CFA = rsp+32, RA = *(CFA-8), FP unchanged"
    assert rule_at(table, places["pad"]) is None


def test_parts_of_functions_that_stand_behind_another_are_not_judged_with_it(tmp_path: Path) -> None:
    """As compilers put what is seldom run, in one place for many functions."""
    elf, places = program(
        tmp_path,
        CALLED.format("both")
        + """
both:
    call one
    call other
    call odd
    ret
one:
    push %rbx
    test %edi, %edi
    jne part_of_one
back: pop %rbx
    ret
other:
    sub $24, %rsp
    test %edi, %edi
    jne part_of_other
    add $24, %rsp
    ret
odd:
    pop %rax
    pop %rcx
    jmp *%rax
part_of_one:
    call leaf
    jmp back
part_of_other:
    push %rdi
    call leaf
    hlt
leaf: ret
""",
    )
    table = table_of(elf)
    assert rule_at(table, places["odd"]) is None
    assert rule_at(table, places["part_of_one"]) == "CFA = rsp+16, RA = *(CFA-8), FP unchanged"
    assert rule_at(table, places["part_of_other"]) == "CFA = rsp+32, RA = *(CFA-8), FP unchanged"


def test_functions_that_go_on_in_the_same_code_return_both(tmp_path: Path) -> None:
    """As `mempcpy` and `memmove`: whichever is walked first, neither is a part of the other."""
    elf, places = program(
        tmp_path,
        CALLED.format("*table(,%rdi,8)")
        + """
behind:
    lea (%rdi,%rdx), %rax
    jmp 1f
    .p2align 4
copy:
    mov %rdi, %rax
1:  test %rdx, %rdx
    je 2f
    mov (%rsi), %cl
    mov %cl, (%rdi)
2:  ret
.data
table: .quad behind, copy
""",
    )
    table = table_of(elf)
    assert {rule_at(table, places[name]) for name in ("behind", "copy")} == {"CFA = rsp+8, RA = *(CFA-8), FP unchanged"}


def test_what_looks_like_a_function_begins_before_what_does_not(tmp_path: Path) -> None:
    """The handler of an exception goes on in a function to which data points, with the frame of that."""
    elf, places = program(
        tmp_path,
        CALLED.format("*table")
        + """
leaf: ret
pad:
    mov %rax, %rbp
    jmp shared
    .p2align 4
whole:
    push %rbx
    sub $16, %rsp
    mov %rdi, %rbx
    call leaf
shared:
    add $16, %rsp
    pop %rbx
    ret
.data
table: .quad whole
""",
    )
    assert rule_at(table_of(elf), places["shared"]) == "CFA = rsp+32, RA = *(CFA-8), FP unchanged"


def test_what_falls_into_a_function_behind_a_system_call_is_none(tmp_path: Path) -> None:
    """As the C library's return from a handler: that call does not come back."""
    elf, places = program(
        tmp_path,
        CALLED.format("*table(,%rdi,8)")
        + """
jumps: jmp next
.p2align 4
restore: mov $15, %rax
    syscall
    nop
next: mov %rdi, %rax
    ret
.data
table: .quad jumps, restore
""",
    )
    assert rule_at(table_of(elf), places["restore"]) is None


IMPOSSIBLE = {  # how a function comes to code that another is known to jump to, if it is known how that comes there
    "out of bounds": ("cmp $9, %eax\nja part", "", False),
    "equal": ("cmp $9, %eax\nje part", "", True),
    "behind": ("test %eax, %eax\nje odd", "odd: xor %eax, %eax\nmov %eax, 32(%rax)", False),
    "behind, and by a jump": ("test %eax, %eax\nje odd\njs part", "odd: xor %eax, %eax\nmov %eax, 32(%rax)", True),
}


@pytest.mark.parametrize(("leads", "part", "known"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_ways_that_cannot_be_gone_lead_to_no_part(leads: str, part: str, known: bool, tmp_path: Path) -> None:
    """Where compilers know that, they let them lead to what stands behind: the part of another, which exceptions reach.

    One that is also come to by another jump is known.
    """
    elf, places = program(
        tmp_path,
        CALLED.format("both")
        + f"""
both:
    call one
    call other
    ret
one:
    sub $24, %rsp
    call leaf
    {leads}
    add $24, %rsp
    ret
other:
    push %rbx
    call leaf
    pop %rbx
    ret
    mov %rax, %rbx
    jmp part
odd_one:
    pop %rax
    pop %rcx
    jmp *%rax
{part}
part:
    mov %rbx, %rdi
    call leaf
    hlt
leaf: ret
""",
    )
    found = rule_at(table_of(elf), places["part"])
    assert found == ("CFA = rsp+32, RA = *(CFA-8), FP unchanged" if known else None)


def test_tables_of_jumps_that_stand_one_behind_the_other(tmp_path: Path) -> None:
    """The first has no bound in the code; it ends where the second one begins, whose entries lead to other frames."""
    elf, places = program(
        tmp_path,
        CALLED.format("both")
        + """
both:
    call one
    jmp two
one:
    push %rbx
    jmp *table_of_one(,%rdi,8)
case_of_one:
    pop %rbx
    ret
two:
    push %rbx
    push %rbx
    jmp *table_of_two(,%rdi,8)
case_of_two:
    pop %rbx
    pop %rbx
    ret
    .section .rodata
table_of_one: .quad case_of_one, case_of_one
table_of_two: .quad case_of_two, case_of_two
""",
    )
    table = table_of(elf)
    assert rule_at(table, places["case_of_one"]) == "CFA = rsp+16, RA = *(CFA-8), FP unchanged"
    assert rule_at(table, places["case_of_two"]) == "CFA = rsp+24, RA = *(CFA-8), FP unchanged"


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_first_row_of_a_range_comes_behind_the_end_of_the_one_in_front(rounds: int) -> None:
    """Whichever was walked first, and in whichever round."""
    in_front, behind = [[0, 0x10, 1, 1, 0], [0, 0x20, 0, 0, 0]], [[1, 0x20, 1, 1, 1]]
    found = Findings(np.array([0x18, 0x20], np.uint64))
    if rounds == 1:
        found.add(found_rows([*behind, *in_front]), np.array([-1, -1]))
    else:
        found.add(found_rows([*behind]), np.array([-1, -1]))
        found.add(found_rows([*in_front]), np.array([-1, 1]))
    row, has_rule = found.last_rows()
    assert has_rule.tolist() == [True, True]
    assert row[0] != row[1]


def found_rows(rows: list[list[int]]) -> Found:
    """What a walk through two ranges found."""
    none, places = np.zeros((0, 3), np.uint64), np.zeros(2, np.uint64)
    return Found(np.array(rows, np.uint64), np.zeros(2, np.uint16), none, none, places, places.copy())
