"""Defects of unwind tables that others published: the proof finds each, in code of its shape and in real files."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

import walkback
from peers import peer, root, wheel
from proof.assembled import END, HEAD, verified
from walkback.proof.patterns import Pattern

if TYPE_CHECKING:
    from pathlib import Path

PUSHES = "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; push %rbx; .cfi_def_cfa_offset 24; .cfi_offset 3,-24;"
POPS = "pop %rbx; .cfi_def_cfa_offset 16; pop %rbp; .cfi_def_cfa_offset 8;"
DOUBLE = (
    "double: .cfi_startproc; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $160,%rsp;"
    ".cfi_def_cfa_offset 176; shortcut: call g; add $160,%rsp; .cfi_def_cfa_offset 16; pop %rbx; .cfi_restore 3;"
    ".cfi_def_cfa_offset 8; ret; .cfi_endproc\n"
).replace(";", "\n")


class Shape(NamedTuple):
    """A function, and the first place where a rule for the CFA is wrong."""

    text: str
    offset: int
    claimed: str
    computed: str
    pattern: Pattern


SHAPES = {
    "llvm-project #220720: an instruction of two epilogues is moved in front of a branch, without its rule": Shape(
        f"{PUSHES} push %rax; .cfi_def_cfa_offset 32; call g; add $8,%rsp; test %ebp,%ebp; je 1f;"
        f".cfi_def_cfa_offset 24; {POPS} jmp h; 1: .cfi_def_cfa_offset 24; {POPS} jmp i",
        12,
        "rsp+32",
        "rsp+24",
        Pattern.EPILOGUE_HOISTED,
    ),
    "ocaml #15037: the check of the stack is behind the function, with the rules of its end": Shape(
        "lea -328(%rsp),%r10; cmp 40(%r14),%r10; jb 2f; 1: sub $8,%rsp; .cfi_adjust_cfa_offset 8; mov %rsp,%rbx;"
        ".cfi_remember_state; .cfi_def_cfa_register 3; mov 64(%r14),%rsp; call g; mov %rbx,%rsp; .cfi_restore_state;"
        "add $8,%rsp; .cfi_adjust_cfa_offset -8; ret; .cfi_adjust_cfa_offset 8; 2: push $34; .cfi_adjust_cfa_offset 8;"
        "call caml_call_realloc_stack; pop %r10; .cfi_adjust_cfa_offset -8; jmp 1b",
        38,
        "rsp+16",
        "rsp+8",
        Pattern.RULE_NOT_RESTORED,
    ),
    "openssl #8109: the shortcut from adding points to doubling one": Shape(
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; sub $576,%rsp; .cfi_def_cfa_offset 592; call g;"
        "test %eax,%eax; jne 1f; add $416,%rsp; jmp shortcut; 1: add $576,%rsp; .cfi_def_cfa_offset 16; pop %rbx;"
        ".cfi_restore 3; .cfi_def_cfa_offset 8; ret",
        24,
        "rsp+592",
        "rsp+176",
        Pattern.POP_WITHOUT_RULE,
    ),
    "openssl #8109: the slow path of AES_cbc_encrypt": Shape(
        "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; cmp $512,%rdx; jb 1f; mov %rsp,%rbx;"
        ".cfi_def_cfa_register 3; sub $88,%rsp; and $-64,%rsp; mov %rbx,16(%rsp);"
        ".cfi_escape 0x0f,5,0x77,16,6,0x23,16; call g; 2: mov 16(%rsp),%rbx; .cfi_def_cfa 3,16; mov %rbx,%rsp;"
        ".cfi_def_cfa_register 7; pop %rbx; .cfi_def_cfa_offset 8; .cfi_restore 3; ret;"
        ".cfi_offset 3,-16; .cfi_escape 0x0f,5,0x77,16,6,0x23,16; 1: mov %rsp,%rbx; .cfi_def_cfa 3,16; sub $88,%rsp;"
        "and $-64,%rsp; mov %rbx,16(%rsp); .cfi_escape 0x0f,5,0x77,16,6,0x23,16; call h; jmp 2b",
        41,
        "an expression",
        "rsp+16",
        Pattern.RULE_NOT_RESTORED,
    ),
    "opentelemetry-ebpf-profiler #1825: the second epilogue of DelayLoad_Helper goes on from the first": Shape(
        ".cfi_def_cfa_offset 24; mov (%rsp),%rcx; mov %rbx,(%rsp); .cfi_offset 3,-24; mov 8(%rsp),%rdx;"
        "mov %rbp,8(%rsp); .cfi_offset 6,-16; lea -136(%rsp),%rsp; .cfi_adjust_cfa_offset 136; call g;"
        "test %rax,%rax; jne 1f; lea 136(%rsp),%rsp; .cfi_adjust_cfa_offset -136; pop %rbx; .cfi_adjust_cfa_offset -8;"
        ".cfi_restore 3; pop %rbp; .cfi_adjust_cfa_offset -8; .cfi_restore 6; ret;"
        "1: lea 136(%rsp),%rsp; .cfi_adjust_cfa_offset -136; pop %rbx; .cfi_adjust_cfa_offset -8; pop %rbp; jmp *%rax",
        47,
        "rsp+8",
        "rsp+160",
        Pattern.RULE_NOT_RESTORED,
    ),
    "cpython #146071: the rules of a prologue, for code that has none": Shape(
        "nop; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %rdi,%rax; .cfi_def_cfa_register 6; call g; ret",
        1,
        "rsp+16",
        "rsp+8",
        Pattern.WRONG_CFA,
    ),
}


@pytest.mark.kernel
@pytest.mark.parametrize("name", SHAPES)
def test_code_of_the_same_shape_is_wrong_where_it_was_said_to_be(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    function = "camlF.f" if name.startswith("ocaml") else "f"
    head, end = (part.replace("f:", f"{function}:").replace(" f", f" {function}") for part in (HEAD, END))
    found = verified(shape.text, tmp_path, ".text\n" + DOUBLE + head, end.replace("-f", f"-{function}"))
    first = min((one for one in found.mismatches if one.what == "cfa"), key=lambda one: one.address)
    assert (first.address - first.start, first.claimed, first.computed, first.pattern) == shape[1:]
    assert "context-switch" not in found.reasons


def test_functions_without_rules_are_listed(tmp_path: Path) -> None:
    """Those of openssl #10678, which functions with rules call."""
    found = verified("call bare; ret", tmp_path, behind=END + ".type bare,@function\nbare: ret\n.size bare,1\n")
    assert [(one.function, one.start, one.size) for one in found.undescribed] == [("bare", 6, 1)]


