"""Registers that a whole file uses for something else than the ABI says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import walkback

HANDLER = """
    .globl handler{number}
    .type handler{number}, @function
handler{number}:
    .cfi_startproc
    subq $8, %rsp
    .cfi_def_cfa_offset 16
    call *8(%r15)
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    addq $32, %r15
    ret
    .cfi_endproc
    .size handler{number}, .-handler{number}
"""
WRONG = """
    .globl other
    .type other, @function
other:
    .cfi_startproc
    pushq %rbx
    call *8(%rbx)
    popq %rbx
    ret
    .cfi_endproc
    .size other, .-other
"""


def wrong_functions(folder: Path, handlers: int) -> set[str | None]:
    text = "".join(HANDLER.format(number=number) for number in range(handlers)) + WRONG
    (folder / "a.s").write_text(text)
    subprocess.run(["gcc", "-shared", "-nostdlib", "a.s", "-o", "a.so"], cwd=folder, check=True)
    [result] = walkback.verify(folder / "a.so")
    assert result.functions_careless == (handlers if handlers > 16 else 0)
    return {one.function for one in result.mismatches}


def test_a_register_that_many_functions_return_changed_is_kept_for_nobody(tmp_path: Path) -> None:
    assert wrong_functions(tmp_path, 20) == {"other"}


def test_a_few_functions_are_wrong(tmp_path: Path) -> None:
    assert wrong_functions(tmp_path, 3) == {"other", "handler0", "handler1", "handler2"}
