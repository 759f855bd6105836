"""The text of instructions, by capstone where the extra `disassembly` is installed; else their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walkback.base.arch import Machine


def texts(machine: Machine) -> Callable[[bytes, int], str]:
    """The function that gives the text of one instruction at an address."""
    try:
        import capstone
    except ImportError:
        return lambda code, _address: code.hex(" ")
    kind, mode = {
        "AMD64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "AArch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN),
        "s390x": (capstone.CS_ARCH_SYSZ, capstone.CS_MODE_BIG_ENDIAN),
    }[machine.name]
    reader = capstone.Cs(kind, mode)
    if machine.name == "AMD64":
        reader.syntax = capstone.CS_OPT_SYNTAX_ATT

    def text(code: bytes, address: int) -> str:
        for _, _, name, operands in reader.disasm_lite(code, address, 1):
            return f"{name} {operands}".rstrip()
        return code.hex(" ")

    return text
