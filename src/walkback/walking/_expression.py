"""DWARF expressions, evaluated (compiled).

All operations that make sense in call frame information (DWARF 5, section 2.5.1). The evaluator knows no memory: when
it needs some it stops, and goes on when it is given the value.
"""

import cython
import numpy as np

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.leb128 import leb128
    from cython.cimports.walkback.dwarf import layout as dw
    from cython.cimports.walkback.walking.samples import BEYOND, COLUMNS, PC
else:
    from walkback.base.leb128 import leb128
    from walkback.dwarf import layout as dw
    from walkback.walking.samples import BEYOND, COLUMNS, PC

_WORD = cython.declare(cython.ulonglong, WORD)
DEPTH = 64
_DEPTH = cython.declare(cython.Py_ssize_t, DEPTH)
_MOST = cython.declare(cython.int, 10000)
"""Operations of one evaluation, which branches could make endless."""

# What evaluation comes to
DONE, MEMORY, UNKNOWN, WRONG, ON = range(5)
_DONE = cython.declare(cython.int, DONE)
_MEMORY = cython.declare(cython.int, MEMORY)
_UNKNOWN = cython.declare(cython.int, UNKNOWN)
_WRONG = cython.declare(cython.int, WRONG)
_ON = cython.declare(cython.int, ON)

