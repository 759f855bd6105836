"""The rules of the registers that the table has no place for, row by row (compiled).

The same instructions as in `_program`, run a second time for the registers that are passed over there. Those that hold
in a row are a set, and equal sets get equal numbers. What `remember_state` keeps is a place in a trail of changes, so
nothing is copied; a set is written out when it is seen for the first time.
"""

import os

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.cursor import Cursor
    from cython.cimports.walkback.dwarf._instruction import Instruction
else:
    from walkback.cursor import Cursor
    from walkback.dwarf._instruction import Instruction

REGISTERS = 256
"""Registers are followed that have lower numbers; those of all machines here have."""

_REGISTERS = cython.declare(cython.Py_ssize_t, 256)
_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# Those of `_instruction`.
_ADVANCE = cython.declare(cython.int, 1)
_RULE = cython.declare(cython.int, 2)
_RESTORE = cython.declare(cython.int, 3)
_REMEMBER = cython.declare(cython.int, 4)
_RECALL = cython.declare(cython.int, 5)
_WRONG = cython.declare(cython.int, 12)

_FULL = cython.declare(cython.int, -2)

_SEEDS = [int.from_bytes(os.urandom(8), "little") | 1 for _ in range(4)]


@cython.final
@cython.cclass
class Sets:
    """The rules that hold now, and every set of them that held in a row; the hash is seeded anew in each process."""

    # What holds now: for each register the kind, 0 for no rule, and the operand
    kinds: cython.uchar[::1]
    operands: cython.longlong[::1]
    size: cython.Py_ssize_t
    sum: cython.ulonglong
    number: cython.int
    """Of the set that holds now; -1 if it is not known yet."""
    base: cython.int
    """The set that the trail goes back to: what the CIE left behind."""
    initial_kinds: cython.uchar[::1]
    initial_operands: cython.longlong[::1]
    # What was changed since, and how far that was at each state that is remembered
    trail_register: cython.ushort[::1]
    trail_kind: cython.uchar[::1]
    trail_operand: cython.longlong[::1]
    changes: cython.Py_ssize_t
    marks: cython.longlong[::1]
    depth: cython.Py_ssize_t
    # The sets: where each begins, its hash; and the entries of all
    first: cython.longlong[::1]
    sums: cython.ulonglong[::1]
    count: cython.Py_ssize_t
    entry_register: cython.ushort[::1]
    entry_kind: cython.uchar[::1]
    entry_operand: cython.longlong[::1]
    entries: cython.Py_ssize_t
    most: cython.Py_ssize_t
    slots: cython.int[::1]
    mask: cython.Py_ssize_t
    seeds: cython.ulonglong[::1]
    # Of the CIE
    ra_register: cython.ulonglong
    sp_register: cython.ulonglong
    fp_register: cython.ulonglong
    beyond: cython.Py_ssize_t
    """How many instructions were for registers that are not followed."""

    def __init__(self, most, changes, sp, fp):
        self.kinds = memoryview(np.zeros(REGISTERS, np.uint8))
        self.operands = memoryview(np.zeros(REGISTERS, np.int64))
        self.initial_kinds = memoryview(np.zeros(REGISTERS, np.uint8))
        self.initial_operands = memoryview(np.zeros(REGISTERS, np.int64))
        self.trail_register = memoryview(np.zeros(changes, np.uint16))
        self.trail_kind = memoryview(np.zeros(changes, np.uint8))
        self.trail_operand = memoryview(np.zeros(changes, np.int64))
        self.marks = memoryview(np.zeros(changes, np.int64))
        self.size = self.changes = self.depth = self.entries = self.beyond = 0
        self.sum = 0
        self.number = self.base = 0
        self.seeds = memoryview(np.array(_SEEDS, np.uint64))
        self.most = most
        self.first = memoryview(np.zeros(257, np.int64))
        self.sums = memoryview(np.zeros(256, np.uint64))
        self.count = 1  # the empty set
        self._make_room(1024)
        self._spread()
        self.sp_register = sp
        self.fp_register = fp

    def all(self):
        """(Where each set begins, register, kind, operand of each entry)."""
        end = self.entries
        return (
            np.asarray(self.first)[: self.count + 1].copy(),
            np.asarray(self.entry_register)[:end].copy(),
            np.asarray(self.entry_kind)[:end].copy(),
            np.asarray(self.entry_operand)[:end].copy(),
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def put(self, register: cython.Py_ssize_t, kind: cython.int, operand: cython.longlong) -> cython.int:
        """Give a register another rule; 0 takes it away."""
        if self.kinds[register]:
            self.sum = (self.sum - self._mixed(register, self.kinds[register], self.operands[register])) & _WORD
            self.size -= 1
        if kind:
            self.sum = (self.sum + self._mixed(register, kind, operand)) & _WORD
            self.size += 1
        self.kinds[register] = kind
        self.operands[register] = operand
        self.number = -1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _mixed(self, register: cython.Py_ssize_t, kind: cython.int, operand: cython.longlong) -> cython.ulonglong:
        low: cython.ulonglong = (cython.cast(cython.ulonglong, operand & _WORD) * self.seeds[0]) & _WORD
        high: cython.ulonglong = (cython.cast(cython.ulonglong, (register << 8) | kind) * self.seeds[1]) & _WORD
        key: cython.ulonglong = low ^ high
        key ^= key >> 29
        key = (key * self.seeds[2]) & _WORD
        return key ^ (key >> 32)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def set(self, register: cython.ulonglong, kind: cython.int, operand: cython.longlong) -> cython.int:
        """An instruction gives a register its rule."""
        r: cython.Py_ssize_t
        if register == self.ra_register or register == self.fp_register or register == self.sp_register:
            return 0
        if register >= _REGISTERS:
            self.beyond += 1
            return 0
        r = cython.cast(cython.Py_ssize_t, register)
        if self.kinds[r] == kind and self.operands[r] == operand:
            return 0
        self.trail_register[self.changes] = cython.cast(cython.ushort, r)
        self.trail_kind[self.changes] = self.kinds[r]
        self.trail_operand[self.changes] = self.operands[r]
        self.changes += 1
        self.put(r, kind, operand)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def restore(self, register: cython.ulonglong) -> cython.int:
        """Give a register the rule that the CIE gave it."""
        r: cython.Py_ssize_t
        if register >= _REGISTERS:
            return self.set(register, 0, 0)
        r = cython.cast(cython.Py_ssize_t, register)
        return self.set(register, self.initial_kinds[r], self.initial_operands[r])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def go_back(self, mark: cython.Py_ssize_t) -> cython.int:
        """Undo changes, the last first."""
        while self.changes > mark:
            self.changes -= 1
            self.put(
                self.trail_register[self.changes],
                self.trail_kind[self.changes],
                self.trail_operand[self.changes],
            )
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def begin(self, number: cython.int) -> cython.int:
        """Before a program: a set holds, nothing is remembered."""
        i: cython.Py_ssize_t
        register: cython.Py_ssize_t
        self.go_back(0)
        self.depth = 0
        if self.base != number:
            for i in range(self.first[self.base], self.first[self.base + 1]):
                register = self.entry_register[i]
                self.put(register, 0, 0)
                self.initial_kinds[register] = 0
                self.initial_operands[register] = 0
            for i in range(self.first[number], self.first[number + 1]):
                register = self.entry_register[i]
                self.put(register, self.entry_kind[i], self.entry_operand[i])
                self.initial_kinds[register] = self.entry_kind[i]
                self.initial_operands[register] = self.entry_operand[i]
            self.base = number
        self.number = number
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def named(self) -> cython.int:
        """The number of the set that holds now; `_FULL` if there are too many."""
        slot: cython.Py_ssize_t
        number: cython.int
        if self.number >= 0:
            return self.number
        slot = self._slot(self.sum)
        number = self.slots[slot]
        while number >= 0:
            if self.sums[number] == self.sum and self._holds(number):
                self.number = number
                return number
            slot = (slot + 1) & self.mask
            number = self.slots[slot]
        if self.entries + self.size > self.most:
            return _FULL
        if self.count == self.sums.shape[0] or self.entries + self.size > self.entry_kind.shape[0]:
            self._grow()
        return self._write()

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _slot(self, key: cython.ulonglong) -> cython.Py_ssize_t:
        return cython.cast(cython.Py_ssize_t, ((key * self.seeds[3]) & _WORD) >> 32) & self.mask

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _holds(self, number: cython.int) -> cython.int:
        """Whether what holds now is this set."""
        i: cython.Py_ssize_t
        if self.first[number + 1] - self.first[number] != self.size:
            return 0
        for i in range(self.first[number], self.first[number + 1]):
            if self.kinds[self.entry_register[i]] != self.entry_kind[i]:
                return 0
            if self.operands[self.entry_register[i]] != self.entry_operand[i]:
                return 0
        return 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _write(self) -> cython.int:
        """A new set, with the rules that hold now; there is room for it."""
        r: cython.Py_ssize_t
        slot: cython.Py_ssize_t = self._slot(self.sum)
        while self.slots[slot] >= 0:
            slot = (slot + 1) & self.mask
        for r in range(_REGISTERS):
            if self.kinds[r]:
                self.entry_register[self.entries] = cython.cast(cython.ushort, r)
                self.entry_kind[self.entries] = self.kinds[r]
                self.entry_operand[self.entries] = self.operands[r]
                self.entries += 1
        self.number = cython.cast(cython.int, self.count)
        self.slots[slot] = self.number
        self.sums[self.number] = self.sum
        self.count += 1
        self.first[self.count] = self.entries
        return self.number

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1, check=False)
    def _grow(self) -> cython.int:
        """Make room for sets and for entries."""
        if self.count == self.sums.shape[0]:
            more = np.zeros(2 * self.count + 1, np.int64)
            more[: self.count + 1] = np.asarray(self.first)
            self.first = memoryview(more)
            sums = np.zeros(2 * self.count, np.uint64)
            sums[: self.count] = np.asarray(self.sums)
            self.sums = memoryview(sums)
            self._spread()
        if self.entries + self.size > self.entry_kind.shape[0]:
            self._make_room(2 * self.entry_kind.shape[0])
        return 0

    @cython.cfunc
    def _make_room(self, capacity: cython.Py_ssize_t) -> cython.int:
        registers = np.zeros(capacity, np.uint16)
        kinds = np.zeros(capacity, np.uint8)
        operands = np.zeros(capacity, np.int64)
        if self.entries:
            registers[: self.entries] = np.asarray(self.entry_register)[: self.entries]
            kinds[: self.entries] = np.asarray(self.entry_kind)[: self.entries]
            operands[: self.entries] = np.asarray(self.entry_operand)[: self.entries]
        self.entry_register = memoryview(registers)
        self.entry_kind = memoryview(kinds)
        self.entry_operand = memoryview(operands)
        return 0

    @cython.cfunc
    def _spread(self) -> cython.int:
        """Give every set its slot, with four times as many slots as sets have room."""
        number: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        slots = 4 * self.sums.shape[0]
        self.slots = memoryview(np.full(slots, -1, np.int32))
        self.mask = slots - 1
        for number in range(self.count):
            slot = self._slot(self.sums[number])
            while self.slots[slot] >= 0:
                slot = (slot + 1) & self.mask
            self.slots[slot] = number
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
        row: cython.Py_ssize_t,
        rows: cython.Py_ssize_t,
        row_set: cython.uint[::1],
    ) -> cython.int:
        """Run a program that has so many rows, the first with this number; a CIE has none. Returns `_FULL` or 0."""
        last: cython.Py_ssize_t = row + rows
        location: cython.ulonglong = 0
        action: cython.int
        number: cython.int
        cursor.move(begin, end)
        while cursor.pos < cursor.end:
            action = instruction.read(cursor, start, location)
            if cursor.failed or action >= _WRONG:
                break
            if action == _ADVANCE:
                if instruction.delta and rows:
                    if row == last:
                        return 0
                    number = self.named()
                    if number < 0:
                        return _FULL
                    row_set[row] = cython.cast(cython.uint, number)
                    row += 1
                    location = (location + instruction.delta) & _WORD
            elif action == _RULE:
                self.set(instruction.register, instruction.kind, instruction.operand)
            elif action == _RESTORE:
                self.restore(instruction.register)
            elif action == _REMEMBER:
                self.marks[self.depth] = self.changes
                self.depth += 1
            elif action == _RECALL:
                if not self.depth:
                    break
                self.depth -= 1
                self.go_back(self.marks[self.depth])
        if row < last:
            number = self.named()
            if number < 0:
                return _FULL
            row_set[row] = cython.cast(cython.uint, number)
        return 0


