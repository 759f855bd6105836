"""Functions from a few lines of assembly, mostly of AMD64, and what the proof says of their call frame information."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import walkback

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.sections.verified import Verified

HEAD = ".text\n.globl f\n.type f,@function\nf:\n.cfi_startproc\n"
END = "\n.cfi_endproc\n.size f,.-f\n"
FRAME = "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %rsp,%rbp; .cfi_def_cfa_register 6;"
LEAVE = "leave; .cfi_restore 6; .cfi_def_cfa 7,8; ret"


def verified(text: str, folder: Path, before: str = HEAD, behind: str = END, assembler: str = "as") -> Verified:
    """A function with these lines between its beginning and its end."""
    path = folder / "f.o"
    lines = "\n".join([before + text.replace(";", "\n") + behind])
    subprocess.run([assembler, "-o", path, "-"], input=lines.encode(), check=True)
    [found] = walkback.verify(path)
    assert found.proved + found.wrong + found.assumed + found.unknown + found.not_reached == found.bytes
    return found
