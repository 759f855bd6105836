"""The machines: register numbers and the ABI rules that stack walking rests on.

Register numbers are those of each ABI's DWARF mapping.
"""

from __future__ import annotations

from typing import Literal

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError
from walkback.base.oneline import OneLine

ByteOrder = Literal["little", "big"]


@dataclass(frozen=True, slots=True, repr=False)
class Machine(OneLine):
    """What one instruction set and its ABI fix for everybody who walks its stacks.

    >>> machine = walkback.sframe.SectionBuilder("AMD64").machine
    >>> machine.name, machine.sp, machine.fp
    ('AMD64', 7, 6)
    """

    name: str
    """As people write it: AMD64, AArch64, s390x."""
    elf_machine: int
    """`e_machine` of its ELF files."""
    sp: int
    fp: int
    ra: int
    sp_from_cfa: int
    """The caller's stack pointer is the CFA plus this."""
    entry_sp_to_cfa: int
    """At a function's first instruction the CFA is the stack pointer plus this."""
    ra_from_cfa: int
    """Where a call puts the return address, from the CFA; 0 where it goes into a register."""
    code_alignment: int
    """Every instruction starts at a multiple of this."""
    register_names: tuple[str, ...]
    signal_return: tuple[bytes, ...]
    """The code that signal handlers return to: `rt_sigreturn`, and where there is an older form that too."""

    def __hash__(self) -> int:
        """That of its name: names are unique, and to hash all fields is slow."""
        return hash(self.name)

    def register_name(self, number: int) -> str:
        """The assembler's name of a register, or `rN` with its DWARF number."""
        return self.register_names[number] if number < len(self.register_names) else f"r{number}"


AMD64 = Machine(
    name="AMD64",
    elf_machine=62,
    sp=7,
    fp=6,
    ra=16,
    sp_from_cfa=0,
    entry_sp_to_cfa=8,
    ra_from_cfa=-8,
    code_alignment=1,
    register_names=(
        *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
        *(f"r{n}" for n in range(8, 16)),
        "rip",
    ),
    signal_return=(bytes.fromhex("48c7c00f0000000f05"),),  # mov $15, %rax; syscall
)

AARCH64 = Machine(
    name="AArch64",
    elf_machine=183,
    sp=31,
    fp=29,
    ra=30,
    sp_from_cfa=0,
    entry_sp_to_cfa=0,
    ra_from_cfa=0,
    code_alignment=4,
    register_names=(*(f"x{n}" for n in range(31)), "sp"),
    signal_return=(bytes.fromhex("681180d2010000d4"),),  # mov x8, #139; svc #0
)

S390X = Machine(
    name="s390x",
    elf_machine=22,
    sp=15,
    fp=11,
    ra=14,
    sp_from_cfa=-160,
    entry_sp_to_cfa=160,
    ra_from_cfa=0,
    code_alignment=2,
    register_names=(
        # The even-odd order of the floating point registers is the ABI's.
        *(f"r{n}" for n in range(16)),
        *(f"f{n}" for n in (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)),
    ),
    signal_return=(bytes.fromhex("0aad"), bytes.fromhex("0a77")),  # svc 173 (rt_sigreturn), svc 119 (sigreturn)
)

MACHINES = (AMD64, AARCH64, S390X)


def machine_of(machine: str | Machine) -> Machine:
    """The machine that has a name, in capitals or not."""
    if isinstance(machine, Machine):
        return machine
    known = {one.name.lower(): one for one in MACHINES}
    if machine.lower() not in known:
        raise ArgumentError(f"unknown machine {machine!r}; known: {', '.join(one.name for one in MACHINES)}")
    return known[machine.lower()]


def check_byteorder(order: str) -> None:
    """Raise an error for what is no byte order."""
    if order not in {"little", "big"}:
        raise ArgumentError(f"the byte order is little or big, not {order!r}")


def check_address(address: int) -> None:
    """Raise an error for a number that is no address."""
    if not 0 <= address < 1 << 64:
        raise ArgumentError(f"{address} is no address of 64 bits")
