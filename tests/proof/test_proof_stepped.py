"""What single-stepping sees, beside what the proof says: wherever a rule was proved, each step agrees with it."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from proof.assembled import HEAD
from steppedprograms import HOST, PROGRAMS, Program, prepared
from stepping import RefusedError, Seen, Stepper
from walkback.proof.values import Verdict

pytestmark = pytest.mark.whole

QUICKLY = [one for one in PROGRAMS if one.machine == "AMD64" and one.command[0] == "C"]
SOME = [one for one in PROGRAMS if one.title in {"C -O2", "C++ -O2", "perl", "dash", "Go 1.24"} and one not in QUICKLY]


def names(programs: list[Program]) -> list[str]:
    return [f"{one.machine} {one.title}" for one in programs]


@pytest.fixture(scope="module")
def stepper(tmp_path_factory: pytest.TempPathFactory) -> Stepper:
    if platform.machine() != "x86_64":
        pytest.skip("the stepper runs on AMD64")
    return Stepper(tmp_path_factory.mktemp("stepper"))


def agreed(stepper: Stepper, program: Program, most: int) -> Seen:
    machine, command = prepared(program, stepper.folder)
    try:
        seen = stepper.step(machine, most, *command, begin=program.begin)
    except RefusedError:
        pytest.skip("this machine does not let a process be stepped through")
    assert seen.contradictions(Verdict.PROVED, Verdict.ASSUMED) == []
    assert seen.judged > 1_000
    assert len(seen.places) > 500
    return seen


@pytest.mark.parametrize("program", QUICKLY, ids=names(QUICKLY))
def test_programs_of_our_own(program: Program, stepper: Stepper) -> None:
    agreed(stepper, program, 200_000)


@pytest.mark.parametrize("program", SOME, ids=names(SOME))
def test_some_programs(program: Program, stepper: Stepper) -> None:
    agreed(stepper, program, program.most // 10)


@pytest.mark.long
@pytest.mark.peers
@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_all_programs(program: Program, stepper: Stepper) -> None:
    agreed(stepper, program, program.most)


MAIN = """
    .globl main; .type main,@function
    main: .cfi_startproc; sub $8,%rsp; .cfi_def_cfa_offset 16; call f; add $8,%rsp; .cfi_def_cfa_offset 8
    xor %eax,%eax; ret; .cfi_endproc; .size main,.-main; .section .note.GNU-stack,"",@progbits
"""
WRONG = {
    "the CFA": ("push %rbx; nop; pop %rbx; ret", 255, 2),
    "a place": (
        "push %rbx; .cfi_adjust_cfa_offset 8; .cfi_offset 3,-24; nop; pop %rbx; .cfi_def_cfa_offset 8; ret",
        3,
        3,
    ),
    "a register": (
        "push %rbx; .cfi_adjust_cfa_offset 8; not %rbx; nop; pop %rbx; .cfi_adjust_cfa_offset -8; ret",
        3,
        2,
    ),
    "the return address": (".cfi_offset 16,-16; nop; .cfi_offset 16,-8; ret", 16, 1),
}


@pytest.mark.parametrize("what", WRONG)
def test_stepping_contradicts_what_is_wrong_and_nothing_else(what: str, stepper: Stepper, tmp_path: Path) -> None:
    text, register, count = WRONG[what]
    source, program = tmp_path / "wrong.s", tmp_path / "wrong"
    source.write_text((HEAD + text + "\n.cfi_endproc; .size f,.-f" + MAIN).replace(";", "\n"))
    subprocess.run(["gcc", "-o", program, source], check=True)
    try:
        seen = stepper.step(HOST, 100_000, program)
    except RefusedError:
        pytest.skip("this machine does not let a process be stepped through")
    found = [one for one in seen.places if one.contradicted and one.verdict is not Verdict.UNKNOWN]
    assert {one.verdict for one in found} == {Verdict.WRONG}
    assert {one.what for one in found} == {register}
    assert len(found) == count
    assert seen.agreeing(Verdict.WRONG) == []
