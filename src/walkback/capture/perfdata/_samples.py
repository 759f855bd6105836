"""Takes samples apart: fields, registers, where the stack's copy is, the recorded call chain (compiled).

Where a field begins follows from all fields before it, some of which have lengths of their own, so each sample is read
from its start. Reading ends with the stack: what comes after it is not needed.
"""

import cython
import numpy as np

FINE = 0
NO_REGISTERS = 1
NARROW = 2
DAMAGED = 3

_BYTES = cython.declare(cython.ulonglong, 0x00FF00FF00FF00FF)
_PAIRS = cython.declare(cython.ulonglong, 0x0000FFFF0000FFFF)
_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_MEMBERS = cython.declare(cython.Py_ssize_t, 64)
"""So many counters of a group are followed; damaged groups have thousands, and each comes to a sample."""
_HALF = cython.declare(cython.ulonglong, 0x80000000)
_WHOLE = cython.declare(cython.longlong, 0x100000000)
_HIGHEST = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_COLUMNS = cython.declare(cython.int, 33)
_PC = cython.declare(cython.int, 32)
_FARTHEST_CONTEXT = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFF001)
_CONTEXT_KERNEL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFF80)
_CONTEXT_USER = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFE00)
_CONTEXT_DEFERRED = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFD80)


def extract(words, big, which, offset, size, shape, columns, sp, copy_of_pc, out):
    """Read the samples of the numbers `which`, which all have one shape.

    `shape` is (sample_type, read_format, branch_sample_type, period if none is recorded, bits of sample_regs_user);
    `columns` tells for each bit of it the column of the register, or -1. Fills the arrays of `out`, which are for all
    samples, at the numbers `which`.
    """
    sample_type, read_format, branches, period, registers = shape
    _extract(
        memoryview(words),
        1 if big else 0,
        memoryview(which),
        memoryview(offset),
        memoryview(size),
        sample_type,
        read_format,
        branches,
        period,
        memoryview(np.array([bit for bit in range(64) if registers >> bit & 1], np.int64)),
        memoryview(columns),
        sp,
        copy_of_pc,
        memoryview(out.pid),
        memoryview(out.tid),
        memoryview(out.time),
        memoryview(out.period),
        memoryview(out.cpu),
        memoryview(out.ip),
        memoryview(out.registers.reshape(-1)),
        memoryview(out.known),
        memoryview(out.stack_start),
        memoryview(out.stack_size),
        memoryview(out.stack_offset),
        memoryview(out.cut),
        memoryview(out.chain_at),
        memoryview(out.chain_length),
        memoryview(out.status),
        memoryview(out.reading_at),
    )


