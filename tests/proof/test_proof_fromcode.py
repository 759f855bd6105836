"""Tables made from the code alone: against the call frame information that was taken away, and against what runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import walkback
from codetables import compared, table_of
from peers import root
from stepping import Machine, Stepper, proof_of_code
from walkback.base.errors import MissingError
from walkback.elf import ElfFile
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict, Why
from walkback.table.rule import PartKind, Reason

if TYPE_CHECKING:
    from walkback.table.table import UnwindTable

C = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

__attribute__((noinline)) int chosen(int which, int *values)
{
  switch (which)
    {
    case 0: return values[0] * 3;
    case 1: return printf ("%d\\n", values[1]);
    case 2: return puts ("two");
    case 3: return values[3] + abs (values[2]);
    case 4: return (int) strlen ("four") + values[1];
    case 5: return atoi ("5") * values[0];
    }
  return -1;
}

__attribute__((noinline)) long deep(int count, long sum)
{
  volatile char room[200];
  memset ((char *) room, count, sizeof room);
  return count ? deep (count - 1, sum + room[count % 200]) + 1 : sum;
}

__attribute__((noinline)) int *grown(int count)
{
  int *found = __builtin_alloca (count * sizeof *found), *kept = malloc (count * sizeof *kept);
  for (int i = 0; i < count; i++)
    found[i] = (i * 7919) % 101;
  qsort (found, count, sizeof *found, by_value);
  return memcpy (kept, found, count * sizeof *kept);
}

int main(int count, char **words)
{
  int *values = grown (20 + count), sum = 0;
  for (int i = 0; i < 6; i++)
    sum += chosen (i, values);
  sum += (int) deep (10, sum);
  free (values);
  return sum == 12345;
}
"""


def assembled(folder: Path, text: str) -> Path:
    """An object with these lines in `.text`."""
    path = folder / "some.o"
    subprocess.run(["as", "-o", path, "-"], input=f".text\n{text}".encode(), check=True)
    return path


