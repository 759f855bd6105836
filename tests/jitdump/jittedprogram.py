"""Builds and runs `jitted.c` with code and unwinding information of the real assembler."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_CODE = """
.text
.globl {name}
.type {name}, @function
{name}:
.cfi_startproc
push %rbp
.cfi_def_cfa_offset 16
.cfi_offset %rbp, -16
xor %ebp, %ebp
sub ${room}, %rsp
.cfi_def_cfa_offset {offset}
call *%rdi
add ${room}, %rsp
.cfi_def_cfa_offset 16
pop %rbp
.cfi_def_cfa_offset 8
ret
.cfi_endproc
.size {name}, . - {name}
.section .note.GNU-stack
"""
"""Only who knows how much room it takes comes to its caller."""
_SCRIPT = """
SECTIONS {
    .text : { *(.text) }
    . = ALIGN(8);
    .eh_frame : { *(.eh_frame) }
    .eh_frame_hdr : { *(.eh_frame_hdr) }
    /DISCARD/ : { *(*) }
}
"""


def _run(*command: str | Path) -> None:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"needs {command[0]}")
    subprocess.run(command, check=True)


def code_of(name: str, room: int) -> str:
    return _CODE.format(name=name, room=room, offset=room + 16)


def prepared(folder: Path) -> Path:
    """The program, with its code beside it."""
    script = folder / "script"
    script.write_text(_SCRIPT)
    for name, room in (("first", 40), ("second", 200)):
        source, linked = folder / f"{name}.s", folder / f"{name}.so"
        source.write_text(code_of(name, room))
        _run("gcc", "-c", source, "-o", source.with_suffix(".o"))
        _run("ld", "-shared", "--eh-frame-hdr", "-T", script, source.with_suffix(".o"), "-o", linked)
        parts = []
        for section in (".text", ".eh_frame", ".eh_frame_hdr"):
            part = folder / f"part{section}"
            _run("objcopy", "-O", "binary", "-j", section, linked, part)
            parts.append(part.read_bytes())
        code, frames, header = parts
        (folder / f"{name}.code").write_bytes(code)
        (folder / f"{name}.frames").write_bytes(struct.pack("<Q", len(frames)) + frames + header)
    program = folder / "jitted"
    _run("gcc", "-O1", "-o", program, HERE / "jitted.c")
    return program
