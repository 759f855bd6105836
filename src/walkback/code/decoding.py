"""One instruction of whichever machine (a face: kernels compile this in).

Up to `SLACK` bytes behind the end are read.
"""

import cython

import walkback.code.aarch64._decode as aarch64
import walkback.code.amd64._decode as amd64
import walkback.code.s390x._decode as s390x
from walkback.code._instruction import Instruction
from walkback.code.filling import clear
from walkback.code.machines import AARCH64, AMD64


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def decode(
    machine: cython.int,
    code: cython.pointer(cython.const[cython.uchar]),
    pos: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    address: cython.ulonglong,
    out: Instruction,
) -> cython.int:
    """Decode the instruction at a place in the code, which has this address."""
    clear(out)
    if machine == AMD64:
        return amd64.decode(code, pos, end, address, out)
    if machine == AARCH64:
        return aarch64.decode(code, pos, end, address, out)
    return s390x.decode(code, pos, end, address, out)
