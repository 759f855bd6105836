"""Assembly of a compiler with its call frame information damaged in one place."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import walkback
from peers import peer
from walkback.sections.verify import Verified

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
extern int many(int, int, int, int, int, int, int, int, char *);
extern void callback(void (*)(int), int);
static int state[64];
__attribute__((noinline)) static int leaf(int a, int b) { return a * b + state[a & 63]; }
int saves(int a, int b, int c, int d) {
    int e = leaf(a, b), f = leaf(c, d), g = leaf(a, d);
    return many(e, f, g, a, b, c, d, leaf(b, c), 0) + e + f * g + a - b + c * d;
}
int shrinks(int *p, int n) {
    if (!p) return 0;
    int sum = 0;
    for (int i = 0; i < n; i++) sum += leaf(p[i], sum) + many(i, sum, n, 0, 0, 0, 0, 0, (char *)p);
    if (sum < 0) abort();
    return sum;
}
int buffer(const char *text) {
    char room[5000];
    strcpy(room, text);
    return many(1, 2, 3, 4, 5, 6, 7, 8, room);
}
int grows(int n) {
    char room[n];
    memset(room, n, n);
    return many(1, 2, 3, 4, 5, 6, 7, 8, room) + leaf(n, room[n / 2]);
}
int chooses(int x, int y) {
    switch (x) {
    case 0: return leaf(y, 1);
    case 1: puts("one"); return leaf(y, 2) + y;
    case 2: return many(y, 0, 0, 0, 0, 0, 0, 0, 0);
    case 3: puts("three"); y = leaf(y, y);
    case 4: return y * leaf(y, 4);
    case 5: puts("five"); return many(x, y, x, y, x, y, x, y, 0);
    case 6: callback(0, leaf(x, y)); return y;
    }
    if (y > 1000) exit(leaf(x, y));
    return x * y;
}
"""

_DIRECTIVE = re.compile(r"\s+\.cfi_(def_cfa_offset|adjust_cfa_offset|offset)\b")
_INSTRUCTION = re.compile(r"\s+[a-z]")
_NUMBER = re.compile(r"-?\d+$")


def assembly(compiler: str, *options: str, folder: Path, text: str = SOURCE) -> list[str]:
    """The lines that a compiler makes of a source."""
    command = [compiler if compiler == "gcc" else peer(compiler), "-S", "-w", "-o-", *options]
    source = folder / "source.c"
    source.write_text(text)
    return subprocess.run([*command, source], check=True, capture_output=True, text=True).stdout.splitlines()


def assembled(compiler: str, lines: list[str], output: Path) -> Path | None:
    """The object; None if the assembler refuses the lines."""
    assembler = "as" if compiler == "gcc" else peer(compiler.replace("gcc", "as-new"))
    text = "\n".join([*lines, ""])
    done = subprocess.run([assembler, "-o", output, "-"], input=text, capture_output=True, text=True, check=False)
    return output if done.returncode == 0 else None


def damages(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines with one directive dropped, with its offset changed by 8, or moved behind an instruction.

    Each makes the rules wrong. That a register is saved may be said later, or never, as long as it is not changed.
    """
    for number, line in enumerate(lines):
        if not _DIRECTIVE.match(line):
            continue
        what = f"{number}: {line.strip()}"
        rest = [*lines[:number], *lines[number + 1 :]]
        if "cfa_offset" in line:
            yield f"dropped {what}", rest
        if found := _NUMBER.search(line):
            changed = line[: found.start()] + str(int(found[0]) + 8)
            yield f"off by 8 {what}", [*lines[:number], changed, *lines[number + 1 :]]
        later = _instruction_after(rest, number)
        if later is not None and "cfa_offset" in line:
            yield f"moved behind {what}", [*rest[: later + 1], line, *rest[later + 1 :]]


def _instruction_after(lines: list[str], number: int) -> int | None:
    for place in range(number, len(lines)):
        if ".cfi_endproc" in lines[place] or lines[place].endswith(":"):
            return None
        if _INSTRUCTION.match(lines[place]) and not lines[place].strip().startswith("."):
            return place
    return None


Place = tuple[str | None, int, int]
"""The section and the start of a function, and the offset in it."""


def place(verified: Verified, number: int, offset: int) -> Place:
    """A place in a range of a table."""
    section, start = verified.prover.section_of(int(verified.proof.ranges.start[number]))
    return verified.elf.section_name(section), start, offset


def differences(one: Path, other: Path) -> set[Place]:
    """Where two objects of the same code have different rules."""
    first, second = (next(iter(walkback.verify(path))) for path in (one, other))
    found = set()
    for number, (start, size) in enumerate(zip(first.proof.ranges.start, first.proof.ranges.size, strict=True)):
        for offset in range(int(size)):
            rules = [one.proof.claims_at(number, int(start) + offset) for one in (first, second)]
            if rules[0] != rules[1]:
                found.add(place(first, number, offset))
    return found