def read(buffer, big, address, text, got, cies, fdes, machine, is_aarch64, most):
    """Run all programs: (set of each row, the columns of `Sets.all`, instructions beyond, FDE where room ended or -1).

    Their rows are known, and those of a program with a fault are the rows before it. At most `most` entries are kept.
    """
    row_set = np.zeros(int(fdes.rows.sum()), np.uint32)
    # Every change and every state that is remembered has an instruction.
    changes = 1 + max(
        (int((columns.end - columns.program).max()) for columns in (cies, fdes) if len(columns)), default=0
    )
    sets = Sets(most, changes, machine.sp, machine.fp)
    stop = _read(
        sets,
        Instruction(address, text, got, is_aarch64),
        Cursor(buffer, big),
        memoryview(np.zeros(len(cies), np.int32)),
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
        memoryview(fdes.first_row),
        memoryview(fdes.rows),
        memoryview(row_set),
    )
    return row_set, sets.all(), sets.beyond, stop


@cython.cfunc
def _read(
    sets: Sets,
    instruction: Instruction,
    cursor: Cursor,
    cie_set: cython.int[::1],
    cie_program: cython.const[cython.longlong][::1],
    cie_end: cython.const[cython.longlong][::1],
    code_align: cython.const[cython.ulonglong][::1],
    data_align: cython.const[cython.longlong][::1],
    ra_column: cython.const[cython.ulonglong][::1],
    encoding: cython.const[cython.uchar][::1],
    address_size: cython.const[cython.uchar][::1],
    cie_fault: cython.const[cython.uchar][::1],
    cie: cython.const[cython.longlong][::1],
    start: cython.const[cython.ulonglong][::1],
    program: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    first_row: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    row_set: cython.uint[::1],
) -> cython.Py_ssize_t:
    c: cython.Py_ssize_t
    f: cython.Py_ssize_t
    stop: cython.Py_ssize_t = -1
    with cython.nogil:
        for c in range(cie_program.shape[0]):
            if cie_fault[c]:
                continue
            instruction.use(code_align[c], data_align[c], encoding[c], address_size[c])
            sets.ra_register = ra_column[c]
            sets.begin(0)
            sets.run(instruction, cursor, cie_program[c], cie_end[c], 0, 0, 0, row_set)
            cie_set[c] = sets.named()
        for f in range(cie.shape[0]):
            if not rows[f]:
                continue
            c = cie[f]
            instruction.use(code_align[c], data_align[c], encoding[c], address_size[c])
            sets.ra_register = ra_column[c]
            if cie_set[c] < 0:
                stop = f
                break
            sets.begin(cie_set[c])
            if sets.run(instruction, cursor, program[f], end[f], start[f], first_row[f], rows[f], row_set):
                stop = f
                break
    return stop
