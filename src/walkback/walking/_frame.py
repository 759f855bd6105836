"""From a frame to its caller: registers, and the steps that change them (compiled)."""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.walking._expression import DONE, MEMORY, UNKNOWN

if cython.compiled:
    from cython.cimports.walkback.stacks.stacks import End, FrameKind, How
    from cython.cimports.walkback.walking._expression import Expressions
    from cython.cimports.walkback.walking._memory import Segments
    from cython.cimports.walkback.walking._tables import Tables
    from cython.cimports.walkback.walking.abi import Flag, Op
    from cython.cimports.walkback.walking.samples import COLUMNS, PC, SYSTEM_STACK, THREAD
else:
    from walkback.stacks.stacks import End, FrameKind, How
    from walkback.walking._expression import Expressions
    from walkback.walking._memory import Segments
    from walkback.walking._tables import Tables
    from walkback.walking.abi import Flag, Op
    from walkback.walking.samples import COLUMNS, PC, SYSTEM_STACK, THREAD

_WORD = cython.declare(cython.ulonglong, WORD)
_ONE = cython.declare(cython.ulonglong, 1)

_ALWAYS = cython.declare(cython.ulonglong, (_ONE << THREAD) | (_ONE << SYSTEM_STACK))
"""Columns that no call changes."""

_DONE = cython.declare(cython.int, DONE)
_MEMORY = cython.declare(cython.int, MEMORY)
_UNKNOWN = cython.declare(cython.int, UNKNOWN)


