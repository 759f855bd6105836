"""The instructions of call frame information, run to rows (compiled).

DWARF 5, section 6.4.2, with the extensions of GNU and AArch64. Only what walking needs is followed: the CFA, the return
address, the frame pointer and the stack pointer. Equal rules get equal numbers while they are made, as in
`walkback.base.intern`, so that a row is its offset and a number. How a rule is said in words stands in `rulewords`.
"""

import cython
import numpy as np

from walkback.base.arrays import longer
from walkback.base.bits import WORD
from walkback.base.intern import new_seeds
from walkback.base.views import takes_views
from walkback.dwarf.rulewords import LARGEST_OFFSET

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.base.intern import KeyTable
    from cython.cimports.walkback.base.mixing import folded
    from cython.cimports.walkback.dwarf import rulewords
    from cython.cimports.walkback.dwarf._instruction import ProgramReader
    from cython.cimports.walkback.dwarf.actions import Action
    from cython.cimports.walkback.dwarf.layout import EntryFault
    from cython.cimports.walkback.dwarf.rulewords import RuleKind
else:
    from walkback.base.cursor import as_signed
    from walkback.base.intern import KeyTable
    from walkback.base.mixing import folded
    from walkback.dwarf import rulewords
    from walkback.dwarf._instruction import ProgramReader
    from walkback.dwarf.actions import Action
    from walkback.dwarf.layout import EntryFault
    from walkback.dwarf.rulewords import RuleKind

_WORD = cython.declare(cython.ulonglong, WORD)
_LARGEST = cython.declare(cython.longlong, LARGEST_OFFSET)
_STATE_WORDS = cython.declare(cython.Py_ssize_t, 8)
_DEEPEST = cython.declare(cython.Py_ssize_t, 0x10000)
"""Remembered states: what is hostile must not fill the memory."""
_LAST_ROW = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.final
@cython.cclass
class Rules:
    """Numbers rules in the order in which they appear."""

    words: cython.ulonglong[:, ::1]
    table: KeyTable
    seeds: cython.ulonglong[::1]

    def __init__(self):
        self.table = KeyTable(256)
        self.seeds = new_seeds(rulewords.WORDS)
        self.words = memoryview(np.zeros((256, rulewords.WORDS), np.uint64))

    def all(self):
        """The words of every rule."""
        return np.asarray(self.words)[: self.table.count].copy()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def add(
        self,
        cfa: cython.ulonglong,
        ra: cython.ulonglong,
        fp: cython.ulonglong,
        sp: cython.ulonglong,
        flags: cython.ulonglong,
    ) -> cython.int:
        """The number of a rule."""
        key: cython.ulonglong = (
            (cfa * self.seeds[0]) ^ (ra * self.seeds[1]) ^ (fp * self.seeds[2]) ^ ((sp + flags) * self.seeds[3])
        ) & _WORD
        key = folded(key)
        number: cython.int = self.table.find(key)
        with cython.boundscheck(False):  # there are words for each number
            while number >= 0:
                if (
                    self.words[number, 0] == cfa
                    and self.words[number, 1] == ra
                    and self.words[number, 2] == fp
                    and self.words[number, 3] == sp
                    and self.words[number, 4] == flags
                ):
                    return number
                number = self.table.find_next(key)
        number = self.table.add(key)
        if number == self.words.shape[0]:
            self._grow()
        self.words[number, 0] = cfa
        self.words[number, 1] = ra
        self.words[number, 2] = fp
        self.words[number, 3] = sp
        self.words[number, 4] = flags
        return number

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1, check=False)
    def _grow(self) -> cython.int:
        """Make room; apart from `add`, which would otherwise take the interpreter's lock each time."""
        self.words = memoryview(longer(np.asarray(self.words), 2 * self.words.shape[0]))
        return 0


