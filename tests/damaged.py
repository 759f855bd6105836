"""Assembly of a compiler with its call frame information damaged in one place."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from peers import peer

SHAPES = Path(__file__).resolve().parent / "shapes"
"""Sources whose functions have frames of many shapes: C, C++ and Rust, without headers."""
MACHINES = {"": "x86_64", "aarch64-": "aarch64", "s390x-": "s390x"}

_DIRECTIVE = re.compile(
    r"\s+\.cfi_(def_cfa|def_cfa_offset|adjust_cfa_offset|def_cfa_register|offset|rel_offset|restore|same_value|register"
    r"|undefined|remember_state|restore_state|escape|negate_ra_state|val_offset|window_save)\b"
)
_WITH_OFFSET = re.compile(r"\s+\.cfi_(def_cfa|def_cfa_offset|adjust_cfa_offset|offset|rel_offset|val_offset)\b")
_INSTRUCTION = re.compile(r"\s+[a-z]")
_NUMBER = re.compile(r"-?\d+(?=\s*(#.*|//.*)?$)")


def assembly(compiler: str, *options: str, folder: Path, source: Path = SHAPES / "shapes.c") -> list[str]:
    """The lines that a compiler makes of a source.

    A compiler is `gcc`, `clang-19` or `rustc`, behind the prefix of its machine, if that is not AMD64.
    """
    prefix, name = _parts(compiler)
    made = folder / "made.s"
    if name == "gcc":
        driver = "g++" if source.suffix == ".cc" else "gcc"
        command = [peer(prefix + driver) if prefix else driver, "-S", "-w"]
    elif name == "rustc":
        command = [peer(compiler), "--emit=asm", "--cap-lints=allow", "-Cforce-unwind-tables=yes"]
    else:
        command = [peer(name), f"--target={MACHINES[prefix]}-linux-gnu", "-S", "-w", "-fno-addrsig"]
        command += ["-fasynchronous-unwind-tables", "-fno-integrated-as"]
    subprocess.run([*command, *options, "-o", made, source], check=True, capture_output=True)
    return made.read_text().splitlines()


def _parts(compiler: str) -> tuple[str, str]:
    """The prefix of the machine, and the compiler."""
    prefix = next(one for one in ("aarch64-", "s390x-", "") if compiler.startswith(one))
    return prefix, compiler.removeprefix(prefix)


def assembled(compiler: str, lines: list[str], output: Path) -> Path | None:
    """The object; None if the assembler refuses the lines."""
    prefix, _ = _parts(compiler)
    assembler = "as" if compiler == "gcc" else peer(f"{prefix}as-new")
    text = "\n".join([*lines, ""])
    done = subprocess.run([assembler, "-o", output, "-"], input=text, capture_output=True, text=True, check=False)
    return output if done.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class Damage:
    """Other lines in the place of some."""

    what: str
    first: int
    end: int
    lines: list[str]


def damaged(lines: list[str], *damages: Damage) -> list[str]:
    """The lines with damages that do not touch each other."""
    changed = list(lines)
    for one in sorted(damages, key=lambda one: one.first, reverse=True):
        changed[one.first : one.end] = one.lines
    return changed


def functions(lines: list[str]) -> Iterator[tuple[int, int]]:
    """The lines of each function, from `.cfi_startproc` to `.cfi_endproc`."""
    first = 0
    for number, line in enumerate(lines):
        if ".cfi_startproc" in line:
            first = number
        elif ".cfi_endproc" in line:
            yield first, number


def damages(lines: list[str], first: int, end: int) -> Iterator[Damage]:
    """What can happen to each directive of a function.

    It is dropped, its offset is changed by 8, or it is moved behind the next instruction or before the last one.
    """
    for number in range(first, end):
        line = lines[number]
        if not _DIRECTIVE.match(line):
            continue
        what = f"{number + 1}: {' '.join(line.split())}"
        yield Damage(f"dropped {what}", number, number + 1, [])
        found = _NUMBER.search(line)
        if found and _WITH_OFFSET.match(line):
            changed = line[: found.start()] + str(int(found[0]) + 8) + line[found.end() :]
            yield Damage(f"off by 8 {what}", number, number + 1, [changed])
        later = next((place for place in range(number + 1, end) if _is_instruction(lines[place])), None)
        if later is not None:
            yield Damage(f"late {what}", number, later + 1, [*lines[number + 1 : later + 1], line])
        earlier = next((place for place in range(number - 1, first, -1) if _is_instruction(lines[place])), None)
        if earlier is not None:
            yield Damage(f"early {what}", earlier, number + 1, [line, *lines[earlier:number]])


def _is_instruction(line: str) -> bool:
    return _INSTRUCTION.match(line) is not None
