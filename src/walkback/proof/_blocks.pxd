# The C face of blocks, for the walk through all of a unit.

from walkback.proof._code cimport Code
from walkback.proof._edges cimport Edges
from walkback.proof._rows cimport Rows
from walkback.proof._state cimport State
from walkback.proof._unit cimport Unit

cdef class Blocks:
    cdef Code code
    cdef State state
    cdef Unit unit
    cdef Rows rows
    cdef Edges edges
    # Of the ranges of the table
    cdef const unsigned char[::1] is_entry
    cdef long long steps
    # Whether there is no table, and rules are to be found
    cdef bint free
    # Whether the unit asks the kernel for something
    cdef bint asks

    cdef bint settle(self) except -1 nogil
    cdef int walk(self, Py_ssize_t block) except -1 nogil
    cdef bint is_doubtful(self, long long place, long long behind, unsigned long long lost) noexcept nogil
    cdef bint is_between(self, long long place) noexcept nogil
    cdef bint may_begin_function(self, long long place) noexcept nogil
    cdef int fall(self) except -1 nogil
    cdef int read(self, long long place) noexcept nogil
    cdef int go_on(self, long long at, long long place) except -1 nogil
