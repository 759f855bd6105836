# The C face of the rows, for the walk past them.

from walkback.proof._claims cimport Claims
from walkback.proof._state cimport State
from walkback.proof._unit cimport Unit

cdef class Rows:
    cdef Claims claims
    cdef State state
    cdef Unit unit
    # The set of claims of a frame that is linked, before that of one that is not yet; -1 to judge the table's
    cdef Py_ssize_t chain
    # Whether there are no rows, as rules are to be found
    cdef bint free
    # Of the ranges of the table
    cdef const long long[::1] first_row
    cdef const long long[::1] rows
    cdef const unsigned int[::1] block
    cdef const unsigned int[::1] row_offset
    cdef const unsigned int[::1] row_claims
    # What was found last: a range, from where to where its row holds, the set of claims
    cdef Py_ssize_t number
    cdef long long begin
    cdef long long end
    cdef long long set
    # What was recorded last, and up to which place it goes on if the state does not change
    cdef unsigned char said
    cdef unsigned char cause
    cdef long long until

    cdef long long find(self, long long place) noexcept nogil
    cdef bint begin_alike(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef int judge(self, long long place) noexcept nogil
    cdef int record(self, long long place, bint is_call) noexcept nogil
    cdef int record_return(self, long long place, long long last) noexcept nogil
    cdef int record_overwritten(
        self, long long place, long long last, unsigned long long linked, unsigned long long overwritten
    ) noexcept nogil
    cdef bint has_no_caller(self, long long place) noexcept nogil
    cdef int deny(self, long long place, int what) noexcept nogil
    cdef int record_chain(self, long long place, bint is_call) noexcept nogil
    cdef bint suppose(self, long long place) noexcept nogil