@cython.final
@cython.cclass
class Frame:
    """The frame that a walk has come to."""

    def __init__(self, columns, settings, memory: Segments, tables: Tables):
        """`columns` are views of the arrays of a pool by their names; `settings` has the registers of the machine."""
        self.step_cfa = columns["step_cfa"]
        self.step_register = columns["step_register"]
        self.step_operand = columns["step_operand"]
        self.step_first = columns["step_first"]
        self.step_end = columns["step_end"]
        self.step_flags = columns["step_flags"]
        self.step_how = columns["step_how"]
        self.save_column = columns["save_column"]
        self.save_op = columns["save_op"]
        self.save_register = columns["save_register"]
        self.save_operand = columns["save_operand"]
        self.sp = settings["sp"]
        self.rip = settings["rip"]
        self.chain_register = settings["chain_register"]
        self.sp_from_cfa = settings["sp_from_cfa"]
        self.preserved = settings["preserved"]
        self.address_mask = settings["address_mask"]
        self.memory = memory
        self.tables = tables
        self.registers = memoryview(np.zeros(COLUMNS, np.uint64))
        self.expressions = Expressions(
            columns["expression_first"], columns["expression_end"], columns["expression_bytes"]
        )
        self.expressions.registers = self.registers
        self.expressions.big = settings["big"]
        self.values = memoryview(np.zeros(256, np.uint64))
        self.known = self.value = self.at = self.mark_pc = self.mark_sp = 0
        self.kind = self.how = self.why = self.still = self.signals = 0
        self.guessed = False

    # Old Cython takes no `const` in methods: the type of `samples` stands in the .pxd.
    def begin(self, samples, number: cython.Py_ssize_t, known: cython.ulonglong) -> cython.bint:
        """Take the registers of a sample; whether it has any."""
        column: cython.Py_ssize_t
        for column in range(COLUMNS):
            self.registers[column] = samples[number * COLUMNS + column]
        self.known = known | (_ONE << SYSTEM_STACK)
        self.registers[SYSTEM_STACK] = 0
        self.kind = FrameKind.EXACT
        self.how = 0
        self.still = self.signals = 0
        self.guessed = False
        self.at = 0
        if not (known >> PC) & 1:
            self.why = End.NO_REGISTERS
            return False
        self.at = self.registers[PC]
        return True

    def follow(self, step: cython.Py_ssize_t) -> cython.bint:
        """Come to the caller; if there is none, all registers stay, `why` says why, and `at` what that is about."""
        flags: cython.int = self.step_flags[step]
        first: cython.Py_ssize_t = self.step_first[step]
        i: cython.Py_ssize_t
        column: cython.Py_ssize_t
        op: cython.int
        bit: cython.ulonglong
        cfa: cython.ulonglong
        sp: cython.ulonglong
        pc: cython.ulonglong = 0
        known: cython.ulonglong = self.known & _ALWAYS
        if not self._find_cfa(step, flags):
            return False
        cfa = self.value
        sp = (cfa + self.sp_from_cfa) & _WORD
        if flags & Flag.KEEPS:
            known |= self.known & self.preserved
        known |= _ONE << self.sp
        for i in range(first, self.step_end[step]):
            op = self.save_op[i]
            column = self.save_column[i]
            bit = _ONE << column
            if op == Op.SAME:
                self.values[i - first] = self.registers[column]
                known = (known & ~bit) | (self.known & bit)
            elif op == Op.UNKNOWN:
                known &= ~bit
            elif self._value(op, self.save_register[i], self.save_operand[i], cfa, False):
                known |= bit
                self.values[i - first] = self.value
                if column == PC:
                    pc = self.value
                elif column == self.sp:
                    sp = self.value
            elif column == PC or column == self.sp or column == SYSTEM_STACK:
                return False
            else:
                # Other registers may never be needed.
                known &= ~bit
                if self._is_restored():
                    self.values[i - first] = self.registers[column]
                    known |= self.known & bit
        if flags & Flag.SIGNED:
            pc &= self.address_mask
        if not self._is_caller(flags, pc, sp, known):
            return False
        self._go(step, pc, sp, known)
        return True

    def _find_cfa(self, step: cython.Py_ssize_t, flags: cython.int) -> cython.bint:
        """Leave the CFA in `value`; whether there is one to go on from."""
        if self.step_end[step] - cython.cast(cython.Py_ssize_t, self.step_first[step]) > self.values.shape[0]:
            return self._fail(End.INEXPRESSIBLE, self.at)
        if flags & Flag.CHAIN and not self._has_chain():
            return False
        if not self._value(self.step_cfa[step], self.step_register[step], self.step_operand[step], 0, True):
            return False
        if not self.value and flags & Flag.GUESS:
            # The last word of a chain.
            return self._fail(End.ZERO, 0)
        return True

    def _is_caller(
        self, flags: cython.int, pc: cython.ulonglong, sp: cython.ulonglong, known: cython.ulonglong
    ) -> cython.bint:
        """Whether what was found can be the caller."""
        # What a signal interrupted can have jumped to 0.
        if not (known >> PC) & 1 or (not pc and not flags & Flag.SIGNAL):
            return self._fail(End.ZERO, pc)
        if not self._makes_progress(flags, pc, sp):
            return False
        if flags & Flag.GUESS and not self.tables.is_code((pc - 1) & _WORD):
            return self._fail(End.NOT_CODE, pc)
        return True

    def _go(
        self, step: cython.Py_ssize_t, pc: cython.ulonglong, sp: cython.ulonglong, known: cython.ulonglong
    ) -> cython.int:
        """The frame is the caller now: its registers are the values that were found."""
        flags: cython.int = self.step_flags[step]
        first: cython.Py_ssize_t = self.step_first[step]
        i: cython.Py_ssize_t
        column: cython.Py_ssize_t
        for i in range(first, self.step_end[step]):
            column = self.save_column[i]
            if (known >> column) & 1:
                self.registers[column] = self.values[i - first]
        self.registers[PC] = pc
        self.registers[self.sp] = sp
        if self.rip >= 0:
            self.registers[self.rip] = pc
            known |= _ONE << self.rip
        if flags & Flag.LOOSE:
            known &= ~(_ONE << self.sp)
        self.known = known
        self.at = pc
        self.kind = FrameKind.EXACT if flags & Flag.SIGNAL else FrameKind.RETURN
        self.how = self.step_how[step]
        if self.how == How.FP_GUESS:
            self.guessed = True
        return 0

    def stack_pointer(self) -> cython.ulonglong:
        """Where the frame begins on the stack; 0 if that is not known."""
        return self.registers[self.sp] if (self.known >> self.sp) & 1 else 0

    def leads_to_code(self, step: cython.Py_ssize_t) -> cython.bint:
        """Whether the program counter that a step finds is in mapped code."""
        i: cython.Py_ssize_t
        for i in range(self.step_first[step], self.step_end[step]):
            if self.save_column[i] == PC:
                if not self._value(self.save_op[i], self.save_register[i], self.save_operand[i], 0, False):
                    return False
                return self.tables.is_code(self.value)
        return False

    def _fail(self, why: cython.int, at: cython.ulonglong) -> cython.bint:
        self.why = why
        self.at = at
        return False

    def _has_chain(self) -> cython.bint:
        """Whether the register that frame pointers are chained by has a value, and that is not the last one's."""
        if not (self.known >> self.chain_register) & 1:
            return self._fail(End.NO_TABLE, self.registers[PC])
        if not self.registers[self.chain_register]:
            return self._fail(End.ZERO, self.chain_register)
        return True

    def _is_restored(self) -> cython.bint:
        """Whether what could not be read was restored already.

        That stands below the stack pointer: compilers do not say so in epilogues, and recordings do not have it.
        """
        return self.kind == FrameKind.EXACT and self.why == End.UNREADABLE and self.at < self.registers[self.sp]

    def _makes_progress(self, flags: cython.int, pc: cython.ulonglong, sp: cython.ulonglong) -> cython.bint:
        """Whether the caller is further out on the stack, which every walk must come to the end of."""
        old: cython.ulonglong = self.registers[self.sp]
        if flags & (Flag.SIGNAL | Flag.SWITCHES):
            # What was interrupted can have another stack. Such frames in a circle meet the one that was marked last,
            # since marks are set at growing distances.
            if self.signals and pc == self.mark_pc and sp == self.mark_sp:
                return self._fail(End.LOOP, pc)
            self.signals += 1
            if not self.signals & (self.signals - 1):
                self.mark_pc = pc
                self.mark_sp = sp
            self.still = 0
            return True
        if sp > old:
            self.still = 0
            return True
        if sp < old:
            return self._fail(End.NO_PROGRESS, pc)
        # A leaf needs no stack; nor does a callee that keeps its return address in a register.
        self.still += 1
        if self.still > 2:
            return self._fail(End.NO_PROGRESS, pc)
        if self.kind == FrameKind.RETURN and pc == self.registers[PC]:
            return self._fail(End.LOOP, pc)
        return True

    def _value(
        self,
        op: cython.int,
        register: cython.Py_ssize_t,
        operand: cython.longlong,
        cfa: cython.ulonglong,
        is_cfa: cython.bint,
    ) -> cython.bint:
        """Leave a value in `value`; whether there is one."""
        if op == Op.AT_CFA:
            return self._load((cfa + operand) & _WORD, 8)
        if op == Op.REGISTER or op == Op.AT_REGISTER:
            if not (self.known >> register) & 1:
                return self._fail(End.UNKNOWN_REGISTER, register)
            self.value = (self.registers[register] + operand) & _WORD
            return op == Op.REGISTER or self._load(self.value, 8)
        if op == Op.CFA:
            self.value = (cfa + operand) & _WORD
            return True
        if op == Op.EXPRESSION or op == Op.AT_EXPRESSION:
            if not self._evaluate(operand, cfa, is_cfa):
                return False
            return op == Op.EXPRESSION or self._load(self.value, 8)
        return self._fail(End.INEXPRESSIBLE, self.at)

    def _evaluate(self, number: cython.longlong, cfa: cython.ulonglong, is_cfa: cython.bint) -> cython.bint:
        """Evaluate an expression, bringing what it wants to load."""
        status: cython.int = self.expressions.start(number, self.known, cfa, is_cfa, self.tables.bias)
        while status == _MEMORY:
            if not self._load(self.expressions.address, self.expressions.size):
                return False
            status = self.expressions.take(self.value)
        if status == _DONE:
            self.value = self.expressions.result()
            return True
        if status == _UNKNOWN:
            return self._fail(End.UNKNOWN_REGISTER, self.expressions.address)
        return self._fail(End.INEXPRESSIBLE, self.at)

    def _load(self, address: cython.ulonglong, size: cython.int) -> cython.bint:
        """Leave a number from memory in `value`; whether it is there."""
        if self.memory.load(address, size):
            self.value = self.memory.value
            return True
        return self._fail(End.STACK_CUT if self.memory.is_cut_off(address, size) else End.UNREADABLE, address)
