"""The instructions of call frame information, read one by one (compiled; `_instruction.pxd` has the C types).

DWARF 5, sections 6.4.2 and 7.24, with the extensions of GNU, MIPS and AArch64. What is read is one of a few actions,
with its factored operands worked out; who reads decides what to make of it.
"""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor, as_signed
    from cython.cimports.walkback.base.leb128 import MORE
    from cython.cimports.walkback.dwarf import layout
    from cython.cimports.walkback.dwarf._entries import pointer
    from cython.cimports.walkback.dwarf.actions import Action
    from cython.cimports.walkback.dwarf.rulewords import RuleKind
else:
    from walkback.base.cursor import Cursor, as_signed
    from walkback.base.leb128 import MORE
    from walkback.dwarf import layout
    from walkback.dwarf._entries import pointer
    from walkback.dwarf.actions import Action
    from walkback.dwarf.rulewords import RuleKind

_WORD = cython.declare(cython.ulonglong, WORD)


@cython.final
@cython.cclass
class ProgramReader:
    """The programs of a section, the instruction that was read last, and what its CIE says of all."""

    def __init__(self, data, big, address, text, got, is_aarch64, cies, fdes):
        self.cursor = Cursor(data, big)
        self.address = address
        self.text = text
        self.got = got
        self.is_aarch64 = is_aarch64
        self.cie_program = memoryview(cies.program)
        self.cie_end = memoryview(cies.end)
        self.cie_code_align = memoryview(cies.code_align)
        self.cie_data_align = memoryview(cies.data_align)
        self.cie_ra_column = memoryview(cies.ra_column)
        self.cie_encoding = memoryview(cies.fde_encoding)
        self.cie_address_size = memoryview(cies.address_size)
        self.cie_fault = memoryview(cies.fault)
        self.cie = memoryview(fdes.cie)
        self.fde_start = memoryview(fdes.start)
        self.fde_program = memoryview(fdes.program)
        self.fde_end = memoryview(fdes.end)
        self.fde_fault = memoryview(fdes.fault)

    def open_cie(self, cie: cython.Py_ssize_t) -> cython.int:
        """Go to the beginning of a CIE's program."""
        self.use(cie)
        self.start = 0
        self.cursor.move(self.cie_program[cie], self.cie_end[cie])
        return 0

    def open_fde(self, fde: cython.Py_ssize_t) -> cython.int:
        """Go to the beginning of an FDE's program."""
        self.use(self.cie[fde])
        self.start = self.fde_start[fde]
        self.cursor.move(self.fde_program[fde], self.fde_end[fde])
        return 0

    def use(self, cie: cython.Py_ssize_t) -> cython.int:
        """What a CIE says of factors, pointers and the return address."""
        self.code_align = self.cie_code_align[cie]
        self.data_align = self.cie_data_align[cie]
        self.encoding = self.cie_encoding[cie]
        self.address_size = self.cie_address_size[cie]
        self.ra_column = self.cie_ra_column[cie]
        return 0

    def read(self, location: cython.ulonglong) -> cython.int:
        """Read the next instruction, at a location in the function; returns the action.

        There is a byte to read; the cursor knows whether the instruction was cut off.
        """
        with cython.boundscheck(False):
            byte: cython.int = self.cursor.buffer[self.cursor.pos]
        self.cursor.pos += 1
        low: cython.ulonglong = byte & layout.DW_CFA_LOW_MASK
        if byte >= layout.DW_CFA_RESTORE:
            self.register = low
            return Action.RESTORE
        if byte >= layout.DW_CFA_OFFSET:
            return self.rule(low, RuleKind.AT_CFA, self.scaled(self.uleb()))
        if byte >= layout.DW_CFA_ADVANCE_LOC:
            return self.advance(low)
        if byte == layout.DW_CFA_DEF_CFA_OFFSET:
            self.operand = as_signed(self.uleb())
            return Action.CFA_OFFSET
        if byte == layout.DW_CFA_NOP:
            return Action.NOTHING
        if byte == layout.DW_CFA_ADVANCE_LOC1:
            return self.advance(self.cursor.fixed(1))
        if byte == layout.DW_CFA_ADVANCE_LOC2:
            return self.advance(self.cursor.fixed(2))
        if byte == layout.DW_CFA_ADVANCE_LOC4:
            return self.advance(self.cursor.fixed(4))
        if byte == layout.DW_CFA_REMEMBER_STATE:
            return Action.REMEMBER
        if byte == layout.DW_CFA_RESTORE_STATE:
            return Action.RECALL
        if byte == layout.DW_CFA_DEF_CFA or byte == layout.DW_CFA_DEF_CFA_SF:
            self.register = self.uleb()
            is_plain: cython.bint = byte == layout.DW_CFA_DEF_CFA
            self.operand = as_signed(self.uleb()) if is_plain else self.scaled(self.cursor.sleb())
            return Action.SET_CFA
        if byte == layout.DW_CFA_DEF_CFA_REGISTER:
            self.register = self.uleb()
            return Action.CFA_REGISTER
        if byte == layout.DW_CFA_DEF_CFA_OFFSET_SF:
            self.operand = self.scaled(self.cursor.sleb())
            return Action.CFA_OFFSET
        if byte == layout.DW_CFA_DEF_CFA_EXPRESSION:
            self.operand = self.cursor.pos
            self.skip_block()
            return Action.CFA_EXPRESSION
        if byte == layout.DW_CFA_RESTORE_EXTENDED:
            self.register = self.uleb()
            return Action.RESTORE
        if byte == layout.DW_CFA_SET_LOC:
            return self.set_location(location)
        if byte >= layout.DW_CFA_LO_USER:
            return self.read_extension(byte)
        return self.read_rule(byte)

    def set_location(self, location: cython.ulonglong) -> cython.int:
        """The location becomes that of the pointer that stands here."""
        if self.encoding & layout.DW_EH_PE_INDIRECT:
            return Action.INDIRECT
        place: cython.ulonglong = pointer(
            self.cursor, self.encoding, self.address_size, self.address, self.text, self.got, self.start
        )
        self.delta = (place - self.start - location) & _WORD
        return Action.ADVANCE

    def read_extension(self, byte: cython.int) -> cython.int:
        """Those that DWARF leaves to machines and vendors."""
        if byte == layout.DW_CFA_MIPS_ADVANCE_LOC8:
            return self.advance(self.cursor.fixed(8))
        if byte == layout.DW_CFA_AARCH64_NEGATE_RA_STATE:
            return Action.SIGN if self.is_aarch64 else Action.WRONG
        if byte == layout.DW_CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
            return Action.SIGN_WITH_PC if self.is_aarch64 else Action.WRONG
        if byte == layout.DW_CFA_GNU_ARGS_SIZE:  # for landing pads: `_landings` reads the operand
            self.operand = as_signed(self.uleb())
            return Action.NOTHING
        if byte == layout.DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
            register: cython.ulonglong = self.uleb()
            factored: cython.ulonglong = self.uleb()
            return self.rule(register, RuleKind.AT_CFA, self.scaled((-factored) & _WORD))
        return Action.WRONG

    def read_rule(self, byte: cython.int) -> cython.int:
        """Those that begin with a register and give it a rule."""
        register: cython.ulonglong = 0
        if layout.DW_CFA_OFFSET_EXTENDED <= byte <= layout.DW_CFA_VAL_EXPRESSION:
            register = self.uleb()
        if byte == layout.DW_CFA_OFFSET_EXTENDED:
            return self.rule(register, RuleKind.AT_CFA, self.scaled(self.uleb()))
        if byte == layout.DW_CFA_OFFSET_EXTENDED_SF:
            return self.rule(register, RuleKind.AT_CFA, self.scaled(self.cursor.sleb()))
        if byte == layout.DW_CFA_VAL_OFFSET:
            return self.rule(register, RuleKind.CFA, self.scaled(self.uleb()))
        if byte == layout.DW_CFA_VAL_OFFSET_SF:
            return self.rule(register, RuleKind.CFA, self.scaled(self.cursor.sleb()))
        if byte == layout.DW_CFA_EXPRESSION or byte == layout.DW_CFA_VAL_EXPRESSION:
            is_place: cython.bint = byte == layout.DW_CFA_EXPRESSION
            self.rule(register, RuleKind.AT_EXPRESSION if is_place else RuleKind.EXPRESSION, self.cursor.pos)
            self.skip_block()
            return Action.RULE
        if byte == layout.DW_CFA_UNDEFINED:
            return self.rule(register, RuleKind.UNDEFINED, 0)
        if byte == layout.DW_CFA_SAME_VALUE:
            return self.rule(register, RuleKind.SAME_VALUE, 0)
        if byte == layout.DW_CFA_REGISTER:
            return self.rule(register, RuleKind.REGISTER, as_signed(self.uleb()))
        return Action.WRONG

    def rule(self, register: cython.ulonglong, kind: cython.int, operand: cython.longlong) -> cython.int:
        """The rule of a register: of kind register the operand is the other's number."""
        self.register = register
        self.kind = kind
        self.operand = operand
        return Action.RULE

    def advance(self, factored: cython.ulonglong) -> cython.int:
        """The location moves on."""
        self.delta = (factored * self.code_align) & _WORD
        return Action.ADVANCE

    def scaled(self, factored: cython.ulonglong) -> cython.longlong:
        """An offset, from its factored form."""
        align: cython.ulonglong = cython.cast(cython.ulonglong, self.data_align & _WORD)
        return as_signed(((factored & _WORD) * align) & _WORD)

    def uleb(self) -> cython.ulonglong:
        """An unsigned LEB128 number; nearly all have one byte."""
        if self.cursor.pos < self.cursor.end:
            with cython.boundscheck(False):
                byte: cython.int = self.cursor.buffer[self.cursor.pos]
            if byte < MORE:  # it is the only one
                self.cursor.pos += 1
                return byte
        return self.cursor.uleb()

    def skip_block(self) -> cython.int:
        """Skip a block of bytes and the size in front of it."""
        size: cython.ulonglong = self.uleb()
        if size > cython.cast(cython.ulonglong, self.cursor.end - self.cursor.pos):
            self.cursor.failed = True
        else:
            self.cursor.pos += cython.cast(cython.Py_ssize_t, size)
        return 0
