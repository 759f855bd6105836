"""What single-stepping sees, beside what the proof says: wherever a rule was proved, each step agrees with it.

The stepper shares nothing with the proof. It knows a call by its bytes, and the CFA and the saved registers by what
they were when it happened.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import walkback
from effort import QUICK
from walkback.proof.prove import Proof
from walkback.proof.values import CFA_BASE, CFA_TARGET, UNCHANGED, Verdict

KEPT = (3, 6, 12, 13, 14, 15)
NEVER, SAME, AT_CFA = 0, 1, 2
RULE = struct.Struct("<Qqq6q6q")

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int order(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static int grows(int n) {
    char room[n];
    memset(room, n, n);
    return room[n / 2] + (n > 3 ? grows(n - 3) : 0);
}
__attribute__((noinline)) static int chooses(int n) {
    switch (n % 7) {
    case 0: return fib(3);
    case 1: return grows(20) + n;
    case 2: puts("two"); return n;
    case 3: return chooses(n + 1) * 2;
    case 4: return n * n;
    case 5: return fib(n % 5);
    default: return -n;
    }
}
int main(void) {
    int numbers[200], sum = 0;
    for (int i = 0; i < 200; i++) numbers[i] = (i * 7919) % 211;
    qsort(numbers, 200, sizeof *numbers, order);
    for (int i = 0; i < 200; i++) sum += chooses(numbers[i]);
    char *text = malloc(100);
    snprintf(text, 100, "%d %s %f", sum, "and", 1.5);
    puts(text);
    return 0;
}
"""

PROGRAMS = [
    ("perl", "-e", 'my %h; $h{$_} = $_ * 2 for 1..3000; print scalar(grep { /7/ } sort keys %h), "\n"'),
    ("git", "--version"),
    ("sed", "-n", "s/a/b/p", "/etc/passwd"),
    ("sort", "/etc/services"),
    ("gzip", "-c", "/etc/services"),
    ("grep", "-c", "a.*b", "/etc/services"),
]


@pytest.fixture(scope="module")
def stepper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("stepper") / "stepper"
    source = Path(__file__).resolve().parent.parent / "stepper.c"
    subprocess.run(["gcc", "-O2", "-w", "-o", output, source], check=True)
    return output


def rule_of(proof: Proof, number: int, address: int) -> bytes:
    """The rule at an address of a range, as the stepper takes it."""
    chosen = int(proof.ranges.row_claims[proof.row_at(number, address)])
    base, distance = -1, 0
    kinds, places = [NEVER] * len(KEPT), [0] * len(KEPT)
    sets = proof.sets
    for entry in range(int(sets.first[chosen]), int(sets.first[chosen + 1])):
        target, counted, depth = int(sets.target[entry]), int(sets.base[entry]), int(sets.depth[entry])
        if target == CFA_TARGET and 0 <= counted < 16 and depth == 0:
            base, distance = counted, int(sets.offset[entry, 0])
        elif target in KEPT and counted == UNCHANGED:
            kinds[KEPT.index(target)] = SAME
        elif target in KEPT and counted == CFA_BASE and depth == 1:
            kinds[KEPT.index(target)], places[KEPT.index(target)] = AT_CFA, int(sets.offset[entry, 0])
    return RULE.pack(address, base, distance, *kinds, *places)


def stepped(stepper: Path, most: int, folder: Path, *command: str) -> tuple[int, int]:
    """Step through a program; returns how many of its instructions were seen, and how many different ones."""
    program = str(Path(command[0]).resolve())
    verified = next(iter(walkback.verify(program)))
    proof = verified.proof
    rules = []
    units = range(len(proof.units.first) - 1)
    verdicts = {address: verdict for unit in units for address, _, verdict, _ in proof.instructions(unit)}
    for address in sorted(verdicts):
        number = int(np.searchsorted(proof.ranges.start, address, "right")) - 1
        rules.append(rule_of(proof, number, address))
    path = folder / "rules"
    path.write_bytes(b"".join(rules))
    done = subprocess.run(
        [stepper, path, str(most), program, *command[1:]], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        pytest.skip("this machine does not let a process be stepped through")
    counts, found = summary(done.stdout)
    wrong = [(hex(address), what, times) for address, what, times in found if verdicts[address] is Verdict.PROVED]
    assert wrong == [], program
    return counts[1], counts[2]


def summary(output: str) -> tuple[tuple[int, int, int], list[tuple[int, int, int]]]:
    """The counts and the wrong places, which the stepper prints behind what the program printed."""
    marked = output.rpartition("stepper:\n")[2].splitlines()
    steps, inside, distinct = map(int, marked[0].split())
    places = [line.split() for line in marked[1:]]
    return (steps, inside, distinct), [(int(at, 16), int(what), int(times)) for at, what, times in places]


@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O2", "-fno-omit-frame-pointer"), ("-Os",)], ids=" ".join)
def test_a_program_of_our_own(options: tuple[str, ...], stepper: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-w", *options, "-o", program, source], check=True)
    inside, distinct = stepped(stepper, 300_000 if QUICK else 1_000_000, tmp_path, str(program))
    assert inside > 1_000
    assert distinct > 100


@pytest.mark.whole
@pytest.mark.parametrize("command", PROGRAMS, ids=lambda command: command[0])
def test_programs_of_this_machine(command: tuple[str, ...], stepper: Path, tmp_path: Path) -> None:
    path = shutil.which(command[0])
    if path is None:
        pytest.skip(f"needs {command[0]}")
    inside, distinct = stepped(stepper, 1_000_000, tmp_path, path, *command[1:])
    assert inside > 1_000
    assert distinct > 200
