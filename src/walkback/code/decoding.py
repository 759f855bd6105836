"""One instruction of whichever machine (a face: kernels compile this in)."""

import cython

from walkback.code._instruction import Instruction
from walkback.code.aarch64._decode import decode_aarch64
from walkback.code.amd64._decode import decode_amd64
from walkback.code.filling import clear
from walkback.code.machines import AARCH64, AMD64
from walkback.code.s390x._decode import decode_s390x


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
        return decode_amd64(code, pos, end, address, out)
    if machine == AARCH64:
        return decode_aarch64(code, pos, end, address, out)
    return decode_s390x(code, pos, end, address, out)
