"""DWARF expressions, evaluated (compiled).

All operations that make sense in call frame information (DWARF 5, section 2.5.1). The evaluator knows no memory: when
it needs some it stops, and goes on when it is given the value.
"""

import cython
import numpy as np

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_DEPTH = cython.declare(cython.Py_ssize_t, 64)
_MOST = cython.declare(cython.int, 10000)
"""Operations of one evaluation, which branches could make endless."""

# What evaluation comes to
_DONE = cython.declare(cython.int, 0)
_MEMORY = cython.declare(cython.int, 1)
_UNKNOWN = cython.declare(cython.int, 2)
_WRONG = cython.declare(cython.int, 3)
_ON = cython.declare(cython.int, 4)

_ADDR = cython.declare(cython.int, 0x03)
_DEREF = cython.declare(cython.int, 0x06)
_CONST1U = cython.declare(cython.int, 0x08)
_CONST8S = cython.declare(cython.int, 0x0F)
_CONSTU = cython.declare(cython.int, 0x10)
_CONSTS = cython.declare(cython.int, 0x11)
_DUP = cython.declare(cython.int, 0x12)
_DROP = cython.declare(cython.int, 0x13)
_OVER = cython.declare(cython.int, 0x14)
_PICK = cython.declare(cython.int, 0x15)
_SWAP = cython.declare(cython.int, 0x16)
_ROT = cython.declare(cython.int, 0x17)
_ABS = cython.declare(cython.int, 0x19)
_AND = cython.declare(cython.int, 0x1A)
_DIV = cython.declare(cython.int, 0x1B)
_MINUS = cython.declare(cython.int, 0x1C)
_MOD = cython.declare(cython.int, 0x1D)
_MUL = cython.declare(cython.int, 0x1E)
_NEG = cython.declare(cython.int, 0x1F)
_NOT = cython.declare(cython.int, 0x20)
_OR = cython.declare(cython.int, 0x21)
_PLUS = cython.declare(cython.int, 0x22)
_PLUS_UCONST = cython.declare(cython.int, 0x23)
_SHL = cython.declare(cython.int, 0x24)
_SHR = cython.declare(cython.int, 0x25)
_SHRA = cython.declare(cython.int, 0x26)
_XOR = cython.declare(cython.int, 0x27)
_BRA = cython.declare(cython.int, 0x28)
_EQ = cython.declare(cython.int, 0x29)
_GE = cython.declare(cython.int, 0x2A)
_GT = cython.declare(cython.int, 0x2B)
_LE = cython.declare(cython.int, 0x2C)
_LT = cython.declare(cython.int, 0x2D)
_NE = cython.declare(cython.int, 0x2E)
_SKIP = cython.declare(cython.int, 0x2F)
_LIT0 = cython.declare(cython.int, 0x30)
_LIT31 = cython.declare(cython.int, 0x4F)
_BREG0 = cython.declare(cython.int, 0x70)
_BREG31 = cython.declare(cython.int, 0x8F)
_BREGX = cython.declare(cython.int, 0x92)
_DEREF_SIZE = cython.declare(cython.int, 0x94)
_NOP = cython.declare(cython.int, 0x96)

_TOP = cython.declare(cython.ulonglong, 1 << 63)


