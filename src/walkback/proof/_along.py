"""What is noted along the code of one range, in the order of addresses (compiled).

That is what the kernel is asked for, and which registers get values before control goes where they say.
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.machines import AARCH64, AMD64, S390X
else:
    from walkback.code._instruction import Instruction
    from walkback.code.effects import Effect, Flow
    from walkback.code.machines import AARCH64, AMD64, S390X

_ONE = cython.declare(cython.ulonglong, 1)
_REGISTERS = cython.declare(cython.int, 64)
_UNKNOWN = cython.declare(cython.longlong, -1)
"""What a register has, where no constant says so."""
_OF_I386 = cython.declare(cython.uchar, 0xCD)
"""AMD64: `int`, by which Linux is asked with the numbers of i386."""
_CLONE3 = cython.declare(cython.longlong, 435)
"""Its number is the same on all machines."""
_PASSED_ON_AMD64 = cython.declare(cython.ulonglong, 0x7B6)
"""Registers that have something when a function is entered: arguments, the static chain, the stack pointer."""
_PASSED_ON_AARCH64 = cython.declare(cython.ulonglong, 0xFFFF_FFFF_C004_00FF)
"""And the return address, and the register of the platform."""
_PASSED_ON_S390X = cython.declare(cython.ulonglong, 0xFFFF_FFFF_FFFF_C07C)


@cython.final
@cython.cclass
class Along:
    """One range after the other."""

    def __init__(self, machine):
        self.machine = AMD64 if machine == "AMD64" else AARCH64 if machine == "AArch64" else S390X
        self.number = 0 if machine == "AMD64" else 8 if machine == "AArch64" else 1
        self.passed = _PASSED_ON_S390X
        if machine == "AMD64":
            self.passed = _PASSED_ON_AMD64
        elif machine == "AArch64":
            self.passed = _PASSED_ON_AARCH64
        self.constants = memoryview(np.zeros(_REGISTERS, np.int64))
        self.begin(0)

    def begin(self, kept: cython.ulonglong) -> cython.int:
        """Begin with another range; calls keep some registers."""
        register: cython.int
        self.kept = kept
        self.given = self.through = 0
        self.is_given = self.is_other = self.is_open = self.may_fork = False
        for register in range(_REGISTERS):
            self.constants[register] = _UNKNOWN
        return 0

    def begin_block(self) -> cython.int:
        """Control may come here from elsewhere, too: what the kernel is asked for may have another number then."""
        self.constants[self.number] = _UNKNOWN
        return 0

    def note(self, one: Instruction, asks: cython.bint) -> cython.int:
        """Note which registers an instruction changes, and their constants if the code `asks` the kernel."""
        changed: cython.ulonglong = one.changes()
        if one.flow == Flow.JUMP_INDIRECT:
            return 0  # its register says where it goes
        if one.flow == Flow.CALL or one.flow == Flow.CALL_INDIRECT:
            changed = one.clobbers | ~self.kept
        self.given |= changed
        if asks:
            self.follow(one, changed)
        return 0

    def follow(self, one: Instruction, changed: cython.ulonglong) -> cython.int:
        """Follow the constants in registers."""
        register: cython.int
        value: cython.longlong = _UNKNOWN
        if one.effect == Effect.CONSTANT:
            value = one.offset
        elif (one.effect == Effect.COPY or one.effect == Effect.EXTEND) and one.second >= 0:
            value = self.constants[one.second]
        if (changed >> self.number) & 1 and one.flow == Flow.NEXT:
            self.is_given = True
            if value == _UNKNOWN or one.first != self.number or self.forks(value):
                self.is_other = True
        for register in range(_REGISTERS):
            if (changed >> register) & 1:
                self.constants[register] = value if register == one.first else _UNKNOWN
        return 0

    def ask(self, code, at: cython.Py_ssize_t) -> cython.int:
        """The kernel is asked for something, by an instruction at a place in the buffer."""
        asked: cython.longlong = self.constants[self.number]
        if self.machine == S390X and code[at + 1]:
            asked = code[at + 1]
        if asked == _UNKNOWN:
            self.is_open = True
        elif self.machine == AMD64 and code[at] == _OF_I386:
            self.may_fork = self.may_fork or asked == _CLONE3 or _forks_elsewhere(asked)
        elif self.forks(asked):
            self.may_fork = True
        return 0

    def forks(self, asked: cython.longlong) -> cython.bint:
        """Whether the kernel is asked for a thread or process, which goes on there with another stack."""
        if asked == _CLONE3:
            return True
        if self.machine == AMD64:
            return asked == 56 or asked == 57 or asked == 58  # clone, fork, vfork
        if self.machine == S390X:
            return _forks_elsewhere(asked)
        return asked == 220  # clone

    def asks_for_fork(self) -> cython.bint:
        """Whether it may ask for that: with such a number, or with one that it is passed or computes."""
        return self.may_fork or (self.is_open and (self.is_other or not self.is_given))

    def saves_more(self, one: Instruction) -> cython.bint:
        """Whether an instruction saves a register that has no value for a function yet, but for the first result.

        Compilers push that for room on the stack, or have there where a result goes.
        """
        if one.effect != Effect.STORE or one.first < 0 or one.first == (8 if self.machine == AARCH64 else 0):
            return False
        return (self.given | self.passed | self.kept) >> one.first & 1 == 0

    def note_way(self, one: Instruction) -> cython.int:
        """Control goes where registers say, in code that the entry of the range itself leads to."""
        if one.first >= 0:
            self.through |= _ONE << one.first
        if one.base >= 0:
            self.through |= _ONE << one.base
        if one.index >= 0:
            self.through |= _ONE << one.index
        return 0

    def is_passed_more(self) -> cython.bint:
        """Whether control goes where a register says that gets no value in the range, and is no argument."""
        return self.through & ~(self.given | self.passed) != 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _forks_elsewhere(asked: cython.longlong) -> cython.bint:
    """Whether these are the numbers that fork, clone and vfork have on s390x and i386."""
    return asked == 2 or asked == 120 or asked == 190
