"""A program whose sections are measured."""

from __future__ import annotations

from typing import Any

from cfibuilder import PCREL, SDATA4, CfiBuilder, cfa
from elfbuilder import ElfBuilder

TEXT, FRAMES = 0x1000, 0x2000

START = "def_cfa 7 8; offset 16 1"


def a_program(**changes: Any) -> ElfBuilder:
    """Four functions: two that are alike, one that saves other registers, one that version 2 has no words for."""
    frames = CfiBuilder(address=FRAMES)
    plain = frames.cie(cfa(START))
    encodings: dict[str, Any] = {
        "encoding": PCREL | SDATA4,
        "lsda": PCREL | SDATA4,
        "personality": (PCREL | SDATA4, 0x1080),
    }
    catching = frames.cie(cfa(START), augmentation=b"zPLR", **encodings)
    frames.fde(catching, TEXT, 32, cfa("advance_loc 1; def_cfa_offset 16"))
    frames.fde(catching, TEXT + 0x20, 32, cfa("advance_loc 1; def_cfa_offset 16"), lsda=0x40)
    saves = "advance_loc 2; def_cfa_offset 16; offset 3 2; advance_loc 3; offset 12 3"
    frames.fde(plain, TEXT + 0x40, 16, cfa(saves))
    frames.fde(plain, TEXT + 0x50, 16, cfa("def_cfa 10 0"))
    elf = ElfBuilder(kind=2, **changes)
    elf.code(".text", 0x100, TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".eh_frame", frames.bytes(), flags=2, addr=FRAMES)
    elf.segment(1, ".eh_frame", vaddr=FRAMES)
    elf.section(".eh_frame_hdr", bytes(44), flags=2, addr=FRAMES + 0x800)
    return elf
