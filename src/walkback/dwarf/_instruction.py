"""The instructions of call frame information, read one by one (compiled).

DWARF 5, sections 6.4.2 and 7.24, with the extensions of GNU, MIPS and AArch64. What is read is one of a few actions,
with its factored operands worked out; who reads decides what to make of it.
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.cursor import Cursor, as_signed
    from cython.cimports.walkback.dwarf._entries import pointer
else:
    from walkback.cursor import Cursor, as_signed
    from walkback.dwarf._entries import pointer

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# Those of `rules.RuleKind`; a test holds them together.
_UNDEFINED = cython.declare(cython.int, 1)
_SAME_VALUE = cython.declare(cython.int, 2)
_REGISTER = cython.declare(cython.int, 3)
_AT_CFA = cython.declare(cython.int, 4)
_CFA = cython.declare(cython.int, 5)
_AT_EXPRESSION = cython.declare(cython.int, 6)
_EXPRESSION = cython.declare(cython.int, 7)

# Actions; those that read have the same numbers.
_NOTHING = cython.declare(cython.int, 0)
_ADVANCE = cython.declare(cython.int, 1)
_RULE = cython.declare(cython.int, 2)
_RESTORE = cython.declare(cython.int, 3)
_REMEMBER = cython.declare(cython.int, 4)
_RECALL = cython.declare(cython.int, 5)
_SET_CFA = cython.declare(cython.int, 6)
_CFA_REGISTER = cython.declare(cython.int, 7)
_CFA_OFFSET = cython.declare(cython.int, 8)
_CFA_EXPRESSION = cython.declare(cython.int, 9)
_SIGN = cython.declare(cython.int, 10)
_SIGN_WITH_PC = cython.declare(cython.int, 11)
_WRONG = cython.declare(cython.int, 12)
_INDIRECT = cython.declare(cython.int, 13)


@cython.final
@cython.cclass
class Instruction:
    """The instruction that was read last, and what its CIE says of all."""

    def __init__(self, address, text, got, is_aarch64):
        self.address = address
        self.text = text
        self.got = got
        self.is_aarch64 = is_aarch64

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def use(
        self,
        code_align: cython.ulonglong,
        data_align: cython.longlong,
        encoding: cython.int,
        address_size: cython.int,
    ) -> cython.int:
        """What the CIE says of factors and pointers."""
        self.code_align = code_align
        self.data_align = data_align
        self.encoding = encoding
        self.address_size = address_size
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read(self, cursor: Cursor, start: cython.ulonglong, location: cython.ulonglong) -> cython.int:
        """Read the next one, of a function that starts at an address, at a location in it; returns the action.

        There is a byte to read; whether the instruction was cut off, the cursor tells.
        """
        byte: cython.int = cursor.buffer[cursor.pos]
        cursor.pos += 1
        low: cython.ulonglong = byte & 0x3F
        if byte >= 0xC0:
            self.register = low
            return _RESTORE
        if byte >= 0x80:
            return self.rule(low, _AT_CFA, self.scaled(uleb(cursor)))
        if byte >= 0x40:
            return self.advance(low)
        if byte == 0x0E:  # def_cfa_offset
            self.operand = as_signed(uleb(cursor))
            return _CFA_OFFSET
        if byte == 0:
            return _NOTHING
        if byte == 0x02:  # advance_loc1
            return self.advance(cursor.fixed(1))
        if byte == 0x03:  # advance_loc2
            return self.advance(cursor.fixed(2))
        if byte == 0x04:  # advance_loc4
            return self.advance(cursor.fixed(4))
        if byte == 0x0A:
            return _REMEMBER
        if byte == 0x0B:
            return _RECALL
        if byte == 0x0C or byte == 0x12:  # def_cfa, def_cfa_sf
            self.register = uleb(cursor)
            self.operand = as_signed(uleb(cursor)) if byte == 0x0C else self.scaled(cursor.sleb())
            return _SET_CFA
        if byte == 0x0D:  # def_cfa_register
            self.register = uleb(cursor)
            return _CFA_REGISTER
        if byte == 0x13:  # def_cfa_offset_sf
            self.operand = self.scaled(cursor.sleb())
            return _CFA_OFFSET
        if byte == 0x0F:  # def_cfa_expression
            self.operand = cursor.pos
            skip(cursor, uleb(cursor))
            return _CFA_EXPRESSION
        if byte == 0x06:  # restore_extended
            self.register = uleb(cursor)
            return _RESTORE
        if byte == 0x01:  # set_loc
            if self.encoding & 0x80:
                return _INDIRECT
            self.delta = pointer(cursor, self.encoding, self.address_size, self.address, self.text, self.got, start)
            self.delta = (self.delta - start - location) & _WORD
            return _ADVANCE
        if byte == 0x1D:  # MIPS_advance_loc8
            return self.advance(cursor.fixed(8))
        if byte == 0x2D:  # GNU_window_save, which on AArch64 is negate_ra_state
            return _SIGN if self.is_aarch64 else _WRONG
        if byte == 0x2C:  # negate_ra_state_with_pc
            return _SIGN_WITH_PC if self.is_aarch64 else _WRONG
        if byte == 0x2E:  # GNU_args_size: for landing pads
            uleb(cursor)
            return _NOTHING
        return self.read_rule(cursor, byte)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_rule(self, cursor: Cursor, byte: cython.int) -> cython.int:
        """Those that begin with a register and give it a rule."""
        register: cython.ulonglong = 0
        factored: cython.ulonglong
        if 0x05 <= byte <= 0x16 or byte == 0x2F:
            register = uleb(cursor)
        if byte == 0x05:  # offset_extended
            return self.rule(register, _AT_CFA, self.scaled(uleb(cursor)))
        if byte == 0x2F:  # GNU_negative_offset_extended
            factored = uleb(cursor)
            return self.rule(register, _AT_CFA, self.scaled((-factored) & _WORD))
        if byte == 0x11:  # offset_extended_sf
            return self.rule(register, _AT_CFA, self.scaled(cursor.sleb()))
        if byte == 0x14:  # val_offset
            return self.rule(register, _CFA, self.scaled(uleb(cursor)))
        if byte == 0x15:  # val_offset_sf
            return self.rule(register, _CFA, self.scaled(cursor.sleb()))
        if byte == 0x10 or byte == 0x16:  # expression, val_expression
            self.rule(register, _AT_EXPRESSION if byte == 0x10 else _EXPRESSION, cursor.pos)
            skip(cursor, uleb(cursor))
            return _RULE
        if byte == 0x07:
            return self.rule(register, _UNDEFINED, 0)
        if byte == 0x08:
            return self.rule(register, _SAME_VALUE, 0)
        if byte == 0x09:  # register
            return self.rule(register, _REGISTER, as_signed(uleb(cursor)))
        return _WRONG

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def rule(self, register: cython.ulonglong, kind: cython.int, operand: cython.longlong) -> cython.int:
        """The rule of a register: of kind register the operand is the other's number."""
        self.register = register
        self.kind = kind
        self.operand = operand
        return _RULE

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def advance(self, factored: cython.ulonglong) -> cython.int:
        """The location moves on."""
        self.delta = (factored * self.code_align) & _WORD
        return _ADVANCE

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def scaled(self, factored: cython.ulonglong) -> cython.longlong:
        """An offset, from its factored form."""
        align: cython.ulonglong = cython.cast(cython.ulonglong, self.data_align & _WORD)
        return as_signed(((factored & _WORD) * align) & _WORD)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def uleb(cursor: Cursor) -> cython.ulonglong:
    """An unsigned LEB128 number; nearly all have one byte."""
    byte: cython.int
    if cursor.pos < cursor.end:
        byte = cursor.buffer[cursor.pos]
        if byte < 0x80:
            cursor.pos += 1
            return byte
    return cursor.uleb()


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def skip(cursor: Cursor, size: cython.ulonglong) -> cython.int:
    """Go past a block of bytes."""
    if size > cython.cast(cython.ulonglong, cursor.end - cursor.pos):
        cursor.failed = True
    else:
        cursor.pos += cython.cast(cython.Py_ssize_t, size)
    return 0
