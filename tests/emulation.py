"""Programs for other machines: built by the cross compilers, and run by the emulators, which write their cores."""

from __future__ import annotations

import resource
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from peers import BIN, have, peer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

START = {
    "aarch64": """
        mov x29, #0
        mov x30, #0
        mov x5, x0
        ldr x1, [sp]
        add x2, sp, #8
        mov x6, sp
        adrp x0, main
        add x0, x0, :lo12:main
        mov x3, #0
        mov x4, #0
        bl __libc_start_main
        """,
    "s390x": """
        lg %r3, 0(%r15)
        la %r4, 8(%r15)
        lgr %r6, %r14
        aghi %r15, -176
        xc 0(8,%r15), 0(%r15)
        stmg %r14, %r15, 160(%r15)
        lghi %r5, 0
        lghi %r6, 0
        larl %r2, main
        brasl %r14, __libc_start_main@PLT
        """,
}
"""What the C library's start file does, which is not among the peers."""
LINK_REGISTER = {"aarch64": "x30", "s390x": "r14"}
LOADER = {"aarch64": "ld-linux-aarch64.so.1", "s390x": "ld64.so.1"}


def root(arch: str) -> Path:
    """The folder with the libraries of a machine."""
    return BIN.parent / "bookworm" / "usr" / f"{arch}-linux-gnu"


def start_file(arch: str, starter: str = "__libc_start_main") -> str:
    """The assembly of `_start`, which calls the starter with the arguments that the C library's takes."""
    text = f"""
        .globl _start
        .type _start, %function
        _start:
        .cfi_startproc
        .cfi_undefined {LINK_REGISTER[arch]}
        {START[arch].replace("__libc_start_main", starter)}
        .cfi_endproc
        .size _start, .-_start
        .section .note.GNU-stack, "", %progbits
        """
    for kind in ("function", "progbits") if arch == "s390x" else ():
        text = text.replace(f"%{kind}", f"@{kind}")
    return text


def built(
    program: Path, arch: str, source: Path, *flags: str,
    pie: bool = True, compiler: str = "gcc", libraries: Sequence[str] = (),
) -> Path:  # fmt: skip
    """A program of one file with the C library, and others of the folder with that."""
    gcc, assembler, linker = (peer(f"{arch}-{name}") for name in (compiler, "as-2.40", "ld-2.40"))
    start = start_file(arch)
    names = [program.with_name(f"{program.name}-{part}") for part in ("start", "main")]
    names[0].with_suffix(".s").write_text(start)
    flags = (*flags, "-fasynchronous-unwind-tables", "-fPIE" if pie else "-fno-pie")
    subprocess.run([gcc, *flags, "-S", "-o", names[1].with_suffix(".s"), source], check=True)
    for name in names:
        subprocess.run([assembler, "-o", name.with_suffix(".o"), name.with_suffix(".s")], check=True)
    paths = [root(arch) / "lib" / name for name in (*libraries, "libc.so.6", LOADER[arch])]
    command = [linker, *(["-pie"] if pie else []), "--build-id", "--eh-frame-hdr"]
    command += ["-dynamic-linker", f"/lib/{LOADER[arch]}", "-o", str(program)]
    subprocess.run([*command, *(name.with_suffix(".o") for name in names), *paths], check=True)
    return program


def emulator(arch: str) -> str:
    """The program; for machines that the peers have none for, the system's."""
    if arch in LOADER or have(f"qemu-{arch}"):
        return peer(f"qemu-{arch}")
    found = shutil.which(f"qemu-{arch}")
    if found is None:
        pytest.skip(f"needs qemu-{arch}, which comes with qemu-user")
    return found


def core_of(folder: Path, arch: str, program: Path, *words: str, stack: int | None = None, cpu: str = "") -> Path:
    """The core that the emulator wrote of a program that it ran in a folder."""

    def allow() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    options = ["-s", str(stack)] if stack is not None else []
    options += ["-cpu", cpu] if cpu else []
    options += ["-L", str(root(arch))] if arch in LOADER else []
    command: list[str | Path] = [emulator(arch), *options, program, *words]
    subprocess.run(command, cwd=folder, preexec_fn=allow, capture_output=True, check=False)
    cores = list(folder.glob("qemu_*.core"))
    if not cores:
        pytest.skip("core files are not allowed here (ulimit -c)")
    return cores[0]
