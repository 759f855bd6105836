"""Which ranges of AMD64 are functions that are called, and which are parts of others or entered otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proof.assembled import END, HEAD, verified

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kernel


def test_a_part_before_its_function_is_reached(tmp_path: Path) -> None:
    part = (
        "part: .cfi_startproc; .cfi_def_cfa_offset 16; call g; add $8,%rsp; .cfi_def_cfa_offset 8; ret; .cfi_endproc\n"
    )
    before = ".text\n" + part.replace(";", "\n") + HEAD
    found = verified("sub $8,%rsp; .cfi_def_cfa_offset 16; jmp part", tmp_path, before)
    assert (found.functions_proved, found.proved) == (2, found.bytes)


def test_a_function_that_begins_with_room_for_a_patch_is_an_entry(tmp_path: Path) -> None:
    part = "part: .cfi_startproc; .cfi_def_cfa_offset 16; call g; jmp back; .cfi_endproc\n".replace(";", "\n")
    frame = "sub $8,%rsp; .cfi_def_cfa_offset 16; test %edi,%edi; jne part; back: pop %rax; .cfi_def_cfa_offset 8; ret"
    found = verified(f"nop; nop; {frame}", tmp_path, ".text\n" + part + HEAD)
    assert (found.functions_proved, found.proved) == (2, found.bytes)


@pytest.mark.parametrize(("name", "is_part"), [("f.cold", True), ("f.cold.12", True), ("f.warm", True), ("g", False)])
def test_parts_of_functions_are_no_entries(name: str, is_part: bool, tmp_path: Path) -> None:
    behind = f"""{END}.type {name},@function; .p2align 4; {name}: .cfi_startproc; .cfi_def_cfa_offset 16; mov %edi,%eax
        mov %eax,%eax; ret; .cfi_endproc; .size {name},.-{name}\n"""
    found = verified("ret", tmp_path, behind=behind.replace(";", "\n"))
    assert (found.assumed, found.wrong) == ((5, 0) if is_part else (0, 5))


def test_what_takes_more_off_the_stack_than_a_call_left_there_is_no_function(tmp_path: Path) -> None:
    """As the last handler of an interpreter does, which returns from the function that began it."""
    behind = f"""{END}.type g,@function; .p2align 4; g: .cfi_startproc; .cfi_def_cfa_offset 16; add $8,%rsp
        .cfi_def_cfa_offset 8; ret; .cfi_endproc; .size g,.-g\n"""
    found = verified("ret", tmp_path, behind=behind.replace(";", "\n"))
    assert (found.assumed, found.wrong) == (5, 0)


HANDLERS = """.type first,@function; .p2align 4; first: .cfi_startproc; .cfi_def_cfa_offset 64; .cfi_undefined 3
    mov (%rbx),%eax; inc %rbx; jmp *%rax; .cfi_endproc; .size first,.-first
    .type other,@function; other: .cfi_startproc; .cfi_def_cfa_offset {}; .cfi_undefined 3; jmp first
    .cfi_endproc; .size other,.-other\n"""


@pytest.mark.parametrize(("offset", "wrong"), [(64, 0), (72, 9)])
def test_handlers_of_an_interpreter_have_the_frame_that_their_rows_say(offset: int, wrong: int, tmp_path: Path) -> None:
    """They only go on as no function does, and all begin with the same rule."""
    behind = END + HANDLERS.format(offset).replace(";", "\n")
    found = verified("ret", tmp_path, behind=behind)
    assert found.wrong == wrong


THUNK = """.type {0},@function; .p2align 4; {0}: .cfi_startproc; .cfi_def_cfa_offset 16; push %rbp; .cfi_offset 6,-16
    mov %rsp,%rbp; .cfi_def_cfa_register 6; add $8,%rdi; pop %rbp; .cfi_restore 6; .cfi_def_cfa 7,8; {1}; .cfi_endproc
    .size {0},.-{0}\n"""


def test_a_first_row_that_comes_early_is_wrong_though_that_of_what_it_goes_on_in_is_as_well(tmp_path: Path) -> None:
    behind = END + (THUNK.format("one", "jmp other") + THUNK.format("other", "ret")).replace(";", "\n")
    found = verified("ret", tmp_path, behind=behind)
    assert [(one.function, one.bytes, one.claimed, one.computed) for one in found.mismatches] == [
        ("one", 1, "rsp+16", "rsp+8"),
        ("other", 1, "rsp+16", "rsp+8"),
    ]


PUSHED = (
    ".cfi_def_cfa_offset 24; mov (%rsp),%rcx; mov %rbx,(%rsp); .cfi_offset 3,-24; call g; pop %rbx; .cfi_restore 3;"
)


@pytest.mark.parametrize(
    ("back", "verdicts", "wrong"),
    [
        (".cfi_def_cfa_offset 16; add $8,%rsp; .cfi_def_cfa_offset 8; ret", (0, 0, 19), []),
        ("nop; .cfi_def_cfa_offset 16; add $8,%rsp; .cfi_def_cfa_offset 8; ret", (0, 1, 19), [("rsp+24", "rsp+16")]),
    ],
)
def test_a_stub_may_be_entered_with_arguments_on_the_stack(
    back: str, verdicts: tuple[int, int, int], wrong: list[tuple[str, str]], tmp_path: Path
) -> None:
    """It keeps a register in the place of one, which would be that of the return address if it had been called."""
    found = verified(PUSHED + back, tmp_path)
    assert (found.proved, found.wrong, found.assumed) == verdicts
    assert [(one.claimed, one.computed) for one in found.mismatches] == wrong