def test_the_part_of_a_function_behind_its_rules_is_listed(tmp_path: Path) -> None:
    text = "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; call g; .cfi_endproc; pop %rbx; ret"
    found = verified(text, tmp_path, behind="\n.size f,.-f\n")
    assert [(one.function, one.start, one.size) for one in found.undescribed] == [("f", 6, 2)]


def of_openssl(name: str) -> tuple[list[tuple[str | None, int, str, str]], set[str]]:
    """Where the library of a wheel has wrong CFAs, and which of its functions are not described."""
    [found] = walkback.verify(wheel(name))
    wrong = [(one.function, one.bytes, one.claimed, one.computed) for one in found.mismatches if one.what == "cfa"]
    return wrong, {one.function for one in found.undescribed}


@pytest.mark.peers
def test_openssl_1_1_1a_has_all_of_8109_and_10678() -> None:
    wrong, bare = of_openssl("cryptography-2.5")
    assert ("ecp_nistz256_point_add", 5, "rsp+640", "rsp+224") in wrong
    assert ("ecp_nistz256_point_addx", 5, "rsp+640", "rsp+224") in wrong
    assert ("AES_cbc_encrypt", 35, "an expression", "rsp+64") in wrong
    assert {"__poly1305_block", "__poly1305_init_avx", "poly1305_init", "poly1305_emit", "poly1305_emit_avx"} < bare


@pytest.mark.peers
def test_openssl_1_1_1g_has_neither() -> None:
    wrong, bare = of_openssl("cryptography-2.9.2")
    assert bare == {"rsaz_avx2_eligible"}
    assert {name for name, *_ in wrong} == {"bn_gather5", "x25519_fe51_sqr", "x25519_fe64_sqr"}


@pytest.mark.peers
def test_clang_moves_an_instruction_in_front_of_a_branch(tmp_path: Path) -> None:
    source, target = tmp_path / "either.c", tmp_path / "either.o"
    source.write_text(
        "int prepare(void), left(long), right(long);\n"
        "int either(long number, int is_left) { prepare(); return is_left ? left(number) : right(number); }\n"
    )
    subprocess.run([peer("clang-19"), "-O2", "-fPIC", "-c", source, "-o", target], check=True)
    [found] = walkback.verify(target)
    assert [one.pattern for one in found.worst()] == [Pattern.EPILOGUE_HOISTED]


@pytest.mark.peers
def test_ocaml_checks_the_stack_behind_its_functions() -> None:
    [found] = walkback.verify(root("samples-amd64") / "usr/bin/cppo")
    checks = {one.start for one in found.mismatches if one.what == "cfa" and one.computed == "rsp+8"}
    assert len(checks) > 500
    assert len(checks) > found.functions_wrong * 3 // 4
