"""A big-endian AArch64 program, for which there is no emulator: its core is made by hand, its code by the assembler."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from capture.corebuilder import CoreBuilder
from capture.targets import Look
from peers import peer
from walkback.capture.core.file import CoreFile
from walkback.elf import ElfFile
from walkback.naming.modules import Modules

FUNCTION = """
    .globl {name}
    .type {name}, %function
{name}:
    .cfi_startproc
    {outermost}
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x0, #1
    bl {callee}
    nop
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    ret
    .cfi_endproc
    .size {name}, .-{name}
"""
CHAIN = ("_start", "outer", "middle", "inner")
AFTER_CALL = 12
STACK = 0x7F0000000000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("big")
    text = "".join(
        FUNCTION.format(name=name, callee=callee, outermost=".cfi_undefined x30" if name == "_start" else "")
        for name, callee in zip(CHAIN, (*CHAIN[1:], "inner"), strict=True)
    )
    # In the outermost function the return address stays unknown.
    head, tail = text.split(".cfi_offset 30, -24", 1)
    (folder / "big.s").write_text(head + tail)
    subprocess.run([peer("aarch64-as-new"), "-EB", "-o", folder / "big.o", folder / "big.s"], check=True)
    command = [peer("aarch64-ld-new"), "-EB", "-m", "aarch64linuxb", "--build-id", "--eh-frame-hdr"]
    subprocess.run([*command, "-o", folder / "big", folder / "big.o"], check=True)
    return folder / "big"


def core_of(program: Path, *, files: bool) -> Any:
    """The innermost function is where its own call would be; nothing stands in the link register's place."""
    elf = ElfFile(program)
    table = elf.sections_named(".symtab")[0]
    symbols = elf.symbols(table)
    names = elf.strings(int(elf.sections["link"][table]), symbols["name_offset"].tolist())
    address = dict(zip(names, symbols["value"].tolist(), strict=True))
    core = CoreBuilder("AArch64", "big").process(9, b"big", b"big")
    words = [0] * 34
    words[29], words[31], words[32] = 0x55, STACK, address["inner"] + AFTER_CALL - 4
    callers = [address[name] + AFTER_CALL for name in ("middle", "outer", "_start")]
    contents = b"".join(core.pack("QQ", 0, back).ljust(32, b"\0") for back in callers) + bytes(32)
    core.thread(9, words, 11).load(STACK, contents)
    header = 0x400000
    core.auxiliary(entry=elf.entry, phdr=header + 64, phnum=len(elf.segments))
    if files:
        size = len(elf.data) + 4095 & -4096
        core.files((header, header + size, 0, str(program).encode()))
        core.load(header, bytes(elf.data[:4096]), size=size, flags=5)
    return core.build(), [words[32], *callers]


@pytest.mark.peers
@pytest.mark.parametrize("files", [True, False])
def test_a_big_endian_program(program: Path, files: bool) -> None:
    data, expected = core_of(program, files=files)
    look = Look(Modules())
    source = CoreFile(ElfFile(data, "core"), look.modules, exe=None if files else program)
    snapshot = look.at(source)
    assert snapshot.troubles == []
    assert snapshot.byteorder == "big"
    assert snapshot.stacks.pc.tolist() == expected
    assert look.names(snapshot, 0) == [*reversed(CHAIN)]
    assert look.ends(snapshot) == ["complete"]