@cython.final
@cython.cclass
class State:
    """What holds at one place of a program, and the states that it remembers."""

    rules: Rules
    row_offset: cython.uint[::1]
    row_rule: cython.uint[::1]
    row_touched: cython.uchar[::1]
    rows: cython.Py_ssize_t
    fp_register: cython.ulonglong
    sp_register: cython.ulonglong
    ra_register: cython.ulonglong
    # What holds now
    cfa_kind: cython.ulonglong
    cfa_register: cython.ulonglong
    cfa_offset: cython.longlong
    cfa_expression: cython.longlong
    ra: cython.ulonglong
    fp: cython.ulonglong
    sp: cython.ulonglong
    flags: cython.ulonglong
    touched: cython.bint
    # What the CIE left behind, for DW_CFA_restore
    initial_ra: cython.ulonglong
    initial_fp: cython.ulonglong
    initial_sp: cython.ulonglong
    remembered: cython.ulonglong[:, ::1]
    depth: cython.Py_ssize_t

    def __init__(self, row_offset, row_rule, row_touched, sp, fp):
        self.rules = Rules()
        self.row_offset = memoryview(row_offset)
        self.row_rule = memoryview(row_rule)
        self.row_touched = memoryview(row_touched)
        self.rows = 0
        self.sp_register = sp
        self.fp_register = fp
        self.ra_register = _WORD  # which no register is
        self.remembered = memoryview(np.zeros((16, _STATE_WORDS), np.uint64))
        self.depth = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def clear(self) -> cython.int:
        """Before a CIE: nothing is known."""
        self.cfa_kind = RuleKind.UNSPECIFIED
        self.cfa_register = 0
        self.cfa_offset = 0
        self.cfa_expression = 0
        self.ra = self.fp = self.sp = self.flags = 0
        self.initial_ra = self.initial_fp = self.initial_sp = 0
        self.touched = False
        self.depth = 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def set(self, register: cython.ulonglong, word: cython.ulonglong) -> cython.int:
        """Give a register its rule; of one that is not followed nothing is kept."""
        # The column of the return address can be that of the frame pointer.
        if register == self.ra_register:
            self.ra = word
            self.touched = True
        if register == self.fp_register:
            self.fp = word
            self.touched = True
        elif register == self.sp_register:
            self.sp = word
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def restore(self, register: cython.ulonglong) -> cython.int:
        """Give a register the rule that the CIE gave it."""
        if register == self.ra_register:
            self.set(register, self.initial_ra)
        elif register == self.fp_register:
            self.set(register, self.initial_fp)
        elif register == self.sp_register:
            self.set(register, self.initial_sp)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def remember(self) -> cython.int:
        if self.depth == self.remembered.shape[0]:
            self._grow()
        self.remembered[self.depth, 0] = self.cfa_kind
        self.remembered[self.depth, 1] = self.cfa_register
        self.remembered[self.depth, 2] = cython.cast(cython.ulonglong, self.cfa_offset & _WORD)
        self.remembered[self.depth, 3] = self.ra
        self.remembered[self.depth, 4] = self.fp
        self.remembered[self.depth, 5] = self.sp
        self.remembered[self.depth, 6] = self.flags
        self.remembered[self.depth, 7] = cython.cast(cython.ulonglong, self.cfa_expression)
        self.depth += 1
        return 0

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1, check=False)
    def _grow(self) -> cython.int:
        """Make room for more states."""
        self.remembered = memoryview(longer(np.asarray(self.remembered), 2 * self.depth))
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def recall(self) -> cython.int:
        self.depth -= 1
        self.cfa_kind = self.remembered[self.depth, 0]
        self.cfa_register = self.remembered[self.depth, 1]
        self.cfa_offset = as_signed(self.remembered[self.depth, 2])
        self.ra = self.remembered[self.depth, 3]
        self.fp = self.remembered[self.depth, 4]
        self.sp = self.remembered[self.depth, 5]
        self.flags = self.remembered[self.depth, 6]
        self.cfa_expression = as_signed(self.remembered[self.depth, 7])
        self.touched = True
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def emit(self, location: cython.ulonglong) -> cython.int:
        """End the row that began at a location."""
        cfa: cython.ulonglong = word(self.cfa_kind, self.cfa_register, self.cfa_offset)
        if self.cfa_kind == RuleKind.EXPRESSION:
            cfa = word(RuleKind.EXPRESSION, 0, self.cfa_expression)
        self.row_offset[self.rows] = cython.cast(cython.uint, location)
        self.row_rule[self.rows] = self.rules.add(cfa, self.ra, self.fp, self.sp, self.flags)
        self.row_touched[self.rows] = self.touched
        self.rows += 1
        self.touched = False
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def run(self, reader: ProgramReader, is_fde: cython.bint) -> cython.int:
        """Run a program; returns a fault or 0. In an FDE every place where the location moves on ends a row."""
        location: cython.ulonglong = 0
        while reader.cursor.pos < reader.cursor.end:
            action: cython.int = reader.read(location)
            if reader.cursor.failed:
                return EntryFault.INSTRUCTION
            if action == Action.ADVANCE:
                if reader.delta and is_fde:
                    if reader.delta > _LAST_ROW or location + reader.delta > _LAST_ROW:
                        return EntryFault.LOCATION
                    self.emit(location)
                    location += reader.delta
            elif action == Action.RULE:
                self.set(reader.register, _word_of(reader))
            elif action == Action.CFA_OFFSET:
                self.cfa_offset = reader.operand
                self.touched = True
            elif action == Action.RESTORE:
                self.restore(reader.register)
            elif action == Action.SET_CFA or action == Action.CFA_REGISTER:
                self.cfa_kind = RuleKind.REGISTER
                self.cfa_register = reader.register
                if action == Action.SET_CFA:
                    self.cfa_offset = reader.operand
                self.touched = True
            elif action == Action.CFA_EXPRESSION:
                # Register and offset stay: an instruction that changes one of them goes on from the other.
                self.cfa_kind = RuleKind.EXPRESSION
                self.cfa_expression = reader.operand
                self.touched = True
            elif action == Action.REMEMBER:
                if self.depth >= _DEEPEST:
                    return EntryFault.INSTRUCTION
                self.remember()
            elif action == Action.RECALL:
                if not self.depth:
                    return EntryFault.RESTORE
                self.recall()
            elif action == Action.SIGN:
                self.flags = (self.flags ^ rulewords.FLAG_SIGNED) & ~rulewords.FLAG_SIGNED_WITH_PC & _WORD
                self.touched = True
            elif action == Action.SIGN_WITH_PC:
                self.flags = (self.flags ^ rulewords.FLAG_SIGNED) | rulewords.FLAG_SIGNED_WITH_PC
                self.touched = True
            elif action == Action.INDIRECT:
                return EntryFault.INDIRECT
            elif action == Action.WRONG:
                return EntryFault.INSTRUCTION
        if is_fde:
            self.emit(location)
        return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word_of(reader: ProgramReader) -> cython.ulonglong:
    """The rule that an instruction gives to a register."""
    kind: cython.ulonglong = cython.cast(cython.ulonglong, reader.kind)
    if kind == RuleKind.REGISTER:
        return word(kind, cython.cast(cython.ulonglong, reader.operand & _WORD), 0)
    return word(kind, 0, reader.operand)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def word(kind: cython.ulonglong, register: cython.ulonglong, offset: cython.longlong) -> cython.ulonglong:
    """One rule of one register, in 64 bits."""
    if register > rulewords.REGISTER_MASK or offset > _LARGEST or offset < -_LARGEST:
        return RuleKind.TOO_LARGE
    stored: cython.ulonglong = cython.cast(cython.ulonglong, offset & _WORD)
    return kind | (register << rulewords.REGISTER_SHIFT) | ((stored << rulewords.OFFSET_SHIFT) & _WORD)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _column(register: cython.ulonglong) -> cython.ulonglong:
    """The column of the return address as part of the flags: with another column a rule means something else."""
    if register > rulewords.NO_COLUMN:
        register = rulewords.NO_COLUMN
    return register << rulewords.RA_COLUMN_SHIFT


