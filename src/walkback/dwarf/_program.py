"""The instructions of call frame information, run to rows (compiled).

DWARF 5, section 6.4.2, with the extensions of GNU and AArch64. Only what walking needs is followed: the CFA, the return
address, the frame pointer and the stack pointer. Equal rules get equal numbers while they are made, as in
`walkback.intern`, so that a row is its offset and a number.

A rule is five words: CFA, return address, frame pointer, stack pointer, flags. A word is a kind (4 bits, `RuleKind`), a
register (16 bits) and a signed offset (44 bits); of an expression the offset is its position.
"""

import os

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.cursor import Cursor, as_signed
    from cython.cimports.walkback.dwarf._instruction import Instruction
else:
    from walkback.cursor import Cursor, as_signed
    from walkback.dwarf._instruction import Instruction

WORDS = 5

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_OFFSET_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFF)
_LARGEST = cython.declare(cython.longlong, 0x7FFFFFFFFFF)
_DEEPEST = cython.declare(cython.Py_ssize_t, 0x10000)
"""Remembered states: what is hostile must not fill the memory."""
_LAST_ROW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_NOWHERE = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# Those of `rules.RuleKind`; a test holds them together.
_UNSPECIFIED = cython.declare(cython.ulonglong, 0)
_REGISTER = cython.declare(cython.ulonglong, 3)
_EXPRESSION = cython.declare(cython.ulonglong, 7)
_TOO_LARGE = cython.declare(cython.ulonglong, 8)

_STATE_WORDS = cython.declare(cython.Py_ssize_t, 8)
# Those of `_instruction`.
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
_SET_LOC_INDIRECT = cython.declare(cython.int, 13)

_SIGNED = cython.declare(cython.ulonglong, 1)
_SIGNED_WITH_PC = cython.declare(cython.ulonglong, 2)

# Those of `layout.Fault`.
_CIE_FAULT = cython.declare(cython.int, 6)
_INSTRUCTION = cython.declare(cython.int, 8)
_NOT_REMEMBERED = cython.declare(cython.int, 9)
_LOCATION = cython.declare(cython.int, 10)
_INDIRECT = cython.declare(cython.int, 12)

_SEEDS = [int.from_bytes(os.urandom(8), "little") | 1 for _ in range(WORDS)]


