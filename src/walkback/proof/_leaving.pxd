# The C face of how ranges are left, for what follows them.

from walkback.base.growing cimport Growing
from walkback.code._instruction cimport Instruction
from walkback.proof._code cimport Code
from walkback.proof._edges cimport Edges
from walkback.proof._state cimport State
from walkback.proof._unit cimport Unit

cdef class Leaving:
    # Where the walk is
    cdef Edges edges
    cdef Instruction one
    cdef State state
    cdef Unit unit
    cdef Code code
    cdef const unsigned char[::1] is_entry
    # What is noted of ranges
    cdef unsigned short[::1] seen
    cdef Growing tails

    cdef int note(self, Py_ssize_t block) except -1 nogil
    cdef bint is_by_table(self, int kind) noexcept nogil
    cdef bint is_out(self) noexcept nogil
    cdef int note_joining(self, Py_ssize_t root, Py_ssize_t block) except -1 nogil
    cdef int note_return(self, bint is_right, Py_ssize_t root) noexcept nogil
    cdef bint is_usual_return(self) noexcept nogil
    cdef bint differs(self, long long place, Py_ssize_t here) noexcept nogil
    cdef Py_ssize_t root(self, Py_ssize_t block) noexcept nogil
