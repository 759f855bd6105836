"""The proof where code of AMD64 uses APX: what r16 to r31 have, by their numbers in DWARF, and two pushes at once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import walkback
from codetables import table_of
from peers import peer
from proof.assembled import verified
from walkback.base.arch import AARCH64, AMD64
from walkback.elf import ElfFile
from walkback.proof.numbering import NOBODY, followed, in_dwarf
from walkback.table.rule import PartKind

pytestmark = pytest.mark.kernel

STACK_IN_R16, STACK_FROM_R16 = ".byte 0xd5,0x18,0x89,0xe0;", ".byte 0xd5,0x48,0x89,0xc4;"
FRAME_IN_R16, FRAME_FROM_R16 = ".byte 0xd5,0x18,0x89,0xe8;", ".byte 0xd5,0x48,0x89,0xc5;"
R16, XMM0 = 130, 17
SAVED = "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; {} pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret"
BOTH = "push %rax; .cfi_def_cfa_offset 16; {} .cfi_restore 3; .cfi_restore 6; pop %rcx; .cfi_def_cfa_offset 8; ret"
PUSHED = ".cfi_def_cfa_offset 32; .cfi_offset 3,-24; .cfi_offset 6,-32; xor %ebx,%ebx; xor %ebp,%ebp;"
PUSH_RBX_RBP, POP_RBP_RBX = ".byte 0x62,0xf4,0xe4,0x18,0xff,0xf5;", ".byte 0x62,0xf4,0xd4,0x18,0x8f,0xc3;"
PUSH_RBP_RBX, POP_RBX_RBP = ".byte 0x62,0xf4,0xd4,0x18,0xff,0xf3;", ".byte 0x62,0xf4,0xe4,0x18,0x8f,0xc5;"
POPPED = ".cfi_def_cfa_offset 16;"


def by_register(register: int) -> str:
    return f"{STACK_IN_R16} .cfi_def_cfa {register},8; sub $24,%rsp; nop; {STACK_FROM_R16} .cfi_def_cfa 7,8; ret"


def saved(then: str) -> str:
    return SAVED.format(f"xor %ebx,%ebx; {then}")


def kept(register: int, then: str) -> str:
    return f"{FRAME_IN_R16} .cfi_register 6,{register}; {then} nop; {FRAME_FROM_R16} .cfi_restore 6;"


CASES: dict[str, tuple[str, list[str]]] = {
    "the CFA by r16": (by_register(R16), []),
    "the CFA by another register": (by_register(XMM0), ["cfa"]),
    "a register kept in r16": (kept(R16, "xor %ebp,%ebp;") + "ret", []),
    "a register kept in another": (kept(XMM0, "xor %ebp,%ebp;") + "ret", ["fp"]),
    "a call changes r16": (SAVED.format(kept(R16, "xor %ebp,%ebp; call g;")), ["fp"]),
    "two pushed at once": (BOTH.format(PUSH_RBX_RBP + PUSHED + POP_RBP_RBX + POPPED), []),
    "two pushed the other way round": (BOTH.format(PUSH_RBP_RBX + PUSHED + POP_RBX_RBP + POPPED), ["fp"]),
    "aand over a part of what was saved": (saved(".byte 0x62,0xf4,0x7d,0x08,0xfc,0x44,0x24,0xfe;"), ["rbx"]),
    "vmovd in units of four bytes": (saved(".byte 0x62,0xf1,0x7d,0x08,0x7e,0x44,0x24,0xff;"), []),
    "vmovd over a part of what was saved": (saved(".byte 0x62,0xf1,0x7d,0x08,0x7e,0x44,0x24,1;"), ["rbx"]),
    "vcvttsd2sis": (SAVED.format(".byte 0x62,0xf5,0x7f,0x08,0x6d,0xd8;").replace(".cfi_offset 3,-16;", ""), ["rbx"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong(case: str, tmp_path: Path) -> None:
    text, wrong = CASES[case]
    found = verified(text, tmp_path)
    assert sorted({one.what for one in found.mismatches}) == wrong
    assert bool(wrong) or found.proved == found.reached


MANY = """
extern long g (long);
long f (const unsigned char *p, long n, long a, long b, long c, long d)
{
  long e = 1, h = 2, i = 3, j = 4, k = 5, l = 6, m = 7, o = 8, q = 9, r = 10, s = 11, t = 12, u = 13;
  for (long x = 0; x < n; x++)
    switch (p[x])
      {
      case 0: a += b * c; break;
      case 1: b ^= d + e; break;
      case 2: c -= h * i; break;
      case 3: d += j; break;
      case 4: e *= k + l; break;
      case 5: h ^= m; break;
      case 6: i += o * q; break;
      case 7: j -= r; k += s * t; l ^= u; m += a; o *= b; q += c; r ^= d; s -= e; t += h; u ^= i; break;
      case 8: a = g (a); break;
      }
  return a ^ b ^ c ^ d ^ e ^ h ^ i ^ j ^ k ^ l ^ m ^ o ^ q ^ r ^ s ^ t ^ u;
}
"""


@pytest.mark.parametrize("options", [("-O1",), ("-O2", "-fPIC"), ("-Os", "-fPIC", "-fno-omit-frame-pointer")], ids=str)
def test_tables_of_jumps_whose_addresses_are_in_registers_of_apx(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "many.c").write_text(MANY)
    command = [peer("clang-19"), "--target=x86_64-linux-gnu", "-mapxf", *options, "-c", "many.c", "-o", "many.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    [found] = walkback.verify(tmp_path / "many.o")
    assert (found.mismatches, found.proved) == ([], found.reached)


def test_a_rule_made_from_code_names_no_register_of_apx(tmp_path: Path) -> None:
    code = f"f: {FRAME_IN_R16} xor %ebp,%ebp; nop; nop; {FRAME_FROM_R16} ret; .size f,.-f; .type f,@function;"
    start = (
        "_start: sub $8,%rsp; call f; add $8,%rsp; ret; .size _start,.-_start; .type _start,@function; .globl _start;"
    )
    subprocess.run(["as", "-o", tmp_path / "o", "-"], input=f"{code}{start}".replace(";", "\n").encode(), check=True)
    subprocess.run(["ld", "-o", tmp_path / "code", tmp_path / "o"], check=True)
    rules = table_of(ElfFile(tmp_path / "code")).rules
    assert len(rules) > 1
    assert PartKind.REGISTER not in rules["fp"]["kind"].tolist()


@pytest.mark.parametrize(("register", "ours"), [(0, 0), (16, 16), (130, 17), (145, 32), (17, 1017), (146, 1146)])
def test_numbers_of_amd64(register: int, ours: int) -> None:
    assert (followed(register, AMD64), in_dwarf(ours, AMD64)) == (ours, register)


@pytest.mark.parametrize(("register", "ours"), [(31, 31), (64, 32), (95, 63), (46, 1046)])
def test_numbers_of_aarch64(register: int, ours: int) -> None:
    assert (followed(register, AARCH64), in_dwarf(ours, AARCH64)) == (ours, register)


def test_high_numbers_are_nobodys() -> None:
    assert followed(2**40, AMD64) == NOBODY + 1000
