"""Where Linux goes on that its instructions do not show: static branches, alternatives and faults."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import walkback
from effort import rounds
from peers import peer
from proof.assembled import verified

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.sections.verified import Verified

CODE = {
    "x86-64": (
        "push %rax; .cfi_def_cfa_offset 16; 1: {first}; pop %rax; .cfi_def_cfa_offset 8; ret;"
        ".cfi_def_cfa_offset {rule}; 2: call g; pop %rax; .cfi_def_cfa_offset 8; ret;"
    ),
    "AArch64": (
        "sub sp,sp,#16; .cfi_def_cfa_offset 16; 1: {first}; add sp,sp,#16; .cfi_def_cfa_offset 0; ret;"
        ".cfi_def_cfa_offset {rule}; 2: nop; add sp,sp,#16; .cfi_def_cfa_offset 0; ret;"
    ),
}
"""Its second part begins at 2. Only the tables lead there; or where it begins with a jump, only they lead past that."""
BRANCH = '.section __jump_table,"aw"; .long 1b-., 2b-.; .quad k-.;'
FAULT = '.section __ex_table,"a"; .long 1b-., 2b-., 3;'
ALTERNATIVE = '.section .altinstr_replacement,"ax"; 3: {0}; .section .altinstructions,"a"; .long 1b-., 3b-.;'
NOP = ".byte 0x0f,0x1f,0x44,0,0"
WAYS = {
    "a static branch that is not taken at first": ("x86-64", NOP, BRANCH),
    "a static branch that is taken at first": ("x86-64", ".byte 0xe9; .long 2f-.-4", BRANCH),
    "a short one": ("x86-64", "jmp 2f", BRANCH),
    "an access that fails": ("x86-64", "mov (%rdi),%rax", FAULT),
    "a jump that is put in": ("x86-64", NOP, f"{ALTERNATIVE.format('jmp 2b')} .long 7; .byte 5,5;"),
    "a jump that is put in before Linux 6.3": (
        "x86-64",
        NOP,
        f"{ALTERNATIVE.format('jmp 2b')} .short 7; .byte 5,5;",
    ),
    "a jump that is put in before Linux 5.18": (
        "x86-64",
        NOP,
        f"{ALTERNATIVE.format('jmp 2b')} .short 7; .byte 5,5,0;",
    ),
    "a jump that is taken away": ("x86-64", "jmp 2f", f"{ALTERNATIVE.format('')} .long 7; .byte 2,0;"),
    "a static branch of AArch64 that is not taken at first": ("AArch64", "nop", BRANCH),
    "a static branch of AArch64 that is taken at first": ("AArch64", "b 2f", BRANCH),
    "an access of AArch64 that fails": ("AArch64", "ldr x0,[x0]", FAULT),
    "a jump of AArch64 that is put in": ("AArch64", "nop", f"{ALTERNATIVE.format('b 2b')} .short 7; .byte 4,4;"),
    "a jump of AArch64 that is taken away": ("AArch64", "b 2f", f"{ALTERNATIVE.format('')} .short 7; .byte 4,0;"),
}


def with_table(name: str, folder: Path, *, rule: int = 16, is_read: bool = True) -> Verified:
    """The function, and the table or one of another name."""
    machine, first, table = WAYS[name]
    if not is_read:
        table = table.replace("section __", "section other").replace("section .alt", "section .other")
    text = CODE[machine].format(first=first, rule=rule)
    return verified(f"{text}{table} .text", folder, assembler=peer("aarch64-as-2.44") if machine == "AArch64" else "as")


@pytest.mark.parametrize("name", WAYS)
def test_what_the_tables_of_the_kernel_lead_to_is_proved(name: str, tmp_path: Path) -> None:
    found = with_table(name, tmp_path)
    assert (found.proved, found.assumed, found.mismatches) == (found.reached, 0, [])
    assert with_table(name, tmp_path, is_read=False).reasons["no-path"] > 0
    assert {one.what for one in with_table(name, tmp_path, rule=32).mismatches} == {"cfa"}


def test_the_static_branches_of_the_kernel_itself_are_between_symbols(tmp_path: Path) -> None:
    _, first, _ = WAYS["a static branch that is not taken at first"]
    table = BRANCH.replace('__jump_table,"aw";', ".rodata; k: __start___jump_table:") + "__stop___jump_table:;"
    text = CODE["x86-64"].format(first=first, rule=16).replace("call g", "nop")
    for more, is_proved in ((f"{FAULT} .text", True), (".text", False)):
        verified(f"{text}{table}{more}", tmp_path)
        subprocess.run(["ld", "-e", "f", "-o", tmp_path / "vmlinux", tmp_path / "f.o"], check=True)
        [found] = walkback.verify(tmp_path / "vmlinux")
        assert (found.proved == found.reached) is is_proved


def test_no_bytes_in_the_tables_of_the_kernel_stop_a_proof(tmp_path: Path) -> None:
    sections = ("__jump_table", "__ex_table", "__bug_table", ".altinstructions")
    text = CODE["x86-64"].format(first=f"ud2; {NOP}; jmp 2f", rule=16)
    chance = np.random.default_rng(1)
    for _ in range(rounds(60, 10)):
        lines = []
        for name in sections:
            numbers = chance.integers(-64, 64, int(chance.integers(1, 30)))
            lines.append(f'.section {name},"a"; .long {",".join(f"f+{number}-." for number in numbers.tolist())};')
        found = verified(f"{text}{''.join(lines)} .text", tmp_path)
        assert found.proved + found.assumed + found.wrong + found.unknown == found.reached
        data = bytearray((tmp_path / "f.o").read_bytes())
        for place in chance.integers(64, len(data), 20).tolist():
            data[place] = int(chance.integers(256))
        with contextlib.suppress(walkback.WalkbackError):
            list(walkback.verify(bytes(data)))