@cython.cfunc
def _extract(
    words: cython.const[cython.ulonglong][::1],
    big: cython.int,
    which: cython.const[cython.longlong][::1],
    offset: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    sample_type: cython.ulonglong,
    read_format: cython.ulonglong,
    branches: cython.ulonglong,
    default_period: cython.ulonglong,
    bits: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    sp: cython.int,
    copy_of_pc: cython.int,
    pid: cython.int[::1],
    tid: cython.int[::1],
    time: cython.ulonglong[::1],
    period: cython.ulonglong[::1],
    cpu: cython.int[::1],
    ip: cython.ulonglong[::1],
    registers: cython.ulonglong[::1],
    known: cython.ulonglong[::1],
    stack_start: cython.ulonglong[::1],
    stack_size: cython.ulonglong[::1],
    stack_offset: cython.longlong[::1],
    cut: cython.ulonglong[::1],
    chain_at: cython.longlong[::1],
    chain_length: cython.longlong[::1],
    status: cython.uchar[::1],
    reading_at: cython.longlong[::1],
) -> cython.int:
    n: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    row: cython.Py_ssize_t
    first: cython.Py_ssize_t
    column: cython.Py_ssize_t
    fixed: cython.Py_ssize_t = 0
    each: cython.Py_ssize_t
    word: cython.ulonglong
    count: cython.ulonglong
    mask: cython.ulonglong
    # The fields of one word each that always come first.
    for i in (16, 0, 1, 2, 3, 6, 9, 7, 8):
        fixed += 1 if sample_type & (cython.cast(cython.ulonglong, 1) << i) else 0
    with cython.nogil:
        for n in range(which.shape[0]):
            i = which[n]
            at = (offset[i] >> 3) + 1
            end = (offset[i] + size[i]) >> 3
            row = i * _COLUMNS
            status[i] = 3
            period[i] = default_period
            if end > words.shape[0] or end - at < fixed:
                continue
            if sample_type & 0x10000:
                at += 1
            if sample_type & 0x1:
                ip[i] = _read(words, at, big)
                at += 1
            if sample_type & 0x2:
                word = _read(words, at, big)
                if big:
                    word = ((word << 32) & _HIGHEST) | (word >> 32)
                pid[i] = _signed(word & _LOW)
                tid[i] = _signed(word >> 32)
                at += 1
            if sample_type & 0x4:
                time[i] = _read(words, at, big)
                at += 1
            if sample_type & 0x8:
                at += 1
            if sample_type & 0x40:
                at += 1
            if sample_type & 0x200:
                at += 1
            if sample_type & 0x80:
                word = _read(words, at, big)
                cpu[i] = _signed(word >> 32 if big else word & _LOW)
                at += 1
            if sample_type & 0x100:
                period[i] = _read(words, at, big)
                at += 1
            if sample_type & 0x10:  # READ
                each = 1 + (1 if read_format & 4 else 0) + (1 if read_format & 16 else 0)
                count = 1
                first = at
                if read_format & 8:
                    if at >= end:
                        continue
                    count = _read(words, at, big)
                    at += 1
                at += (1 if read_format & 1 else 0) + (1 if read_format & 2 else 0)
                if at > end or count > cython.cast(cython.ulonglong, (end - at) // each):
                    continue
                at += cython.cast(cython.Py_ssize_t, count) * each
                reading_at[i] = first
            if sample_type & 0x20:  # CALLCHAIN
                if at >= end:
                    continue
                count = _read(words, at, big)
                at += 1
                if count > cython.cast(cython.ulonglong, end - at):
                    continue
                chain_at[i] = at
                chain_length[i] = cython.cast(cython.longlong, count)
                at += cython.cast(cython.Py_ssize_t, count)
            elif sample_type & 0x1:
                chain_at[i] = -2
                chain_length[i] = 1
            if sample_type & 0x400:  # RAW
                if at >= end:
                    continue
                word = _read(words, at, big)
                count = ((word >> 32 if big else word & _LOW) + 4 + 7) >> 3
                if count > cython.cast(cython.ulonglong, end - at):
                    continue
                at += cython.cast(cython.Py_ssize_t, count)
            if sample_type & 0x800:  # BRANCH_STACK
                if at >= end:
                    continue
                count = _read(words, at, big)
                at += 2 if branches & 0x20000 else 1
                each = 4 if branches & 0x80000 else 3
                if at > end or count > cython.cast(cython.ulonglong, (end - at) // each):
                    continue
                at += cython.cast(cython.Py_ssize_t, count) * each
            status[i] = 1
            mask = 0
            if sample_type & 0x1000:  # REGS_USER
                status[i] = 3
                if at >= end:
                    continue
                word = _read(words, at, big)
                at += 1
                status[i] = 1
                if word:
                    if end - at < bits.shape[0]:
                        status[i] = 3
                        continue
                    if word == 2:
                        status[i] = 0
                        for k in range(bits.shape[0]):
                            column = columns[bits[k]]
                            if column >= 0:
                                registers[row + column] = _read(words, at + k, big)
                                mask |= cython.cast(cython.ulonglong, 1) << column
                        if copy_of_pc >= 0 and mask >> _PC & 1:
                            registers[row + copy_of_pc] = registers[row + _PC]
                            mask |= cython.cast(cython.ulonglong, 1) << copy_of_pc
                    else:
                        status[i] = 2
                    at += bits.shape[0]
            if sample_type & 0x2000:  # STACK_USER
                if at >= end:
                    status[i] = 3
                    continue
                count = _read(words, at, big)
                at += 1
                if count:
                    if (
                        count & 7
                        or count >> 3 > cython.cast(cython.ulonglong, end - at)
                        or at + cython.cast(cython.Py_ssize_t, count >> 3) >= end
                    ):
                        status[i] = 3
                        continue
                    word = _read(words, at + cython.cast(cython.Py_ssize_t, count >> 3), big)
                    if word > count:
                        status[i] = 3
                        continue
                    if mask >> sp & 1:
                        stack_start[i] = registers[row + sp]
                        # A stack does not go on at address 0.
                        if word and word - 1 <= _HIGHEST - stack_start[i]:
                            stack_size[i] = word
                            stack_offset[i] = at << 3
                            if word == count:
                                cut[i] = (stack_start[i] + word) & _HIGHEST
            known[i] = mask
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(value: cython.ulonglong) -> cython.int:
    return cython.cast(cython.int, value if value < _HALF else cython.cast(cython.longlong, value) - _WHOLE)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=True)
def _read(words: cython.const[cython.ulonglong][::1], at: cython.Py_ssize_t, big: cython.int) -> cython.ulonglong:
    value: cython.ulonglong = words[at]
    if big:
        value = ((value & _BYTES) << 8) | ((value >> 8) & _BYTES)
        value = ((value & _PAIRS) << 16) | ((value >> 16) & _PAIRS)
        value = ((value & _LOW) << 32) | (value >> 32)
    return value


def chains(words, big, misc, ip, chain_at, chain_length):
    """The call chains one after the other: (first of each sample, addresses, whether of the kernel)."""
    most = int(chain_length.sum())
    first = np.zeros(len(ip) + 1, np.int64)
    pc = np.empty(most, np.uint64)
    kernel = np.empty(most, np.uint8)
    count = _chains(
        memoryview(words),
        1 if big else 0,
        memoryview(misc),
        memoryview(ip),
        memoryview(chain_at),
        memoryview(chain_length),
        memoryview(first),
        memoryview(pc),
        memoryview(kernel),
    )
    return first, pc[:count], kernel[:count].view(np.bool_)


@cython.cfunc
def _chains(
    words: cython.const[cython.ulonglong][::1],
    big: cython.int,
    misc: cython.const[cython.ushort][::1],
    ip: cython.const[cython.ulonglong][::1],
    chain_at: cython.const[cython.longlong][::1],
    chain_length: cython.const[cython.longlong][::1],
    first: cython.longlong[::1],
    pc: cython.ulonglong[::1],
    kernel: cython.uchar[::1],
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    mode: cython.int
    skip: cython.int
    value: cython.ulonglong
    with cython.nogil:
        for i in range(chain_at.shape[0]):
            # 1 is the kernel, 2 the program; all others, hypervisors and their guests, are left out.
            mode = misc[i] & 7
            skip = 0
            for k in range(chain_length[i]):
                value = ip[i] if chain_at[i] < 0 else _read(words, chain_at[i] + k, big)
                if skip:
                    skip = 0
                elif chain_at[i] >= 0 and value >= _FARTHEST_CONTEXT:
                    mode = 1 if value == _CONTEXT_KERNEL else (2 if value == _CONTEXT_USER else 0)
                    skip = 1 if value == _CONTEXT_DEFERRED else 0
                elif mode == 1 or mode == 2:
                    pc[count] = value
                    kernel[count] = 1 if mode == 1 else 0
                    count += 1
            first[i + 1] = count
    return count


def readings(words, big, reading_at, read_format):
    """What counters showed: (number of the sample, ID of the counter, value), in the order of samples.

    `reading_at` tells where each sample has its counters, which `extract` has seen to be there; -1 for nowhere.
    `read_format` is of all of them, and has IDs.
    """
    sample, identity, value = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    for _ in range(2):  # the first time tells how many there are
        count = _readings(
            memoryview(words),
            1 if big else 0,
            memoryview(reading_at),
            read_format,
            memoryview(sample),
            memoryview(identity),
            memoryview(value),
        )
        if len(sample) < count:
            sample, identity, value = np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    return sample, identity, value


@cython.cfunc
def _readings(
    words: cython.const[cython.ulonglong][::1],
    big: cython.int,
    reading_at: cython.const[cython.longlong][::1],
    read_format: cython.ulonglong,
    sample: cython.longlong[::1],
    identity: cython.ulonglong[::1],
    value: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """Fill the columns as far as they go; how long they have to be."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    members: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    times: cython.Py_ssize_t = (1 if read_format & 1 else 0) + (1 if read_format & 2 else 0)
    each: cython.Py_ssize_t = 2 + (1 if read_format & 16 else 0)
    with cython.nogil:
        for i in range(reading_at.shape[0]):
            at = reading_at[i]
            if at < 0:
                continue
            members = 1
            if read_format & 8:
                members = cython.cast(cython.Py_ssize_t, _read(words, at, big))
                members = min(members, _MEMBERS)
                at += 1 + times
            for k in range(members):
                if count < sample.shape[0]:
                    sample[count] = i
                    value[count] = _read(words, at, big)
                    # Alone, a counter has its times between its value and its ID.
                    identity[count] = _read(words, at + 1 + (0 if read_format & 8 else times), big)
                count += 1
                at += each
    return count