@cython.final
@cython.cclass
class Rules:
    """Numbers rules in the order in which they appear; the hash is seeded anew in each process."""

    words: cython.ulonglong[:, ::1]
    slots: cython.int[::1]
    seeds: cython.ulonglong[::1]
    count: cython.Py_ssize_t
    mask: cython.Py_ssize_t
    shift: cython.int

    def __init__(self):
        self.count = 0
        self.seeds = memoryview(np.array(_SEEDS, np.uint64))
        self.words = memoryview(np.zeros((256, WORDS), np.uint64))
        self._spread()

    def all(self):
        """The words of every rule."""
        return np.asarray(self.words)[: self.count].copy()

    @cython.cfunc
    def _spread(self) -> cython.int:
        """Give every rule its slot, with four times as many slots as rules have room."""
        number: cython.Py_ssize_t
        slots = 4 * self.words.shape[0]
        self.slots = memoryview(np.full(slots, -1, np.int32))
        self.mask = slots - 1
        self.shift = 64 - self.mask.bit_length()
        for number in range(self.count):
            self.slots[self._free_slot(number)] = number
        return 0

    @cython.cfunc
    def _free_slot(self, number: cython.Py_ssize_t) -> cython.Py_ssize_t:
        slot: cython.Py_ssize_t = self._slot(
            self.words[number, 0],
            self.words[number, 1],
            self.words[number, 2],
            self.words[number, 3],
            self.words[number, 4],
        )
        while self.slots[slot] >= 0:
            slot = (slot + 1) & self.mask
        return slot

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _slot(
        self,
        cfa: cython.ulonglong,
        ra: cython.ulonglong,
        fp: cython.ulonglong,
        sp: cython.ulonglong,
        flags: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        key: cython.ulonglong = (
            (cfa * self.seeds[0]) ^ (ra * self.seeds[1]) ^ (fp * self.seeds[2]) ^ ((sp + flags) * self.seeds[3])
        ) & _WORD
        key ^= key >> 29
        return cython.cast(cython.Py_ssize_t, ((key * self.seeds[4]) & _WORD) >> self.shift)

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
        slot: cython.Py_ssize_t = self._slot(cfa, ra, fp, sp, flags)
        number: cython.int = self.slots[slot]
        while number >= 0:
            if (
                self.words[number, 0] == cfa
                and self.words[number, 1] == ra
                and self.words[number, 2] == fp
                and self.words[number, 3] == sp
                and self.words[number, 4] == flags
            ):
                return number
            slot = (slot + 1) & self.mask
            number = self.slots[slot]
        number = cython.cast(cython.int, self.count)
        self.words[number, 0] = cfa
        self.words[number, 1] = ra
        self.words[number, 2] = fp
        self.words[number, 3] = sp
        self.words[number, 4] = flags
        self.slots[slot] = number
        self.count += 1
        if self.count == self.words.shape[0]:
            self._grow()
        return number

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1, check=False)
    def _grow(self) -> cython.int:
        """Make room; apart from `add`, which would otherwise take the interpreter's lock each time."""
        more = np.zeros((2 * self.count, WORDS), np.uint64)
        more[: self.count] = np.asarray(self.words)
        self.words = memoryview(more)
        self._spread()
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
        self.ra_register = _NOWHERE
        self.remembered = memoryview(np.zeros((16, _STATE_WORDS), np.uint64))
        self.depth = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def clear(self) -> cython.int:
        """Before a CIE: nothing is known."""
        self.cfa_kind = _UNSPECIFIED
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
        more = np.zeros((2 * self.depth, _STATE_WORDS), np.uint64)
        more[: self.depth] = np.asarray(self.remembered)
        self.remembered = memoryview(more)
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
        cfa: cython.ulonglong
        if self.cfa_kind == _EXPRESSION:
            cfa = word(_EXPRESSION, 0, self.cfa_expression)
        else:
            cfa = word(self.cfa_kind, self.cfa_register, self.cfa_offset)
        self.row_offset[self.rows] = cython.cast(cython.uint, location)
        self.row_rule[self.rows] = self.rules.add(cfa, self.ra, self.fp, self.sp, self.flags)
        self.row_touched[self.rows] = self.touched
        self.rows += 1
        self.touched = False
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def run(
        self,
        instruction: Instruction,
        cursor: Cursor,
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        start: cython.ulonglong,
        is_fde: cython.bint,
    ) -> cython.int:
        """Run a program; returns a fault or 0. In an FDE every place where the location moves on ends a row."""
        location: cython.ulonglong = 0
        action: cython.int
        cursor.move(begin, end)
        while cursor.pos < cursor.end:
            action = instruction.read(cursor, start, location)
            if cursor.failed:
                return _INSTRUCTION
            if action == _ADVANCE:
                if instruction.delta and is_fde:
                    if instruction.delta > _LAST_ROW or location + instruction.delta > _LAST_ROW:
                        return _LOCATION
                    self.emit(location)
                    location += instruction.delta
            elif action == _RULE:
                self.set(instruction.register, _word_of(instruction))
            elif action == _CFA_OFFSET:
                self.cfa_offset = instruction.operand
                self.touched = True
            elif action == _RESTORE:
                self.restore(instruction.register)
            elif action == _SET_CFA or action == _CFA_REGISTER:
                self.cfa_kind = _REGISTER
                self.cfa_register = instruction.register
                if action == _SET_CFA:
                    self.cfa_offset = instruction.operand
                self.touched = True
            elif action == _CFA_EXPRESSION:
                # Register and offset stay: an instruction that changes one of them goes on from the other.
                self.cfa_kind = _EXPRESSION
                self.cfa_expression = instruction.operand
                self.touched = True
            elif action == _REMEMBER:
                if self.depth >= _DEEPEST:
                    return _INSTRUCTION
                self.remember()
            elif action == _RECALL:
                if not self.depth:
                    return _NOT_REMEMBERED
                self.recall()
            elif action == _SIGN:
                self.flags = (self.flags ^ _SIGNED) & ~_SIGNED_WITH_PC & _WORD
                self.touched = True
            elif action == _SIGN_WITH_PC:
                self.flags = (self.flags ^ _SIGNED) | _SIGNED_WITH_PC
                self.touched = True
            elif action == _SET_LOC_INDIRECT:
                return _INDIRECT
            elif action == _WRONG:
                return _INSTRUCTION
        if is_fde:
            self.emit(location)
        return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word_of(instruction: Instruction) -> cython.ulonglong:
    """The rule that an instruction gives to a register."""
    kind: cython.ulonglong = cython.cast(cython.ulonglong, instruction.kind)
    if kind == _REGISTER:
        return word(kind, cython.cast(cython.ulonglong, instruction.operand & _WORD), 0)
    return word(kind, 0, instruction.operand)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def word(kind: cython.ulonglong, register: cython.ulonglong, offset: cython.longlong) -> cython.ulonglong:
    """One rule of one register, in 64 bits."""
    if register > 0xFFFF or offset > _LARGEST or offset < -_LARGEST:
        return _TOO_LARGE
    return kind | (register << 4) | ((cython.cast(cython.ulonglong, offset & _WORD) & _OFFSET_MASK) << 20)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _column(register: cython.ulonglong) -> cython.ulonglong:
    """The column of the return address as part of the flags: with another column a rule means something else."""
    if register > 0xFFFF:
        return 0xFFFF00
    return register << 8


