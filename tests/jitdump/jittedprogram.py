"""Builds `jitted.c` and `registered.c`, with code and unwinding information of the real assembler."""

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


PLACES = {"first": 0x6_0000_0000, "second": 0x6_0000_1000}
_FRAMES = 0x800
"""Where the `.eh_frame` of the second is, behind its code."""


def registered(folder: Path) -> list[str | Path]:
    """The command of a program that registers one file that is linked, and one as compilers that link in memory do."""
    command: list[str | Path] = [folder / "registered"]
    for name, room in (("first", 40), ("second", 200)):
        source, elf = folder / f"{name}.s", folder / f"{name}.elf"
        source.write_text(code_of(name, room))
        _run("gcc", "-g", "-c", source, "-o", elf)
        code = folder / f"{name}.code"
        _run("objcopy", "-O", "binary", "-j", ".text", elf, code)
        if name == "first":
            linked = folder / "linked"
            _run("ld", f"-Ttext={PLACES[name]:#x}", "-e", "0", "--no-warn-rwx-segments", elf, "-o", linked)
            elf = linked
        else:
            _place(elf, {".text": PLACES[name], ".eh_frame": PLACES[name] + _FRAMES})
        command += [f"{PLACES[name]:#x}", code, elf]
    _run("gcc", "-O1", "-o", command[0], HERE / "registered.c")
    return command


def _place(path: Path, addresses: dict[str, int]) -> None:
    """Write addresses into the section headers of an object file."""
    data = bytearray(path.read_bytes())
    shoff = struct.unpack_from("<Q", data, 40)[0]
    count, names = struct.unpack_from("<HH", data, 60)
    strings = struct.unpack_from("<Q", data, shoff + 64 * names + 24)[0]
    for place in range(shoff, shoff + 64 * count, 64):
        name = strings + struct.unpack_from("<I", data, place)[0]
        address = addresses.get(data[name : data.index(0, name)].decode())
        if address is not None:
            struct.pack_into("<Q", data, place + 16, address)
    path.write_bytes(data)