def reasons(table: UnwindTable) -> dict[int, str]:
    """Where functions without rules begin, and why they have none."""
    rule = table.rules[table.row_rule[table.range_first_row]]["cfa"]
    left = np.flatnonzero(rule["kind"] == PartKind.INEXPRESSIBLE)
    return {int(table.range_start[one]): Reason(rule["offset"][one]).name for one in left.tolist()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("code")
    (made / "some.c").write_text(C)
    return made


def built(folder: Path, *flags: str) -> Path:
    output = folder / f"some{''.join(flags)}"
    if not output.exists():
        subprocess.run(["gcc", "-w", *flags, "-o", output, "some.c"], cwd=folder, check=True)
    return output


@pytest.mark.parametrize(
    "flags", [("-O0",), ("-O2",), ("-Os",), ("-O2", "-fno-omit-frame-pointer"), ("-O2", "-no-pie")]
)
@pytest.mark.parametrize("stripped", [False, True])
def test_the_rules_are_those_of_the_call_frame_information(
    flags: tuple[str, ...], stripped: bool, folder: Path
) -> None:
    path = built(folder, *flags, *(("-s",) if stripped else ()))
    found = compared(path)
    both, contradicting, first = found.both, found.contradicting, found.former
    assert contradicting == 0
    assert both >= 0.99 * first > 400


def test_a_program_without_call_frames_gets_sframe_and_runs(folder: Path) -> None:
    flags = ("-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-s")
    path, bare, added = built(folder, *flags), folder / "bare", folder / "added"
    subprocess.run(["objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", path, bare], check=True)
    with pytest.raises(MissingError, match=r"there is no \.eh_frame or \.debug_frame section"):
        walkback.derive(bare, tables="cfi")
    made = walkback.add(bare, added, tables="code").derived
    assert made.source.name == "code"
    assert made.covered_bytes > 0.95 * made.code_bytes
    assert made.proof().equal
    done = [subprocess.run([one], capture_output=True, check=False) for one in (path, added)]
    assert done[0].stdout == done[1].stdout != b""
    [verified] = walkback.verify(added)
    assert (verified.table, verified.wrong) == (".sframe", 0)


@pytest.mark.parametrize("name", ["libc.so.6", "libm.so.6", "libstdc++.so.6"])
def test_what_is_left_is_proved_again(name: str) -> None:
    [path] = Path("/usr/lib").glob(f"*-linux-gnu/{name}")
    elf = ElfFile(path)
    proof = Prover(elf, ()).prove(table_of(elf))
    assert int(proof.verdicts[:, Verdict.PROVED].sum()) > 400_000
    reached = proof.runs[proof.runs[:, 3] != Verdict.NOT_REACHED]
    assert {(int(verdict), int(why)) for verdict, why in reached[:, 3:5]} <= {(Verdict.UNKNOWN, Why.EXPRESSION)}


@pytest.mark.whole
def test_every_executed_instruction_has_the_rule_that_stepping_saw(folder: Path) -> None:
    path = built(folder, "-O2")
    seen = Stepper(folder, proof_of_code).step(Machine("AMD64"), 100_000, path)
    assert seen.judged > 0.95 * seen.inside > 10_000
    assert seen.contradictions(*Verdict) == []


ENTERED_OTHERWISE = """
    .globl closure
    .type closure, @function
closure:
    mov 8(%rbx), %rax
    add $16, %rbp
    jmp *(%rax)
    .size closure, .-closure

    .p2align 4
    .globl thunk
    .type thunk, @function
thunk:
    add $8, %rdi
    jmp counted
    .size thunk, .-thunk

    .p2align 4
    .globl counted
    .type counted, @function
counted:
    push %rbx
    mov %rdi, %rbx
    lea 1(%rbx), %rax
    pop %rbx
    ret
    .size counted, .-counted

    .p2align 4
    .globl popping
    .type popping, @function
popping:
    pop %rdx
    add $8, %rsp
    jmp *%rdx
    .size popping, .-popping

    .p2align 4
    .globl astray
    .type astray, @function
astray:
    push %rbx
    ret
    .size astray, .-astray

    .p2align 4
    .globl threads
    .type threads, @function
threads:
    mov $56, %eax
    syscall
    ret
    .size threads, .-threads

    .p2align 4
    .globl switches
    .type switches, @function
switches:
    mov (%rdi), %rsp
    mov 8(%rdi), %rbx
    jmp *16(%rdi)
    .size switches, .-switches
"""


@pytest.mark.kernel
def test_code_that_is_not_entered_as_the_abi_says_has_no_rules(tmp_path: Path) -> None:
    elf = ElfFile(assembled(tmp_path, ENTERED_OTHERWISE))
    table = table_of(elf)
    symbols = Prover(elf).symbols
    named = {symbols.name_at(start, 1): why for start, why in reasons(table).items()}
    assert named == {
        "closure": "NOT_ENTERED",
        "popping": "ASTRAY",
        "astray": "ASTRAY",
        "threads": "FORKS",
        "switches": "OTHER_STACK",
    }
    [(_, thunk)] = symbols.lookup("thunk")
    found = table.find(thunk + 4, section=1)
    assert found is not None
    assert found.rule is not None
    assert found.rule.text("AMD64") == "CFA = rsp+8, RA = *(CFA-8), FP unchanged"


def test_the_entry_of_a_program_has_no_caller(folder: Path) -> None:
    elf = ElfFile(built(folder, "-O2", "-s"))
    found = table_of(elf).find(elf.entry + 8)
    assert found is not None
    assert found.rule is not None
    assert found.rule.outermost


def test_holes_of_other_tables_are_filled_where_they_are_large(tmp_path: Path) -> None:
    bodies = "\n".join(
        f"  .globl f{number}\n  .type f{number}, @function\nf{number}:\n  push %rbx\n  call f{(number + 1) % 400}\n"
        f"  mov %rax, %rbx\n  pop %rbx\n  ret\n  .size f{number}, .-f{number}\n  .p2align 4"
        for number in range(400)
    )
    described = "  .globl known\n  .type known, @function\nknown:\n  .cfi_startproc\n  ret\n  .cfi_endproc\n"
    path = assembled(tmp_path, described + "  .p2align 4\n" + bodies)
    made = walkback.derive(path)
    assert [source.name for source in made.read.sources] == [".eh_frame", "code"]
    assert (made.covered, made.functions) == (401, 401)
    assert walkback.derive(path, tables="cfi").functions == 1


@pytest.mark.peers
@pytest.mark.parametrize("machine", ["arm64", "s390x"])
def test_libraries_of_other_machines_have_the_same_rules(machine: str) -> None:
    names = ("libz.so.1", "libtinfo.so.6", "libm.so.6", "libgmp.so.10", "ld-linux-aarch64.so.1", "ld64.so.1")
    found = [path for name in names for path in sorted(root(machine).glob(f"usr/lib/*linux-gnu/{name}"))]
    both, contradicting, _, first = (sum(column) for column in zip(*map(compared, found), strict=True))
    assert len(found) >= 3
    assert both > (0.9 if machine == "s390x" else 0.93) * first
    assert contradicting < 0.0002 * both  # compilers for both describe some instructions one too early or too late