def interpret(reader, cies, fdes, sp, fp):
    """Run all programs: (rows of each FDE, offset, rule number and touched mark of each row, words of each rule).

    Faults are put into the columns of CIEs and FDEs; of a program with a fault the rows before it are there. A row is
    touched if an instruction set something that is followed; GNU as makes rows only of such.
    """
    # A row needs an instruction, or an FDE; one with a fault has none.
    most = int(np.maximum(fdes.end - fdes.program, 0)[fdes.fault == 0].sum()) + len(fdes)
    row_offset, row_rule = np.empty(most, np.uint32), np.empty(most, np.uint32)
    row_touched = np.empty(most, np.uint8)
    rows = np.zeros(len(fdes), np.int64)
    state = State(row_offset, row_rule, row_touched, sp, fp)
    total = _interpret(state, reader, np.zeros((len(cies), _STATE_WORDS), np.uint64), rows)
    return rows, row_offset[:total], row_rule[:total], row_touched[:total], state.rules.all()


@takes_views
def _interpret(state: State, reader: ProgramReader, states: cython.ulonglong[:, ::1], rows: cython.longlong[::1]):
    c: cython.Py_ssize_t
    f: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for c in range(states.shape[0]):
            if reader.cie_fault[c]:
                continue
            state.clear()
            reader.open_cie(c)
            state.ra_register = reader.ra_column
            state.flags = _column(reader.ra_column)
            reader.cie_fault[c] = state.run(reader, False)
            state.remember()
            for i in range(_STATE_WORDS):
                states[c, i] = state.remembered[state.depth - 1, i]
        for f in range(rows.shape[0]):
            first: cython.Py_ssize_t = state.rows
            if reader.fde_fault[f]:
                continue
            c = reader.cie[f]
            if reader.cie_fault[c]:
                reader.fde_fault[f] = EntryFault.CIE_FAULT
                continue
            state.depth = 1
            for i in range(_STATE_WORDS):
                state.remembered[0, i] = states[c, i]
            state.recall()
            state.initial_ra = state.ra
            state.initial_fp = state.fp
            state.initial_sp = state.sp
            reader.open_fde(f)
            state.ra_register = reader.ra_column
            # What the CIE says of nothing that is followed makes no row by itself.
            state.touched = state.cfa_kind != RuleKind.UNSPECIFIED or state.ra != 0 or state.fp != 0
            reader.fde_fault[f] = state.run(reader, True)
            rows[f] = state.rows - first
    return state.rows
