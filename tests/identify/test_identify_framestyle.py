"""GCC and LLVM are told apart by their call frame information alone, on each machine."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from identify.sampled import ARCHITECTURES, opened, sampled
from peers import run
from walkback.elf import ElfFile
from walkback.identify.framestyle import frame_style

SOURCE = """
int g(int, ...);
int looping(int a, int b, int c, int d) {
    int x = 0;
    for (int i = a; i < b; i++) { x += g(x, i, c); if (x == d) return 7; g(c, x, b); }
    return x + g(a, b, c, d) + a * b;
}
int early(int *p, int b, int c) { if (!p) return 0; int q = g(1, b); if (g(q, c) > 2) return g(b); return q + c; }
int fourth(int *p, int b) { if (g(b)) { g(1); return b; } while (p[b]) { if (g(p[b])) return 3; b++; } return g(b, 1); }
int third(int a, int b) { int x = g(a); if (x) return g(b) + x; int y = g(x, b); return x + y + g(y) + a; }
"""
PREFIXES = ["", "aarch64-", "s390x-"]

PUSHES_LLVM = ".cfi_def_cfa_offset 16; nop; .cfi_def_cfa_offset 24; .cfi_offset 3, -24; .cfi_offset 6, -16; nop"
PUSHES_GCC = ".cfi_def_cfa_offset 16; .cfi_offset 6, -16; nop; .cfi_def_cfa_offset 24; .cfi_offset 3, -24; nop"
FRAME = ".cfi_def_cfa_offset 16; .cfi_offset 6, -16; nop; .cfi_def_cfa_register 6; nop; "
AGAIN_LLVM = FRAME + ".cfi_def_cfa 7, 8; nop; .cfi_def_cfa 6, 16; nop; .cfi_def_cfa 7, 8; nop"
ELSEWHERE_GCC = FRAME + ".cfi_def_cfa 7, 8; .cfi_restore 6; nop; .cfi_def_cfa 6, 16; .cfi_offset 6, -16; nop"
AGAIN_GCC = FRAME + ".cfi_remember_state; .cfi_def_cfa 7, 8; nop; .cfi_restore_state; nop"
ONCE = FRAME + ".cfi_def_cfa 7, 8; nop"
STORE = "".join(f".cfi_offset {register}, {register * 8 - 160}; " for register in (6, 7, 14, 15))
ALL = "".join(f".cfi_offset {register}, {register * 8 - 160}; " for register in range(6, 16))


def assembled(tmp_path: Path, assembler: str, functions: list[str], *options: str) -> ElfFile:
    """An object of functions, each of which has these directives behind its first instruction."""
    text = "".join(
        f".type f{number}, %function\nf{number}: .cfi_startproc; nop; {body}; nop; .cfi_endproc\n"
        for number, body in enumerate(functions)
    )
    # Semicolons are comments to some.
    (tmp_path / "a.s").write_text(".text\n" + text.replace("; ", "\n"))
    command = [*options, "a.s", "-o", "a.o"]
    if assembler == "as":
        subprocess.run(["as", *command], cwd=tmp_path, check=True)
    else:
        run(assembler, *command, cwd=tmp_path, check=True)
    return ElfFile(tmp_path / "a.o")


def style(tmp_path: Path, assembler: str, functions: list[str], *options: str) -> str | None:
    assembled(tmp_path, assembler, functions, *options)
    return frame_style(opened(tmp_path / "a.o")[1])


@pytest.mark.parametrize("options", ["-O2", "-O2 -fno-omit-frame-pointer", "-Os", "-O2 -fPIC -g"])
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.peers
def test_what_gcc_writes_for_each_machine_has_its_style(prefix: str, options: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    arguments = ["-S", *options.split(), "a.c"]
    if prefix:
        run(f"{prefix}gcc", *arguments, cwd=tmp_path, check=True)
    else:
        subprocess.run(["gcc", *arguments], cwd=tmp_path, check=True)
    for assembler in ("2.40", "2.44", "new"):
        run(f"{prefix}as-{assembler}", "a.s", "-o", "a.o", cwd=tmp_path, check=True)
        assert frame_style(opened(tmp_path / "a.o")[1]) == "GCC"


@pytest.mark.peers
@pytest.mark.parametrize(
    ("architecture", "pattern", "expected"),
    [
        *((architecture, "usr/bin/gperf", "GCC") for architecture in ARCHITECTURES),
        *((architecture, "usr/bin/hexyl", "LLVM") for architecture in ARCHITECTURES),
        ("amd64", "usr/bin/hello", "GCC"),
        ("amd64", "usr/bin/dub", "LLVM"),
        ("amd64", "usr/lib/llvm-*/lib/libunwind.so.*", "LLVM"),
        ("arm64", "usr/lib/llvm-*/lib/libunwind.so.*", "LLVM"),
        ("s390x", "usr/lib/llvm-*/lib/libc++.so.*", "LLVM"),
    ],
)
def test_programs_of_a_distribution_have_the_style_of_their_compiler(
    architecture: str, pattern: str, expected: str
) -> None:
    assert frame_style(opened(sampled(architecture, pattern))[1]) == expected


def test_on_amd64_the_places_of_saved_registers_and_what_follows_an_epilogue_tell(tmp_path: Path) -> None:
    for body, expected in (
        (PUSHES_LLVM, "LLVM"),
        (AGAIN_LLVM, "LLVM"),
        (PUSHES_GCC, "GCC"),
        (AGAIN_GCC, "GCC"),
        (ELSEWHERE_GCC, None),
        (ONCE, None),
        ("nop", None),
    ):
        assert style(tmp_path, "as", [body] * 4) == expected


def test_one_function_does_not_tell_and_neither_do_two_that_disagree(tmp_path: Path) -> None:
    assert style(tmp_path, "as", [PUSHES_GCC, *[ONCE] * 9]) is None
    assert style(tmp_path, "as", [PUSHES_GCC, PUSHES_LLVM]) is None
    assert style(tmp_path, "as", [PUSHES_GCC, *[PUSHES_LLVM] * 3]) is None
    assert style(tmp_path, "as", [PUSHES_GCC, *[PUSHES_LLVM] * 4]) == "LLVM"
    assert style(tmp_path, "as", [PUSHES_LLVM, *[PUSHES_GCC] * 4]) == "GCC"


@pytest.mark.peers
def test_on_s390x_restored_registers_and_gaps_among_saved_ones_tell(tmp_path: Path) -> None:
    for body, expected in ((STORE, "LLVM"), (ALL, None), (ALL + "nop; .cfi_restore 6", "GCC"), ("nop", None)):
        assert style(tmp_path, "s390x-as-new", [body] * 4) == expected


@pytest.mark.peers
def test_on_aarch64_the_factors_of_the_assemblers_tell(tmp_path: Path) -> None:
    bodies = [".cfi_def_cfa_offset 16; .cfi_offset 29, -16"] * 3
    for assembler in ("aarch64-as-2.40", "aarch64-as-2.44", "aarch64-as-new"):
        assert style(tmp_path, assembler, bodies) == "GCC"
    assert style(tmp_path, "llvm-mc", bodies, "--triple=aarch64-linux-gnu", "-filetype=obj") == "LLVM"


def test_a_file_without_call_frame_information_has_no_style(tmp_path: Path) -> None:
    assert frame_style([]) is None
    (tmp_path / "a.s").write_text("nop\n")
    subprocess.run(["as", "a.s", "-o", "a.o"], cwd=tmp_path, check=True)
    assert frame_style(opened(tmp_path / "a.o")[1]) is None


@pytest.mark.whole
def test_damaged_call_frame_information_never_raises(tmp_path: Path) -> None:
    bodies = [PUSHES_LLVM, PUSHES_GCC, AGAIN_GCC, ".cfi_escape 0x0f, 5, 1, 2, 3, 4, 5; .cfi_escape 0x2e, 0x80, 1"]
    elf = assembled(tmp_path, "as", bodies * 3)
    (index,) = elf.sections_named(".eh_frame")
    start, size = int(elf.sections["offset"][index]), int(elf.sections["size"][index])
    chance = random.Random(3)
    data = (tmp_path / "a.o").read_bytes()
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 8)):
            damaged[start + chance.randrange(size)] = chance.randrange(256)
        (tmp_path / "b.o").write_bytes(damaged)
        frame_style(opened(tmp_path / "b.o")[1])
