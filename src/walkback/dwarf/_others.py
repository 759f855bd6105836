"""The rules of the registers that the table has no place for, row by row (compiled).

The same instructions as in `_program`, run a second time for the registers that are passed over there. Those that hold
in a row are a set, and equal sets get equal numbers. What `remember_state` keeps is a place in a trail of changes, so
nothing is copied; a set is written out when it is seen for the first time.
"""

import cython
import numpy as np

from walkback.base.arrays import longer
from walkback.base.bits import WORD
from walkback.base.intern import new_seeds
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.intern import KeyTable
    from cython.cimports.walkback.base.mixing import folded, mixed
    from cython.cimports.walkback.dwarf._instruction import ProgramReader
    from cython.cimports.walkback.dwarf.actions import Action
else:
    from walkback.base.intern import KeyTable
    from walkback.base.mixing import folded, mixed
    from walkback.dwarf._instruction import ProgramReader
    from walkback.dwarf.actions import Action

REGISTERS = 256
"""Registers are followed that have lower numbers; those of all machines here have."""

_REGISTERS = cython.declare(cython.Py_ssize_t, REGISTERS)
_WORD = cython.declare(cython.ulonglong, WORD)
_FULL = cython.declare(cython.int, -2)


@cython.final
@cython.cclass
class Sets:
    """The rules that hold now, and every set of them that held in a row."""

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
    # The sets, by the sums of what is in them: where each begins; and the entries of all
    table: KeyTable
    first: cython.longlong[::1]
    entry_register: cython.ushort[::1]
    entry_kind: cython.uchar[::1]
    entry_operand: cython.longlong[::1]
    entries: cython.Py_ssize_t
    most: cython.Py_ssize_t
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
        self.seeds = new_seeds(3)
        self.most = most
        self.first = memoryview(np.zeros(257, np.int64))
        self.entry_register = memoryview(np.zeros(1024, np.uint16))
        self.entry_kind = memoryview(np.zeros(1024, np.uint8))
        self.entry_operand = memoryview(np.zeros(1024, np.int64))
        self.table = KeyTable(256)
        self.table.find(0)
        self.table.add(0)  # the empty set
        self.sp_register = sp
        self.fp_register = fp

    def all(self):
        """(Where each set begins, register, kind, operand of each entry)."""
        end = self.entries
        return (
            np.asarray(self.first)[: self.table.count + 1].copy(),
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
        return mixed(folded(low ^ high), self.seeds[2])

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
        if self.number >= 0:
            return self.number
        number: cython.int = self.table.find(self.sum)
        while number >= 0 and not self._holds(number):
            number = self.table.find_next(self.sum)
        if number < 0:
            if self.entries + self.size > self.most:
                return _FULL
            number = self._write()
        self.number = number
        return number

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
        """A new set, with the rules that hold now."""
        r: cython.Py_ssize_t
        number: cython.int = self.table.add(self.sum)
        if number + 1 == self.first.shape[0] or self.entries + self.size > self.entry_kind.shape[0]:
            self._grow()
        for r in range(_REGISTERS):
            if self.kinds[r]:
                self.entry_register[self.entries] = cython.cast(cython.ushort, r)
                self.entry_kind[self.entries] = self.kinds[r]
                self.entry_operand[self.entries] = self.operands[r]
                self.entries += 1
        self.first[number + 1] = self.entries
        return number

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1, check=False)
    def _grow(self) -> cython.int:
        """Make room for sets and for entries."""
        room = 2 * self.entry_kind.shape[0]
        self.first = memoryview(longer(np.asarray(self.first), 2 * self.first.shape[0]))
        self.entry_register = memoryview(longer(np.asarray(self.entry_register), room))
        self.entry_kind = memoryview(longer(np.asarray(self.entry_kind), room))
        self.entry_operand = memoryview(longer(np.asarray(self.entry_operand), room))
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def run(
        self, reader: ProgramReader, row: cython.Py_ssize_t, rows: cython.Py_ssize_t, row_set: cython.uint[::1]
    ) -> cython.int:
        """Run a program with `rows` rows, numbered from `row` on; a CIE has none. Returns `_FULL` or 0."""
        last: cython.Py_ssize_t = row + rows
        location: cython.ulonglong = 0
        number: cython.int
        while reader.cursor.pos < reader.cursor.end:
            action: cython.int = reader.read(location)
            if reader.cursor.failed or action >= Action.WRONG:
                break
            if action == Action.ADVANCE:
                if reader.delta and rows:
                    if row == last:
                        return 0
                    number = self.named()
                    if number < 0:
                        return _FULL
                    row_set[row] = cython.cast(cython.uint, number)
                    row += 1
                    location = (location + reader.delta) & _WORD
            elif action == Action.RULE:
                self.set(reader.register, reader.kind, reader.operand)
            elif action == Action.RESTORE:
                self.restore(reader.register)
            elif action == Action.REMEMBER:
                self.marks[self.depth] = self.changes
                self.depth += 1
            elif action == Action.RECALL:
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


def read(reader, cies, fdes, sp, fp, most):
    """Run all programs: (set of each row, the columns of `Sets.all`, instructions beyond, FDE where room ended or -1).

    Their rows are known, and those of a program with a fault are the rows before it. At most `most` entries are kept.
    """
    row_set = np.zeros(int(fdes.rows.sum()), np.uint32)
    # Every change and every state that is remembered has an instruction.
    changes = 1 + max(
        (int((columns.end - columns.program).max()) for columns in (cies, fdes) if len(columns)), default=0
    )
    sets = Sets(most, changes, sp, fp)
    stop = _read(sets, reader, np.zeros(len(cies), np.int32), fdes.first_row, fdes.rows, row_set)
    return row_set, sets.all(), sets.beyond, stop


@takes_views
def _read(
    sets: Sets,
    reader: ProgramReader,
    cie_set: cython.int[::1],
    first_row: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    row_set: cython.uint[::1],
):
    c: cython.Py_ssize_t
    f: cython.Py_ssize_t
    stop: cython.Py_ssize_t = -1
    with cython.nogil:
        for c in range(cie_set.shape[0]):
            if reader.cie_fault[c]:
                continue
            reader.open_cie(c)
            sets.ra_register = reader.ra_column
            sets.begin(0)
            sets.run(reader, 0, 0, row_set)
            cie_set[c] = sets.named()
        for f in range(rows.shape[0]):
            if not rows[f]:
                continue
            reader.open_fde(f)
            sets.ra_register = reader.ra_column
            c = reader.cie[f]
            if cie_set[c] < 0:
                stop = f
                break
            sets.begin(cie_set[c])
            if sets.run(reader, first_row[f], rows[f], row_set):
                stop = f
                break
    return stop