_TOP = cython.declare(cython.ulonglong, 1 << 63)
"""The sign."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _negated(value: cython.ulonglong) -> cython.ulonglong:
    """A number with the other sign."""
    return (~value + 1) & _WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _quotient(under: cython.ulonglong, top: cython.ulonglong) -> cython.ulonglong:
    """The quotient of signed numbers, without its fraction."""
    negative: cython.bint = (under ^ top) & _TOP != 0
    if under & _TOP:
        under = _negated(under)
    if top & _TOP:
        top = _negated(top)
    return _negated(under // top) if negative else under // top


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _shifted(under: cython.ulonglong, top: cython.ulonglong) -> cython.ulonglong:
    """A signed number shifted to the right: its sign comes in from above."""
    sign: cython.ulonglong = _WORD if under & _TOP else 0
    return (under >> top) | (sign & ~(_WORD >> top) & _WORD) if top < 64 else sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _compared(code: cython.int, under: cython.ulonglong, top: cython.ulonglong) -> cython.ulonglong:
    """Whether a comparison of signed numbers holds: that of unsigned ones whose highest bits are turned around."""
    under ^= _TOP
    top ^= _TOP
    if code == dw.DW_OP_EQ:
        return under == top
    if code == dw.DW_OP_GE:
        return under >= top
    if code == dw.DW_OP_GT:
        return under > top
    if code == dw.DW_OP_LE:
        return under <= top
    return under < top if code == dw.DW_OP_LT else under != top


@cython.final
@cython.cclass
class Expressions:
    """A pool of expressions and one evaluation."""

    def __init__(self, first, end, data):
        self.first = first
        self.end = end
        self.bytes = data
        self.registers = memoryview(np.zeros(COLUMNS, np.uint64))
        self.stack = memoryview(np.zeros(DEPTH, np.uint64))
        self.big = False
        self.known = self.bias = self.address = self.operand = 0
        self.size = self.position = self.stop = self.start_position = self.depth = self.done = 0

    def start(
        self,
        number: cython.longlong,
        known: cython.ulonglong,
        cfa: cython.ulonglong,
        is_cfa: cython.bint,
        bias: cython.ulonglong,
    ) -> cython.int:
        """Evaluate: `_DONE`, `_MEMORY` (of `size` at `address`), `_UNKNOWN` (register `address`) or `_WRONG`."""
        if number < 0 or number >= self.first.shape[0]:
            return _WRONG
        self.position = self.start_position = cython.cast(cython.Py_ssize_t, self.first[number])
        self.stop = cython.cast(cython.Py_ssize_t, self.end[number])
        self.known = known
        self.bias = bias
        self.depth = 0
        self.done = 0
        if not is_cfa:
            # The rules of registers find the CFA on the stack.
            self.stack[0] = cfa
            self.depth = 1
        return self._run()

    def take(self, value: cython.ulonglong) -> cython.int:
        """Go on with the value that was loaded."""
        if self._push(value) != _ON:
            return _WRONG
        return self._run()

    def result(self) -> cython.ulonglong:
        """The value, after `_DONE`."""
        return self.stack[self.depth - 1]

    def _run(self) -> cython.int:
        code: cython.int
        status: cython.int
        while self.position < self.stop:
            self.done += 1
            if self.done > _MOST:
                return _WRONG
            code = self.bytes[self.position]
            self.position += 1
            status = _ON
            if code >= dw.DW_OP_LIT0 and code <= dw.DW_OP_LIT31:
                status = self._push(code - dw.DW_OP_LIT0)
            elif (code >= dw.DW_OP_BREG0 and code <= dw.DW_OP_BREG31) or code == dw.DW_OP_BREGX:
                status = self._register(code)
            elif code >= dw.DW_OP_CONST1U and code <= dw.DW_OP_CONST8S:
                status = self._fixed(1 << ((code - dw.DW_OP_CONST1U) >> 1), (code - dw.DW_OP_CONST1U) & 1)
                if status == _ON:
                    status = self._push(self.operand)
            elif code == dw.DW_OP_CONSTU or code == dw.DW_OP_CONSTS:
                status = self._leb(code == dw.DW_OP_CONSTS)
                if status == _ON:
                    status = self._push(self.operand)
            elif code == dw.DW_OP_ADDR:
                status = self._fixed(8, False)
                if status == _ON:
                    status = self._push((self.operand + self.bias) & _WORD)
            elif code == dw.DW_OP_PICK:
                status = self._pick()
            elif code == dw.DW_OP_BRA or code == dw.DW_OP_SKIP:
                status = self._branch(code)
            elif code == dw.DW_OP_NOP:
                pass
            elif not self.depth:
                return _WRONG
            elif code == dw.DW_OP_DEREF or code == dw.DW_OP_DEREF_SIZE:
                status = self._dereference(code)
            elif code == dw.DW_OP_DUP:
                status = self._push(self.stack[self.depth - 1])
            elif code == dw.DW_OP_DROP:
                self.depth -= 1
            elif code == dw.DW_OP_PLUS_UCONST:
                status = self._leb(False)
                if status == _ON:
                    self.stack[self.depth - 1] = (self.stack[self.depth - 1] + self.operand) & _WORD
            elif code == dw.DW_OP_ABS or code == dw.DW_OP_NEG or code == dw.DW_OP_NOT:
                status = self._unary(code)
            else:
                status = self._binary(code)
            if status != _ON:
                return status
        return _DONE if self.depth else _WRONG

    def _register(self, code: cython.int) -> cython.int:
        """Push a register with an offset."""
        register: cython.ulonglong = code - dw.DW_OP_BREG0
        if code == dw.DW_OP_BREGX:
            if self._leb(False) != _ON:
                return _WRONG
            register = self.operand
            if register > BEYOND + PC and register < BEYOND + COLUMNS:
                register -= BEYOND
            elif register >= PC:
                return _WRONG
        if self._leb(True) != _ON:
            return _WRONG
        if not (self.known >> register) & 1:
            self.address = register
            return _UNKNOWN
        return self._push((self.registers[cython.cast(cython.Py_ssize_t, register)] + self.operand) & _WORD)

    def _pick(self) -> cython.int:
        """Push the value that the operand says, counted from the top."""
        if self._fixed(1, False) != _ON or self.operand >= cython.cast(cython.ulonglong, self.depth):
            return _WRONG
        return self._push(self.stack[self.depth - 1 - cython.cast(cython.Py_ssize_t, self.operand)])

    def _dereference(self, code: cython.int) -> cython.int:
        """Ask for the value at the address on top."""
        self.size = 8
        if code == dw.DW_OP_DEREF_SIZE:
            if self._fixed(1, False) != _ON or self.operand < 1 or self.operand > 8:
                return _WRONG
            self.size = cython.cast(cython.int, self.operand)
        self.depth -= 1
        self.address = self.stack[self.depth]
        return _MEMORY

    def _unary(self, code: cython.int) -> cython.int:
        value: cython.ulonglong = self.stack[self.depth - 1]
        if code == dw.DW_OP_NOT:
            value = ~value & _WORD
        elif code == dw.DW_OP_NEG or value & _TOP:
            value = _negated(value)
        self.stack[self.depth - 1] = value
        return _ON

    def _binary(self, code: cython.int) -> cython.int:
        """Operations on the two values, or in one case three, on top."""
        top: cython.ulonglong
        under: cython.ulonglong
        value: cython.ulonglong
        if self.depth < 2:
            return _WRONG
        top = self.stack[self.depth - 1]
        under = self.stack[self.depth - 2]
        if code == dw.DW_OP_OVER:
            return self._push(under)
        if code == dw.DW_OP_SWAP or code == dw.DW_OP_ROT:
            return self._turn(1 if code == dw.DW_OP_SWAP else 2)
        if code == dw.DW_OP_AND:
            value = under & top
        elif code == dw.DW_OP_OR:
            value = under | top
        elif code == dw.DW_OP_XOR:
            value = under ^ top
        elif code == dw.DW_OP_PLUS:
            value = (under + top) & _WORD
        elif code == dw.DW_OP_MINUS:
            value = (under - top) & _WORD
        elif code == dw.DW_OP_MUL:
            value = (under * top) & _WORD
        elif code == dw.DW_OP_DIV or code == dw.DW_OP_MOD:
            if not top:
                return _WRONG
            value = _quotient(under, top) if code == dw.DW_OP_DIV else under % top
        elif code == dw.DW_OP_SHL:
            value = (under << top) & _WORD if top < 64 else 0
        elif code == dw.DW_OP_SHR:
            value = under >> top if top < 64 else 0
        elif code == dw.DW_OP_SHRA:
            value = _shifted(under, top)
        elif code >= dw.DW_OP_EQ and code <= dw.DW_OP_NE:
            value = _compared(code, under, top)
        else:
            return _WRONG
        self.depth -= 1
        self.stack[self.depth - 1] = value
        return _ON

    def _turn(self, count: cython.Py_ssize_t) -> cython.int:
        """Move the value on top below `count` others, which move up."""
        place: cython.Py_ssize_t
        top: cython.ulonglong = self.stack[self.depth - 1]
        if self.depth <= count:
            return _WRONG
        for place in range(self.depth - 1, self.depth - 1 - count, -1):
            self.stack[place] = self.stack[place - 1]
        self.stack[self.depth - 1 - count] = top
        return _ON

    def _branch(self, code: cython.int) -> cython.int:
        """Go as far as the operand, a signed number of 16 bits, says; DW_OP_bra only if the value on top is not 0."""
        target: cython.Py_ssize_t
        if self._fixed(2, True) != _ON:
            return _WRONG
        if code == dw.DW_OP_BRA:
            if not self.depth:
                return _WRONG
            self.depth -= 1
            if not self.stack[self.depth]:
                return _ON
        if self.operand & _TOP:
            target = self.position - cython.cast(cython.Py_ssize_t, _negated(self.operand))
        else:
            target = self.position + cython.cast(cython.Py_ssize_t, self.operand)
        if target < self.start_position or target > self.stop:
            return _WRONG
        self.position = target
        return _ON

    def _push(self, value: cython.ulonglong) -> cython.int:
        if self.depth >= _DEPTH:
            return _WRONG
        self.stack[self.depth] = value
        self.depth += 1
        return _ON

    def _fixed(self, size: cython.int, signed: cython.bint) -> cython.int:
        """A number of some bytes, in the byte order of the file."""
        i: cython.int
        value: cython.ulonglong = 0
        if self.position + size > self.stop:
            return _WRONG
        for i in range(size):
            if self.big:
                value = ((value << 8) & _WORD) | self.bytes[self.position + i]
            else:
                value |= cython.cast(cython.ulonglong, self.bytes[self.position + i]) << (8 * i)
        self.position += size
        if signed and size < 8 and (value >> (8 * size - 1)) & 1:
            value |= (_WORD << (8 * size)) & _WORD
        self.operand = value
        return _ON

    def _leb(self, signed: cython.bint) -> cython.int:
        """A LEB128 number; what is beyond 64 bits is lost."""
        value: cython.ulonglong
        behind: cython.Py_ssize_t
        value, behind = leb128(self.bytes, self.position, self.stop, signed)
        if behind < 0:
            return _WRONG
        self.operand = value
        self.position = behind
        return _ON
