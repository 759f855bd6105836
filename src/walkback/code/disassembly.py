"""The text of instructions: by capstone where the extra `disassembly` is installed, by objdump, or their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walkback.base.arch import ByteOrder, Machine

Instructions = Sequence[tuple[int, bytes]]
"""Addresses, and the bytes there."""

_CROSS = {"AMD64": "x86_64-linux-gnu", "AArch64": "aarch64-linux-gnu", "s390x": "s390x-linux-gnu"}
"""What names of programs for a machine begin with."""
_SECONDS = 60
_MOST_PARTS = 1 << 15
"""More sections than that need another form of the header."""
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$", re.MULTILINE)
_PART = re.compile(r"^Disassembly of section (\d+):$", re.MULTILINE)
_NAMED = re.compile(r"\s*<[^>]*>$")
"""What objdump adds to an address: the code that it reads has no names."""


def instruction_texts(machine: Machine, instructions: Instructions) -> list[str]:
    """The text of each instruction."""
    texts = _by_capstone(machine, instructions)
    missing = [number for number, text in enumerate(texts) if not text]
    for number, text in zip(missing, _by_objdump(machine, [instructions[number] for number in missing]), strict=True):
        texts[number] = text or instructions[number][1].hex(" ")
    return texts


def _by_capstone(machine: Machine, instructions: Instructions) -> list[str]:
    """The text of each, empty where capstone does not know it, or is not there."""
    try:
        import capstone
    except ImportError:
        return [""] * len(instructions)
    kind, mode = {
        "AMD64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "AArch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN),
        "s390x": (capstone.CS_ARCH_SYSZ, capstone.CS_MODE_BIG_ENDIAN),
    }[machine.name]
    reader = capstone.Cs(kind, mode)
    if machine.name == "AMD64":
        reader.syntax = capstone.CS_OPT_SYNTAX_ATT

    def text(code: bytes, address: int) -> str:
        return next((f"{one[2]} {one[3]}".rstrip() for one in reader.disasm_lite(code, address, 1)), "")

    return [text(code, address) for address, code in instructions]


def _by_objdump(machine: Machine, instructions: Instructions) -> list[str]:
    """The text of each, empty where no objdump knows it."""
    import shutil
    import subprocess
    import tempfile

    if not instructions:
        return []
    parts = list(_joined(instructions))
    programs = [shutil.which(name) for name in ("objdump", f"{_CROSS[machine.name]}-objdump")]
    with tempfile.NamedTemporaryFile() as file:
        file.write(_program(machine, parts[:_MOST_PARTS]))
        file.flush()
        for program in filter(None, programs):
            command = [program, "-d", "-z", "--no-show-raw-insn", file.name]
            try:
                done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
            except (OSError, subprocess.SubprocessError):
                continue
            # What stands before the first part is a heading; behind that are numbers of parts and their lines.
            _, *found = _PART.split(done.stdout.decode(errors="replace"))
            if not done.returncode and found:
                texts = {
                    (int(number), int(address, 16)): " ".join(_NAMED.sub("", text).split())
                    for number, lines in zip(found[::2], found[1::2], strict=True)
                    for address, text in _LINE.findall(lines)
                }
                listed = (texts.get(place, "") for place in _places(parts))
                return ["" if "(bad)" in text else text for text in listed]
    return [""] * len(instructions)


def _places(parts: Sequence[Instructions]) -> Iterable[tuple[int, int]]:
    """The number of its part and the address of each instruction: in objects several parts have the same addresses."""
    return ((number, address) for number, part in enumerate(parts) for address, _ in part)


def _joined(instructions: Instructions) -> Iterable[Instructions]:
    """Neighbours joined: what is between them is not code."""
    ends = [address + len(code) for address, code in instructions]
    starts = [0, *(i + 1 for i in range(len(ends) - 1) if instructions[i + 1][0] != ends[i]), len(ends)]
    for first, end in pairwise(starts):
        if first < end:
            yield instructions[first:end]


def _program(machine: Machine, parts: Sequence[Instructions]) -> bytes:
    """An ELF file with nothing but code: objdump reads each section from its beginning, and nothing of another file."""
    import numpy as np

    from walkback.elf import layout

    order: ByteOrder = "big" if machine.name == "s390x" else "little"
    names = [b"%d" % number for number in range(len(parts))]
    contents = [b"", b"\0" + b"\0".join([*names, b""]), *(b"".join(code for _, code in part) for part in parts)]
    header = np.zeros(1, layout.ELF_HEADER[order])
    sections = np.zeros(len(contents), layout.SECTION_HEADER[order])
    header["ident"] = layout.ELF_MAGIC + bytes([layout.ELFCLASS64, 1 + (order == "big"), 1])
    header["type"], header["machine"], header["version"] = layout.ET_EXEC, machine.elf_machine, 1
    header["shoff"], header["ehsize"], header["shentsize"] = header.nbytes, header.nbytes, sections.itemsize
    header["shnum"], header["shstrndx"] = len(sections), 1
    sections["size"], sections["addralign"] = [len(one) for one in contents], 1
    sections["offset"] = header.nbytes + sections.nbytes + np.cumsum(sections["size"]) - sections["size"]
    sections["type"][1] = layout.SHT_STRTAB
    code = sections[2:]
    code["name_offset"] = 1 + np.cumsum([0, *(len(name) + 1 for name in names)])[:-1]
    code["type"], code["addr"] = layout.SHT_PROGBITS, [part[0][0] for part in parts]
    code["flags"] = layout.SHF_ALLOC | layout.SHF_EXECINSTR
    return b"".join([header.tobytes(), sections.tobytes(), *contents])
