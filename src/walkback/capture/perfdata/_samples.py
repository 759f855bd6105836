"""Takes samples apart: fields, registers, where the stack's copy is, the recorded call chain (compiled).

Where a field begins depends on the lengths of those before it, so each sample is read from its start to its stack.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.base.views import takes_views
from walkback.capture.perfdata.layout import (
    CONTEXT_DEFERRED,
    CONTEXT_FARTHEST,
    CONTEXT_KERNEL,
    CONTEXT_USER,
    SAMPLE_FIELDS,
)

if cython.compiled:
    from cython.cimports.walkback.base.cursor import swapped
    from cython.cimports.walkback.capture.perfdata import layout
    from cython.cimports.walkback.capture.perfdata.layout import SampleStatus
    from cython.cimports.walkback.walking.samples import COLUMNS, PC
else:
    from walkback.base.cursor import swapped
    from walkback.capture.perfdata import layout
    from walkback.capture.perfdata.layout import SampleStatus
    from walkback.walking.samples import COLUMNS, PC

_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_MEMBERS = cython.declare(cython.Py_ssize_t, 64)
"""The most counters of a group that are followed; damaged groups have thousands, and each would become a sample."""
_HALF = cython.declare(cython.ulonglong, 0x80000000)
_WHOLE = cython.declare(cython.longlong, 0x100000000)
_WORD = cython.declare(cython.ulonglong, WORD)

_FARTHEST_CONTEXT = cython.declare(cython.ulonglong, CONTEXT_FARTHEST)
_CONTEXT_KERNEL = cython.declare(cython.ulonglong, CONTEXT_KERNEL)
_CONTEXT_USER = cython.declare(cython.ulonglong, CONTEXT_USER)
_CONTEXT_DEFERRED = cython.declare(cython.ulonglong, CONTEXT_DEFERRED)
_ALONE = cython.declare(cython.longlong, -2)
"""The place of a call chain that is not recorded."""
_TAKEN = (layout.SAMPLE_IP, layout.SAMPLE_TID, layout.SAMPLE_TIME, layout.SAMPLE_CPU, layout.SAMPLE_PERIOD)


def extract(words, big, which, offset, size, shape, columns, sp, copy_of_pc, out):
    """Read the samples of the numbers `which`, which all have one shape.

    `shape` is (sample_type, read_format, branch_sample_type, period if none is recorded, bits of sample_regs_user);
    `columns` has for each bit of it the column of the register, or -1. Fills the arrays of `out` at these numbers.
    """
    Extraction(words, big, offset, size, shape, columns, sp, copy_of_pc, out).run(memoryview(which))


@cython.final
@cython.cclass
class Extraction:
    """Samples of one shape, and the columns that they are read into.

    What reads a field gets the word where that begins, and the end of the sample; it returns the word behind the field,
    or -1 if the sample is shorter than it says.
    """

    def __init__(self, words, big, offset, size, shape, columns, sp, copy_of_pc, out):
        self.words = memoryview(words)
        self.big = big
        self.offset = memoryview(offset)
        self.size = memoryview(size)
        self.sample_type, self.read_format, self.branches, self.default_period, registers = shape
        fields = [field for field in SAMPLE_FIELDS if shape[0] & field]
        places = (fields.index(field) if field in fields else -1 for field in _TAKEN)
        self.ip_at, self.tid_at, self.time_at, self.cpu_at, self.period_at = places
        self.fixed = len(fields)
        self.column = memoryview(columns[[bit for bit in range(64) if registers >> bit & 1]])
        self.sp = sp
        self.copy_of_pc = copy_of_pc
        self.pid = memoryview(out.pid)
        self.tid = memoryview(out.tid)
        self.time = memoryview(out.time)
        self.period = memoryview(out.period)
        self.cpu = memoryview(out.cpu)
        self.ip = memoryview(out.ip)
        self.registers = memoryview(out.registers.reshape(-1))
        self.known = memoryview(out.known)
        self.stack_start = memoryview(out.stack_start)
        self.stack_size = memoryview(out.stack_size)
        self.stack_offset = memoryview(out.stack_offset)
        self.cut = memoryview(out.cut)
        self.chain_at = memoryview(out.chain_at)
        self.chain_length = memoryview(out.chain_length)
        self.status = memoryview(out.status)
        self.reading_at = memoryview(out.reading_at)

    # Old Cython takes no `const` in methods: the type of `which` stands in the .pxd.
    def run(self, which) -> cython.int:
        """Read the samples of these numbers."""
        n: cython.Py_ssize_t
        with cython.nogil:
            for n in range(which.shape[0]):
                self._one(which[n])
        return 0

    def _one(self, i: cython.Py_ssize_t) -> cython.int:
        at: cython.Py_ssize_t = (self.offset[i] >> 3) + 1
        end: cython.Py_ssize_t = (self.offset[i] + self.size[i]) >> 3
        self.status[i] = SampleStatus.DAMAGED
        self.period[i] = self.default_period
        if end > self.words.shape[0] or end - at < self.fixed:
            return 0
        self._fields(i, at)
        at += self.fixed
        if self.sample_type & layout.SAMPLE_READ:
            at = self._reading(i, at, end)
        if at >= 0 and self.sample_type & (layout.SAMPLE_CALLCHAIN | layout.SAMPLE_IP):
            at = self._chain(i, at, end)
        if at >= 0 and self.sample_type & (layout.SAMPLE_RAW | layout.SAMPLE_BRANCH_STACK):
            at = self._passed_over(at, end)
        if at >= 0:
            self._registers_and_stack(i, at, end)
        return 0

    def _fields(self, i: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.int:
        """The fields of one word each, which are there."""
        word: cython.ulonglong
        if self.ip_at >= 0:
            self.ip[i] = _read(self.words, at + self.ip_at, self.big)
        if self.tid_at >= 0:
            word = _read(self.words, at + self.tid_at, self.big)
            if self.big:
                word = ((word << 32) & _WORD) | (word >> 32)
            self.pid[i] = _signed(word & _LOW)
            self.tid[i] = _signed(word >> 32)
        if self.time_at >= 0:
            self.time[i] = _read(self.words, at + self.time_at, self.big)
        if self.cpu_at >= 0:
            word = _read(self.words, at + self.cpu_at, self.big)
            self.cpu[i] = _signed(word >> 32 if self.big else word & _LOW)
        if self.period_at >= 0:
            self.period[i] = _read(self.words, at + self.period_at, self.big)
        return 0

    def _behind(
        self, count: cython.ulonglong, each: cython.Py_ssize_t, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The word behind `count` entries of `each` words; -1 if they do not fit."""
        if at > end or count > cython.cast(cython.ulonglong, (end - at) // each):
            return -1
        return at + cython.cast(cython.Py_ssize_t, count) * each

    def _reading(self, i: cython.Py_ssize_t, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """What counters showed."""
        first: cython.Py_ssize_t = at
        count: cython.ulonglong = 1
        each: cython.Py_ssize_t = 1
        if self.read_format & layout.READ_ID:
            each += 1
        if self.read_format & layout.READ_LOST:
            each += 1
        if self.read_format & layout.READ_GROUP:
            if at >= end:
                return -1
            count = _read(self.words, at, self.big)
            at += 1
        at = self._behind(count, each, at + _times(self.read_format), end)
        if at >= 0:
            self.reading_at[i] = first
        return at

    def _chain(self, i: cython.Py_ssize_t, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The call chain; where none is recorded it is the address alone."""
        behind: cython.Py_ssize_t
        if not self.sample_type & layout.SAMPLE_CALLCHAIN:
            self.chain_at[i] = _ALONE
            self.chain_length[i] = 1
            return at
        if at >= end:
            return -1
        behind = self._behind(_read(self.words, at, self.big), 1, at + 1, end)
        if behind >= 0:
            self.chain_at[i] = at + 1
            self.chain_length[i] = behind - (at + 1)
        return behind

    def _passed_over(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Raw data and branches."""
        word: cython.ulonglong
        if self.sample_type & layout.SAMPLE_RAW:
            if at >= end:
                return -1
            word = _read(self.words, at, self.big)
            word = (word >> 32 if self.big else word & _LOW) + layout.RAW_SIZE
            at = self._behind((word + 7) >> 3, 1, at, end)
        if at >= 0 and self.sample_type & layout.SAMPLE_BRANCH_STACK:
            if at >= end:
                return -1
            word = _read(self.words, at, self.big)
            at += 2 if self.branches & layout.BRANCH_HW_INDEX else 1
            at = self._behind(word, layout.BRANCH_WORDS + (1 if self.branches & layout.BRANCH_COUNTERS else 0), at, end)
        return at

    def _registers_and_stack(self, i: cython.Py_ssize_t, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """What the program can be walked by."""
        kind: cython.ulonglong
        mask: cython.ulonglong = 0
        status: cython.uchar = SampleStatus.NO_REGISTERS
        if self.sample_type & layout.SAMPLE_REGS_USER:
            if at >= end:
                return 0
            kind = _read(self.words, at, self.big)
            at += 1
            if kind:
                if end - at < self.column.shape[0]:
                    return 0
                status = SampleStatus.NARROW
                if kind == layout.REGS_ABI_64:
                    status = SampleStatus.FINE
                    mask = self._registers(i * COLUMNS, at)
                at += self.column.shape[0]
            else:
                status = SampleStatus.NO_PROGRAM
        if self.sample_type & layout.SAMPLE_STACK_USER and not self._stack(i, at, end, mask >> self.sp & 1):
            return 0
        self.status[i] = status
        self.known[i] = mask
        return 0

    def _registers(self, row: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.ulonglong:
        """Read the registers; which are known."""
        k: cython.Py_ssize_t
        column: cython.Py_ssize_t
        mask: cython.ulonglong = 0
        for k in range(self.column.shape[0]):
            column = self.column[k]
            if column >= 0:
                self.registers[row + column] = _read(self.words, at + k, self.big)
                mask |= cython.cast(cython.ulonglong, 1) << column
        if self.copy_of_pc >= 0 and mask >> PC & 1:
            self.registers[row + self.copy_of_pc] = self.registers[row + PC]
            mask |= cython.cast(cython.ulonglong, 1) << self.copy_of_pc
        return mask

    def _stack(
        self, i: cython.Py_ssize_t, at: cython.Py_ssize_t, end: cython.Py_ssize_t, has_sp: cython.bint
    ) -> cython.bint:
        """Find the copy of the stack; whether the sample has all of it."""
        room: cython.ulonglong
        used: cython.ulonglong
        start: cython.ulonglong
        if at >= end:
            return False
        room = _read(self.words, at, self.big)
        at += 1
        if not room:
            return True
        if room & 7 or room >> 3 >= cython.cast(cython.ulonglong, end - at):
            return False
        used = _read(self.words, at + cython.cast(cython.Py_ssize_t, room >> 3), self.big)
        if used > room:
            return False
        if has_sp:
            start = self.registers[i * COLUMNS + self.sp]
            self.stack_start[i] = start
            # A stack does not go on at address 0.
            if used and used - 1 <= _WORD - start:
                self.stack_size[i] = used
                self.stack_offset[i] = at << 3
                if used == room:
                    self.cut[i] = (start + used) & _WORD
        return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(value: cython.ulonglong) -> cython.int:
    return cython.cast(cython.int, value if value < _HALF else cython.cast(cython.longlong, value) - _WHOLE)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _times(read_format: cython.ulonglong) -> cython.Py_ssize_t:
    """How many times a counter comes with."""
    return (1 if read_format & layout.READ_TOTAL_TIME_ENABLED else 0) + (
        1 if read_format & layout.READ_TOTAL_TIME_RUNNING else 0
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=True)
def _read(words: cython.const[cython.ulonglong][::1], at: cython.Py_ssize_t, big: cython.bint) -> cython.ulonglong:
    value: cython.ulonglong = words[at]
    return swapped(value) if big else value


def chains(words, big, misc, ip, chain_at, chain_length):
    """The call chains one after the other: (first of each sample, addresses, whether of the kernel)."""
    most = int(chain_length.sum())
    first = np.zeros(len(ip) + 1, np.int64)
    pc = np.empty(most, np.uint64)
    kernel = np.empty(most, np.uint8)
    count = _chains(words, big, misc, ip, chain_at, chain_length, first, pc, kernel)
    return first, pc[:count], kernel[:count].view(np.bool_)


@takes_views
def _chains(
    words: cython.const[cython.ulonglong][::1],
    big: cython.bint,
    misc: cython.const[cython.ushort][::1],
    ip: cython.const[cython.ulonglong][::1],
    chain_at: cython.const[cython.longlong][::1],
    chain_length: cython.const[cython.longlong][::1],
    first: cython.longlong[::1],
    pc: cython.ulonglong[::1],
    kernel: cython.uchar[::1],
):
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    mode: cython.int
    skip: cython.bint
    value: cython.ulonglong
    with cython.nogil:
        for i in range(chain_at.shape[0]):
            # All but the kernel and the program, hypervisors and their guests, are left out.
            mode = misc[i] & layout.CPUMODE_MASK
            skip = False
            for k in range(chain_length[i]):
                value = ip[i] if chain_at[i] < 0 else _read(words, chain_at[i] + k, big)
                if skip:
                    skip = False
                elif chain_at[i] >= 0 and value >= _FARTHEST_CONTEXT:
                    mode = 0
                    if value == _CONTEXT_KERNEL:
                        mode = layout.CPUMODE_KERNEL
                    elif value == _CONTEXT_USER:
                        mode = layout.CPUMODE_USER
                    skip = value == _CONTEXT_DEFERRED
                elif mode == layout.CPUMODE_KERNEL or mode == layout.CPUMODE_USER:
                    pc[count] = value
                    kernel[count] = mode == layout.CPUMODE_KERNEL
                    count += 1
            first[i + 1] = count
    return count


def readings(words, big, reading_at, read_format):
    """What counters showed: (number of the sample, ID of the counter, value), in the order of samples.

    `reading_at` says where each sample has its counters, which `extract` has seen to be there; -1 for nowhere.
    `read_format` is of all of them, and has IDs.
    """
    sample, identity, value = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    for _ in range(2):  # the first time counts them
        count = _readings(words, big, reading_at, read_format, sample, identity, value)
        if len(sample) < count:
            sample, identity, value = np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    return sample, identity, value


@takes_views
def _readings(
    words: cython.const[cython.ulonglong][::1],
    big: cython.bint,
    reading_at: cython.const[cython.longlong][::1],
    read_format: cython.ulonglong,
    sample: cython.longlong[::1],
    identity: cython.ulonglong[::1],
    value: cython.ulonglong[::1],
):
    """Fill the columns as far as they go; how long they have to be."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    members: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    times: cython.Py_ssize_t = _times(read_format)
    each: cython.Py_ssize_t = 2 + (1 if read_format & layout.READ_LOST else 0)
    with cython.nogil:
        for i in range(reading_at.shape[0]):
            at = reading_at[i]
            if at < 0:
                continue
            members = 1
            if read_format & layout.READ_GROUP:
                members = cython.cast(cython.Py_ssize_t, _read(words, at, big))
                members = min(members, _MEMBERS)
                at += 1 + times
            for k in range(members):
                if count < sample.shape[0]:
                    sample[count] = i
                    value[count] = _read(words, at, big)
                    # Alone, a counter has its times between its value and its ID.
                    identity[count] = _read(words, at + 1 + (0 if read_format & layout.READ_GROUP else times), big)
                count += 1
                at += each
    return count
