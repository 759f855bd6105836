"""Code decoded from one end to the other (compiled)."""

import cython
import numpy as np

from walkback.base.views import takes_views
from walkback.code.machines import AARCH64, SLACK

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode

COLUMNS = (
    "length", "flow", "effect", "condition", "first", "second", "count", "base", "index", "scale", "offset", "width",
    "signed", "moved", "before", "target", "clobbers", "changes",
)  # fmt: skip


def listing(machine, code, address):
    """A row for each instruction, one behind the other, as an array of 64-bit integers: see `COLUMNS`.

    The columns are those of an `Instruction`; `changes` are what its method of that name returns.
    """
    rows = np.zeros((len(code) // (4 if machine == AARCH64 else 1) + 1, len(COLUMNS)), np.int64)
    return rows[: _listing(machine, np.frombuffer(bytes(code) + bytes(SLACK), np.uint8), len(code), address, rows)]


@takes_views
def _listing(
    machine: cython.int,
    code: cython.const[cython.uchar][::1],
    size: cython.Py_ssize_t,
    address: cython.ulonglong,
    rows: cython.longlong[:, ::1],
):
    pos: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t = 0
    found: Instruction = Instruction()
    start: cython.pointer(cython.const[cython.uchar]) = cython.address(code[0]) if cython.compiled else code
    with cython.nogil:
        while pos < size:
            decode(machine, start, pos, size, address + pos, found)
            rows[row, 0] = found.length
            rows[row, 1] = found.flow
            rows[row, 2] = found.effect
            rows[row, 3] = found.condition
            rows[row, 4] = found.first
            rows[row, 5] = found.second
            rows[row, 6] = found.count
            rows[row, 7] = found.base
            rows[row, 8] = found.index
            rows[row, 9] = found.scale
            rows[row, 10] = found.offset
            rows[row, 11] = found.width
            rows[row, 12] = found.signed
            rows[row, 13] = found.moved
            rows[row, 14] = found.before
            rows[row, 15] = as_signed(found.target)
            rows[row, 16] = as_signed(found.clobbers)
            rows[row, 17] = as_signed(found.changes())
            pos += found.length
            row += 1
    return row
