"""The memory that a proof reads: sections as their files have them."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import zlib
from pathlib import Path

import walkback
from proof.assembled import verified
from sectionless import without_section_headers
from walkback.elf import ElfFile

_COMPRESSED = 0x800
_HEADER = 64
"""Bytes of a section's header."""
SWITCH = (
    "cmp $2,%edi; ja 9f; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; mov %edi,%edi; lea t(%rip),%rax;"
    "movslq (%rax,%rdi,4),%rdi; add %rax,%rdi; jmp *%rdi; 1: xor %ebx,%ebx; 2: nop; 3: pop %rbx;"
    ".cfi_restore 3; .cfi_def_cfa_offset 8; 9: ret; .section .rodata; t: .long 1b-t, 2b-t, 3b-t; .text"
)


def with_compressed_code(path: Path, more: bytes) -> Path:
    """A copy of an object whose code is compressed, with more bytes behind it: its header has another size."""
    elf = ElfFile(path)
    [number] = elf.sections_named(".text")
    code = bytes(elf.section_data(number)) + more
    stored = struct.pack("<IIQQ", 1, 0, len(code), 16) + zlib.compress(code)
    data = bytearray(path.read_bytes())
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    at = headers + number * _HEADER
    (flags,) = struct.unpack_from("<Q", data, at + 8)
    struct.pack_into("<Q", data, at + 8, flags | _COMPRESSED)
    struct.pack_into("<QQ", data, at + 24, len(data), len(stored))
    copy = path.with_name("compressed.o")
    copy.write_bytes(data + stored)
    return copy


def test_code_of_an_object_may_be_compressed(tmp_path: Path) -> None:
    plain = verified("push %rbx; .cfi_def_cfa_offset 16; pop %rbx; ret", tmp_path)
    for more in (b"", bytes(5000)):
        [found] = walkback.verify(with_compressed_code(tmp_path / "f.o", more))
        assert (found.functions, found.proved, found.wrong) == (1, plain.proved, plain.wrong)


def test_constants_are_read_where_there_are_no_section_headers(tmp_path: Path) -> None:
    """Tables of jumps are in a segment of their own, without code."""
    verified(SWITCH, tmp_path)
    program = tmp_path / "program"
    command: list[str | Path] = [
        "gcc",
        "-nostdlib",
        "-static-pie",
        "-Wl,-e,f,-z,separate-code,--eh-frame-hdr",
        "-o",
        program,
    ]
    subprocess.run([*command, tmp_path / "f.o"], check=True)
    [found] = walkback.verify(without_section_headers(program, tmp_path / "bare"))
    assert (found.functions, found.proved, found.reasons) == (1, found.bytes, {})


def test_tables_of_jumps_are_followed_where_kernels_are(tmp_path: Path) -> None:
    verified(SWITCH, tmp_path)
    for address in ("0xffffffff81000000", "0xffff800080000000"):  # of AMD64 and of AArch64
        kernel = tmp_path / address
        subprocess.run(["ld", "-e", "f", f"-Ttext-segment={address}", "-o", kernel, tmp_path / "f.o"], check=True)
        [found] = walkback.verify(kernel)
        assert (found.functions, found.proved, found.reasons) == (1, found.bytes, {})


def test_sizes_of_sections_that_cannot_be_raise_nothing_else(tmp_path: Path) -> None:
    verified("call g; ret", tmp_path)
    data = (tmp_path / "f.o").read_bytes()
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    for number in range(1, count):
        for size in (1 << 40, 1 << 63, (1 << 64) - 1):
            damaged = bytearray(data)
            struct.pack_into("<Q", damaged, headers + number * _HEADER + 32, size)
            with contextlib.suppress(walkback.WalkbackError):
                list(walkback.verify(bytes(damaged)))
