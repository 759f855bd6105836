"""The registers of a stopped thread as the kernel lays them out, and as columns of a sample.

`NT_PRSTATUS` of ptrace and `pr_reg` of core files are the same words: `user_regs_struct` on AMD64, `user_pt_regs` on
AArch64, `s390_regs` on s390x. `NT_FPREGSET` matters on s390x only, where functions save registers in those.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.walking.samples import COLUMNS, PC, THREAD


@dataclass(frozen=True, slots=True)
class RegisterSet:
    """A note with registers: which word of it goes to which column."""

    size: int
    """Its bytes, without which it is not one of this machine."""
    words: tuple[int, ...]
    """The numbers of the 64-bit words that are taken."""
    columns: tuple[int, ...]
    """Where each goes."""

    @property
    def known(self) -> int:
        """A bit for each column that it fills."""
        return sum(1 << column for column in set(self.columns))

    def fill(self, row: U64, contents: bytes | memoryview, byteorder: ByteOrder) -> None:
        """Put the registers into a sample's row; `contents` has at least `size` bytes."""
        words = np.frombuffer(contents, "<u8" if byteorder == "little" else ">u8", self.size // 8)
        row[list(self.columns)] = words[list(self.words)]


# user_regs_struct: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base ...
_AMD64_WORDS = {
    **dict(enumerate((15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5))),
    16: 16,
    19: 7,
    21: THREAD,
}

GENERAL: dict[Machine, RegisterSet] = {
    AMD64: RegisterSet(27 * 8, (*_AMD64_WORDS, 16), (*_AMD64_WORDS.values(), PC)),
    AARCH64: RegisterSet(34 * 8, tuple(range(33)), (*range(32), PC)),
    # The PSW's mask comes first, then its address; the access registers after the general ones are of no use here.
    S390X: RegisterSet(27 * 8, (*range(2, 18), 1), (*range(16), PC)),
}
"""NT_PRSTATUS."""

FLOATING: dict[Machine, RegisterSet] = {
    # The control word stands before f0 to f15; columns are in the ABI's even-odd order.
    S390X: RegisterSet(17 * 8, tuple(1 + int(name[1:]) for name in S390X.register_names[16:]), tuple(range(16, 32)))
}
"""NT_FPREGSET, where it is wanted."""

SP_WORD = {machine: registers.words[registers.columns.index(machine.sp)] for machine, registers in GENERAL.items()}
"""The word of NT_PRSTATUS that holds the stack pointer."""
PC_WORD = {machine: registers.words[registers.columns.index(PC)] for machine, registers in GENERAL.items()}
"""The same of the program counter."""


def empty_rows(count: int) -> U64:
    """Rows of a sample to be filled."""
    return np.zeros((count, COLUMNS), np.uint64)
