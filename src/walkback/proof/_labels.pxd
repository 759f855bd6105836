# The C face of labels, for the jumps that lead to them.

from walkback.code._instruction cimport Instruction
from walkback.proof._code cimport Code
from walkback.proof._unit cimport Unit

cdef class Labels:
    cdef Code code
    cdef Unit unit
    cdef Instruction one
    cdef bint swept
    # For each byte of the unit BEGINS or LABEL, or 0
    cdef unsigned char[::1] begins

    cdef int clear(self) noexcept nogil
    cdef bint begins_at(self, long long place) except -1 nogil
    cdef int sweep(self) noexcept nogil
    cdef int room(self, Py_ssize_t size) except -1 nogil
