"""Constants of jitdump, in the words of the specification in perf's documents."""

from __future__ import annotations

import re

MAGIC = 0x4A695444
"""As a number of the writer's byte order."""
VERSION = 1
HEADER = "IIIIIIQQ"
"""magic, version, total_size, elf_mach, pad1, pid, timestamp, flags"""
FLAG_ARCH_TIMESTAMP = 1
"""Times are those of a counter of the processor, and not of CLOCK_MONOTONIC."""

PREFIX = "IIQ"
"""id, total_size, timestamp"""

JIT_CODE_LOAD = 0
JIT_CODE_MOVE = 1
JIT_CODE_DEBUG_INFO = 2
JIT_CODE_CLOSE = 3
JIT_CODE_UNWINDING_INFO = 4

LOAD = "IIQQQQ"
"""pid, tid, vma, code_addr, code_size, code_index; then the name and the code"""
MOVE = "IIQQQQQ"
"""pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index"""
DEBUG_INFO = "QQ"
"""code_addr, nr_entry; then the entries"""
DEBUG_ENTRY = "Qii"
"""addr, lineno, discrim; then the name of the file"""
SAME_NAME = b"\xff"
"""Instead of the name of a file: the one of the entry before."""
UNWINDING_INFO = "QQQ"
"""unwinding_size, eh_frame_hdr_size, mapped_size; then `.eh_frame` and `.eh_frame_hdr`"""

CODE_TO_FRAMES = 8
"""`.eh_frame` counts as if it stood behind the code, at the next multiple of this."""

V8_SHIFT = 0x40
"""How much the addresses of V8's lines are too large: it counts from where perf put code in its ELF files once."""

_IMAGE_NAME = re.compile(r"jitted-[0-9]{1,10}-[0-9]{1,10}\.so")
_NAME = re.compile(r"jit-([0-9]{1,10})\.dump")


def is_dump_name(path: str) -> bool:
    """Whether a file has the name of a dump, by which perf knows it."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def is_image_name(path: str) -> bool:
    """Whether a file has the name of those that `perf inject --jit` makes of the code in a dump."""
    return _IMAGE_NAME.fullmatch(path.rpartition("/")[2]) is not None
