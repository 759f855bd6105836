"""Constants of perf.data, in the words of the kernel's and perf's headers."""

from __future__ import annotations

from enum import IntEnum

MAGIC = b"PERFILE2"
MAGICS = (MAGIC, MAGIC[::-1])
"""Of either byte order."""
"""As a little-endian machine writes it; a big-endian one writes it backwards."""
FILE_HEADER = 104
PIPE_HEADER = 16

RECORD_HEADER = 8
"""type (4), misc (2), size (2)"""
RECORD_MISC_AT = 4
RECORD_SIZE_AT = 6

# Records of the kernel

MMAP = 1
LOST = 2
COMM = 3
EXIT = 4
FORK = 7
SAMPLE = 9
MMAP2 = 10
LOST_SAMPLES = 13
SWITCH = 14
SWITCH_CPU_WIDE = 15
KSYMBOL = 17
CALLCHAIN_DEFERRED = 22
LAST_KERNEL_RECORD = 22
"""What comes up to here is known, if only to be passed over."""

# Records of perf

USER_RECORDS = 64
HEADER_ATTR = 64
HEADER_TRACING_DATA = 66
HEADER_BUILD_ID = 67
FINISHED_ROUND = 68
AUXTRACE = 71
EVENT_UPDATE = 78
HEADER_FEATURE = 80
COMPRESSED = 81
COMPRESSED2 = 83
LAST_USER_RECORD = 85

# Bits of `misc`

CPUMODE_MASK = 7
CPUMODE_KERNEL = 1
CPUMODE_USER = 2
MISC_MMAP_DATA = 1 << 13
MISC_COMM_EXEC = 1 << 13
MISC_FORK_EXEC = 1 << 13
MISC_SWITCH_OUT = 1 << 13
MISC_MMAP_BUILD_ID = 1 << 14
MISC_BUILD_ID_SIZE = 1 << 15

# Bits of `sample_type`

SAMPLE_IP = 1 << 0
SAMPLE_TID = 1 << 1
SAMPLE_TIME = 1 << 2
SAMPLE_ADDR = 1 << 3
SAMPLE_READ = 1 << 4
SAMPLE_CALLCHAIN = 1 << 5
SAMPLE_ID = 1 << 6
SAMPLE_CPU = 1 << 7
SAMPLE_PERIOD = 1 << 8
SAMPLE_STREAM_ID = 1 << 9
SAMPLE_RAW = 1 << 10
SAMPLE_BRANCH_STACK = 1 << 11
SAMPLE_REGS_USER = 1 << 12
SAMPLE_STACK_USER = 1 << 13
SAMPLE_WEIGHT = 1 << 14
SAMPLE_DATA_SRC = 1 << 15
SAMPLE_IDENTIFIER = 1 << 16
SAMPLE_TRANSACTION = 1 << 17
SAMPLE_REGS_INTR = 1 << 18
SAMPLE_PHYS_ADDR = 1 << 19
SAMPLE_AUX = 1 << 20
SAMPLE_CGROUP = 1 << 21
SAMPLE_DATA_PAGE_SIZE = 1 << 22
SAMPLE_CODE_PAGE_SIZE = 1 << 23
SAMPLE_WEIGHT_STRUCT = 1 << 24

SAMPLE_FIELDS = (
    *(SAMPLE_IDENTIFIER, SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ADDR),
    *(SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_PERIOD),
)
"""The fields of one word each that samples begin with, in their order."""
SAMPLE_ID_FIELDS = (SAMPLE_TID, SAMPLE_TIME, SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_IDENTIFIER)
"""Those that other records end with, in their order."""

# Bits of `read_format`

READ_TOTAL_TIME_ENABLED = 1 << 0
READ_TOTAL_TIME_RUNNING = 1 << 1
READ_ID = 1 << 2
READ_GROUP = 1 << 3
READ_LOST = 1 << 4

RAW_SIZE = 4
"""Bytes of the size that raw data begin with; they end with a word."""
BRANCH_WORDS = 3
"""from, to, flags; and counters, where `BRANCH_COUNTERS` is set"""

# Bits of `branch_sample_type`

BRANCH_HW_INDEX = 1 << 17
BRANCH_COUNTERS = 1 << 19

# What stands in a call chain instead of an address, to say what the addresses behind it are

CONTEXT_KERNEL = 2**64 - 128
CONTEXT_USER = 2**64 - 512
CONTEXT_DEFERRED = 2**64 - 640
CONTEXT_FARTHEST = 2**64 - 4095

REGS_ABI_NONE = 0
REGS_ABI_32 = 1
REGS_ABI_64 = 2

# `perf_event_attr`

ATTR_SMALLEST = 64
ATTR_LARGEST = 136
"""More than this is not read."""
ATTR_DISABLED = 0
"""Bits of its flags, counted as the compiler lays out bit fields: from below, on big-endian machines from above."""
ATTR_INHERIT = 1
ATTR_EXCLUDE_KERNEL = 5
ATTR_EXCLUDE_HV = 6
ATTR_EXCLUDE_IDLE = 7
ATTR_MMAP = 8
ATTR_COMM = 9
ATTR_FREQ = 10
ATTR_ENABLE_ON_EXEC = 12
ATTR_TASK = 13
ATTR_WATERMARK = 14
ATTR_MMAP_DATA = 17
ATTR_SAMPLE_ID_ALL = 18
ATTR_EXCLUDE_CALLCHAIN_KERNEL = 21
ATTR_EXCLUDE_CALLCHAIN_USER = 22
ATTR_MMAP2 = 23
ATTR_COMM_EXEC = 24
ATTR_USE_CLOCKID = 25
ATTR_CONTEXT_SWITCH = 26
ATTR_DEFER_CALLCHAIN = 38
ATTR_DEFER_OUTPUT = 39
CLOCK_MONOTONIC = 1

# Feature sections

FEATURE_BUILD_ID = 2
FEATURE_HOSTNAME = 3
FEATURE_OSRELEASE = 4
FEATURE_ARCH = 6
FEATURE_EVENT_DESC = 12
FEATURE_DIR_FORMAT = 24
FEATURE_CLOCK_DATA = 29
FEATURES = 256

EVENT_UPDATE_NAME = 2

PROT_READ, PROT_EXEC = 1, 4
KERNEL_PID = -1
MOST_MAPPINGS = 1 << 17
"""In one process; Linux allows 65,530 by default."""


class ScanEnd(IntEnum):
    """What stands where the records of a buffer end."""

    WHOLE = 0
    """A record, or nothing."""
    CUT = 1
    """Less than a record."""
    BAD = 2
    """Something whose size is none."""


class SampleStatus(IntEnum):
    """What became of a sample."""

    FINE = 0
    NO_REGISTERS = 1
    NARROW = 2
    """Its registers are those of a 32-bit program."""
    DAMAGED = 3
    NO_PROGRAM = 4
    """Registers are recorded, and its thread has none outside the kernel: one of the kernel's own."""
