# The C face of the walk, for what sums it up.

from walkback.proof._blocks cimport Blocks

cdef class Walk(Blocks):
    # Of the ranges of the table
    cdef const unsigned int[::1] block
    cdef const unsigned char[::1] is_stub
    cdef const unsigned char[::1] is_likely
    cdef const unsigned char[::1] is_unprovable
    cdef const unsigned long long[::1] stubs
    # How many of the ways that were put off are decided, how many were tried, and how many entries are only supposed
    cdef Py_ssize_t decided
    cdef Py_ssize_t tried
    cdef Py_ssize_t supposed
    # Whether ranges that nothing calls are entered as their first rows say
    cdef bint otherwise

    cdef bint run(self, Py_ssize_t first, Py_ssize_t end) except -1 nogil
    cdef bint follow(self, Py_ssize_t first, Py_ssize_t end) except -1 nogil
    cdef bint may_begin_otherwise(self) noexcept nogil
    cdef bint walk_unit(self, Py_ssize_t first, Py_ssize_t end) except -1 nogil
    cdef int begin(self) except -1 nogil
    cdef int begin_at_last(self, bint is_likely) except -1 nogil
    cdef int begin_stubs(self, Py_ssize_t member) except -1 nogil
    cdef bint decide_doubts(self) except -1 nogil
    cdef bint take_fitting(self) except -1 nogil
    cdef bint suppose_entry(self) except -1 nogil
    cdef bint take_sure(self) except -1 nogil
    cdef bint take_the_rest(self) except -1 nogil
    cdef bint fill_gaps(self) except -1 nogil
    cdef int except_switches(self) noexcept nogil