@cython.final
@cython.cclass
class Expressions:
    """A pool of expressions and one evaluation."""

    def __init__(self, first, end, data):
        self.first = memoryview(first)
        self.end = memoryview(end)
        self.bytes = memoryview(data)
        self.registers = memoryview(np.zeros(33, np.uint64))
        self.stack = memoryview(np.zeros(64, np.uint64))
        self.big = False
        self.known = self.bias = self.address = self.operand = 0
        self.size = self.position = self.stop = self.start_position = self.depth = self.done = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def take(self, value: cython.ulonglong) -> cython.int:
        """Go on with the value that was loaded."""
        if self._push(value) != _ON:
            return _WRONG
        return self._run()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(1, check=True)
    def result(self) -> cython.ulonglong:
        """The value, after `_DONE`."""
        return self.stack[self.depth - 1]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _run(self) -> cython.int:
        code: cython.int
        status: cython.int
        value: cython.ulonglong
        register: cython.ulonglong
        while self.position < self.stop:
            self.done += 1
            if self.done > _MOST:
                return _WRONG
            code = self.bytes[self.position]
            self.position += 1
            status = _ON
            if code >= _LIT0 and code <= _LIT31:
                status = self._push(code - _LIT0)
            elif (code >= _BREG0 and code <= _BREG31) or code == _BREGX:
                register = code - _BREG0
                if code == _BREGX:
                    status = self._leb(False)
                    register = self.operand
                if status == _ON:
                    status = self._leb(True)
                if status != _ON or register > 31:
                    return _WRONG
                if not (self.known >> register) & 1:
                    self.address = register
                    return _UNKNOWN
                value = (self.registers[cython.cast(cython.Py_ssize_t, register)] + self.operand) & _WORD
                status = self._push(value)
            elif code >= _CONST1U and code <= _CONST8S:
                status = self._fixed(1 << ((code - _CONST1U) >> 1), (code - _CONST1U) & 1)
                if status == _ON:
                    status = self._push(self.operand)
            elif code == _CONSTU or code == _CONSTS:
                status = self._leb(code == _CONSTS)
                if status == _ON:
                    status = self._push(self.operand)
            elif code == _ADDR:
                status = self._fixed(8, False)
                if status == _ON:
                    status = self._push((self.operand + self.bias) & _WORD)
            elif code == _PICK:
                status = self._fixed(1, False)
                if status != _ON or self.operand >= cython.cast(cython.ulonglong, self.depth):
                    return _WRONG
                status = self._push(self.stack[self.depth - 1 - cython.cast(cython.Py_ssize_t, self.operand)])
            elif code == _BRA or code == _SKIP:
                status = self._fixed(2, True)
                if status != _ON:
                    return _WRONG
                if code == _BRA:
                    if not self.depth:
                        return _WRONG
                    self.depth -= 1
                    if not self.stack[self.depth]:
                        continue
                status = self._branch()
            elif code == _NOP:
                pass
            elif not self.depth:
                return _WRONG
            elif code == _DEREF or code == _DEREF_SIZE:
                self.size = 8
                if code == _DEREF_SIZE:
                    status = self._fixed(1, False)
                    if status != _ON or self.operand < 1 or self.operand > 8:
                        return _WRONG
                    self.size = cython.cast(cython.int, self.operand)
                self.depth -= 1
                self.address = self.stack[self.depth]
                return _MEMORY
            elif code == _DUP:
                status = self._push(self.stack[self.depth - 1])
            elif code == _DROP:
                self.depth -= 1
            elif code == _PLUS_UCONST:
                status = self._leb(False)
                if status == _ON:
                    self.stack[self.depth - 1] = (self.stack[self.depth - 1] + self.operand) & _WORD
            elif code == _ABS or code == _NEG or code == _NOT:
                status = self._unary(code)
            else:
                status = self._binary(code)
            if status != _ON:
                return _WRONG
        return _DONE if self.depth else _WRONG

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _unary(self, code: cython.int) -> cython.int:
        value: cython.ulonglong = self.stack[self.depth - 1]
        if code == _NOT:
            value = ~value & _WORD
        elif code == _NEG or value & _TOP:
            value = (~value + 1) & _WORD
        self.stack[self.depth - 1] = value
        return _ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _binary(self, code: cython.int) -> cython.int:
        """Operations on the two values, or in one case three, on top."""
        top: cython.ulonglong
        under: cython.ulonglong
        value: cython.ulonglong
        negative: cython.bint
        if self.depth < 2:
            return _WRONG
        top = self.stack[self.depth - 1]
        under = self.stack[self.depth - 2]
        if code == _OVER:
            return self._push(under)
        if code == _SWAP:
            self.stack[self.depth - 1] = under
            self.stack[self.depth - 2] = top
            return _ON
        if code == _ROT:
            if self.depth < 3:
                return _WRONG
            self.stack[self.depth - 1] = under
            self.stack[self.depth - 2] = self.stack[self.depth - 3]
            self.stack[self.depth - 3] = top
            return _ON
        if code == _AND:
            value = under & top
        elif code == _OR:
            value = under | top
        elif code == _XOR:
            value = under ^ top
        elif code == _PLUS:
            value = (under + top) & _WORD
        elif code == _MINUS:
            value = (under - top) & _WORD
        elif code == _MUL:
            value = (under * top) & _WORD
        elif code == _DIV:
            if not top:
                return _WRONG
            negative = (under ^ top) & _TOP != 0
            if under & _TOP:
                under = (~under + 1) & _WORD
            if top & _TOP:
                top = (~top + 1) & _WORD
            value = under // top
            if negative:
                value = (~value + 1) & _WORD
        elif code == _MOD:
            if not top:
                return _WRONG
            value = under % top
        elif code == _SHL:
            value = (under << top) & _WORD if top < 64 else 0
        elif code == _SHR:
            value = under >> top if top < 64 else 0
        elif code == _SHRA:
            value = 0
            if under & _TOP:
                value = _WORD
            if top < 64:
                # The sign comes in from above.
                value = (under >> top) | (value & ~(_WORD >> top) & _WORD)
        else:
            # Signed comparison is the unsigned one of values whose highest bit is turned around.
            under ^= _TOP
            top ^= _TOP
            if code == _EQ:
                value = under == top
            elif code == _GE:
                value = under >= top
            elif code == _GT:
                value = under > top
            elif code == _LE:
                value = under <= top
            elif code == _LT:
                value = under < top
            elif code == _NE:
                value = under != top
            else:
                return _WRONG
        self.depth -= 1
        self.stack[self.depth - 1] = value
        return _ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _branch(self) -> cython.int:
        """Go as far as the operand, a signed number of 16 bits, says."""
        target: cython.Py_ssize_t
        if self.operand & _TOP:
            target = self.position - cython.cast(cython.Py_ssize_t, (~self.operand + 1) & _WORD)
        else:
            target = self.position + cython.cast(cython.Py_ssize_t, self.operand)
        if target < self.start_position or target > self.stop:
            return _WRONG
        self.position = target
        return _ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _push(self, value: cython.ulonglong) -> cython.int:
        if self.depth >= _DEPTH:
            return _WRONG
        self.stack[self.depth] = value
        self.depth += 1
        return _ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _leb(self, signed: cython.bint) -> cython.int:
        """A LEB128 number; what is beyond 64 bits is lost."""
        shift: cython.int = 0
        byte: cython.ulonglong = 0x80
        value: cython.ulonglong = 0
        while byte & 0x80:
            if self.position >= self.stop:
                return _WRONG
            byte = self.bytes[self.position]
            self.position += 1
            if shift < 64:
                value |= ((byte & 0x7F) << shift) & _WORD
            shift += 7
        if signed and byte & 0x40 and shift < 64:
            value |= (_WORD << shift) & _WORD
        self.operand = value
        return _ON
