"""The machine of an ELF file, among those whose stacks are walked."""

from __future__ import annotations

from walkback.base.arch import MACHINES, Machine
from walkback.base.errors import UnreadableError
from walkback.elf.file import ElfFile


def machine_of(elf: ElfFile) -> Machine:
    """The machine of a file; another than those that SFrame knows is refused."""
    for machine in MACHINES:
        if machine.elf_machine == elf.machine:
            return machine
    known = ", ".join(machine.name for machine in MACHINES)
    message = f"e_machine {elf.machine} is not supported; the machines are {known}"
    raise UnreadableError(message, file=elf.name)
