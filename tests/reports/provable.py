"""Files with functions that the proof finds right, wrong, unknown and assumed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from walkback.elf import DEBUG_ROOTS
from walkback.reports.columns import PageColumns
from walkback.reports.functions import ListedFunctions, functions_of
from walkback.reports.opening import one_elf_file
from walkback.reports.verdicts import add_verdicts

PUSH = "push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; xor %ebx,%ebx;"
POP = "pop %rbx; .cfi_restore 3; .cfi_def_cfa_offset 8; ret"
FUNCTIONS = {
    "right": f"{PUSH} call *%rdi; {POP}",
    # The line with the new CFA is missing.
    "wrong": f"{PUSH.replace('.cfi_def_cfa_offset 16;', '')} call *%rdi; {POP}",
    "unknown": "nop; .cfi_escape 0xf,1,0x30; nop; .cfi_def_cfa 7,8; ret",
    "assumed": "ret; nop; nop; push %rax; .cfi_def_cfa_offset 16; pop %rax; .cfi_def_cfa_offset 8; ret",
}
WRONG_BYTES = 5
"""From behind the `push` of `wrong` to behind its `pop`."""


def assembly(functions: dict[str, str]) -> str:
    lines = [".text"]
    for name, text in functions.items():
        lines += [f".globl {name}", f".type {name},@function", f"{name}:", ".cfi_startproc", *text.split(";")]
        lines += [".cfi_endproc", f".size {name},.-{name}"]
    return "\n".join(lines) + "\n"


def library(folder: Path, functions: dict[str, str] | None = None, *options: str, name: str = "made.so") -> Path:
    """A shared library of these functions; with `-c` an object."""
    source, made = folder / "made.s", folder / name
    source.write_text(assembly(functions or FUNCTIONS))
    how = options or ("-shared", "-nostdlib")
    subprocess.run(["gcc", *how, "-o", made, source], check=True)
    return made


def page_data(path: Path) -> tuple[ListedFunctions, dict[str, Any], dict[str, Any]]:
    """The functions of a file, what its page knows of the proof, and the columns of it."""
    functions = functions_of(one_elf_file(path), DEBUG_ROOTS)
    columns = PageColumns()
    meta = add_verdicts(functions, columns)
    found: dict[str, Any] = {}
    for (name, kind, _), part in zip(columns.described, columns._parts, strict=True):
        found[name] = part.decode().split("\n") if kind == "t" else np.frombuffer(part, f"<{kind}").astype(np.int64)
    return functions, meta, found


def things(columns: dict[str, Any], name: str, function: int) -> list[tuple[int, int, int]]:
    """The place in the columns, the offset and the number of each of a function's runs or instructions."""
    first = int(columns[f"{name}Count"][:function].sum())
    places = range(first, first + int(columns[f"{name}Count"][function]))
    offsets = np.cumsum(columns[f"{name}Step"][first : places.stop]).tolist()
    return [(at, offset, int(columns[f"{name}Number"][at])) for at, offset in zip(places, offsets, strict=True)]