def interpret(buffer, big, address, text, got, cies, fdes, machine, is_aarch64):
    """Run all programs: (rows of each FDE, offset, rule number and touched mark of each row, words of each rule).

    Faults are put into the columns of CIEs and FDEs; of a program with a fault the rows before it are there. A row is
    touched if an instruction set something that is followed; GNU as makes rows only of such.
    """
    # A row needs an instruction, or an FDE; one with a fault has none.
    most = int(np.maximum(fdes.end - fdes.program, 0)[fdes.fault == 0].sum()) + len(fdes)
    row_offset = np.empty(most, np.uint32)
    row_rule = np.empty(most, np.uint32)
    row_touched = np.empty(most, np.uint8)
    rows = np.zeros(len(fdes), np.int64)
    state = State(row_offset, row_rule, row_touched, machine.sp, machine.fp)
    total = _interpret(
        state,
        Instruction(address, text, got, is_aarch64),
        Cursor(buffer, big),
        memoryview(np.zeros((len(cies), _STATE_WORDS), np.uint64)),
        memoryview(cies.program),
        memoryview(cies.end),
        memoryview(cies.code_align),
        memoryview(cies.data_align),
        memoryview(cies.ra_column),
        memoryview(cies.fde_encoding),
        memoryview(cies.address_size),
        memoryview(cies.fault),
        memoryview(fdes.cie),
        memoryview(fdes.start),
        memoryview(fdes.program),
        memoryview(fdes.end),
        memoryview(fdes.fault),
        memoryview(rows),
    )
    return rows, row_offset[:total], row_rule[:total], row_touched[:total], state.rules.all()


@cython.cfunc
def _interpret(
    state: State,
    instruction: Instruction,
    cursor: Cursor,
    states: cython.ulonglong[:, ::1],
    cie_program: cython.const[cython.longlong][::1],
    cie_end: cython.const[cython.longlong][::1],
    code_align: cython.const[cython.ulonglong][::1],
    data_align: cython.const[cython.longlong][::1],
    ra_column: cython.const[cython.ulonglong][::1],
    encoding: cython.const[cython.uchar][::1],
    address_size: cython.const[cython.uchar][::1],
    cie_fault: cython.uchar[::1],
    cie: cython.const[cython.longlong][::1],
    start: cython.const[cython.ulonglong][::1],
    program: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    fault: cython.uchar[::1],
    rows: cython.longlong[::1],
) -> cython.Py_ssize_t:
    c: cython.Py_ssize_t
    f: cython.Py_ssize_t
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t
    with cython.nogil:
        for c in range(cie_program.shape[0]):
            if cie_fault[c]:
                continue
            state.clear()
            instruction.use(code_align[c], data_align[c], encoding[c], address_size[c])
            state.ra_register = ra_column[c]
            state.flags = _column(ra_column[c])
            cie_fault[c] = state.run(instruction, cursor, cie_program[c], cie_end[c], 0, False)
            state.remember()
            for i in range(_STATE_WORDS):
                states[c, i] = state.remembered[state.depth - 1, i]
        for f in range(cie.shape[0]):
            first = state.rows
            if fault[f]:
                continue
            c = cie[f]
            if cie_fault[c]:
                fault[f] = _CIE_FAULT
                continue
            state.depth = 1
            for i in range(_STATE_WORDS):
                state.remembered[0, i] = states[c, i]
            state.recall()
            state.initial_ra = state.ra
            state.initial_fp = state.fp
            state.initial_sp = state.sp
            instruction.use(code_align[c], data_align[c], encoding[c], address_size[c])
            state.ra_register = ra_column[c]
            # What the CIE says of nothing that is followed makes no row by itself.
            state.touched = state.cfa_kind != _UNSPECIFIED or state.ra != 0 or state.fp != 0
            fault[f] = state.run(instruction, cursor, program[f], end[f], start[f], True)
            rows[f] = state.rows - first
    return state.rows
