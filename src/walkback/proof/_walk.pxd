# The C face of the walk, for what sums it up.

from walkback.code._instruction cimport Instruction
from walkback.proof._claims cimport Claims
from walkback.proof._code cimport Code
from walkback.proof._state cimport State
from walkback.proof._unit cimport Unit

cdef class Walk:
    cdef Unit unit
    cdef Code code
    cdef Claims claims
    cdef State state
    cdef Instruction one
    cdef Instruction other
    # Of the ranges of the table
    cdef const long long[::1] first_row
    cdef const long long[::1] rows
    cdef const unsigned int[::1] block
    cdef const unsigned char[::1] is_entry
    cdef const unsigned char[::1] is_stub
    cdef const unsigned long long[::1] stubs
    cdef const unsigned int[::1] row_offset
    cdef const unsigned int[::1] row_claims
    # Where exceptions go on: from where to where calls are, and the place
    cdef const long long[::1] pad_first
    cdef const unsigned long long[:, ::1] pads
    # Places behind calls that may not come back
    cdef long long[:, ::1] doubtful
    cdef Py_ssize_t doubts
    cdef bint unresolved
    cdef bint swept
    cdef long long steps
    # Where the walk is
    cdef Py_ssize_t member
    cdef long long number
    cdef long long code_at
    cdef unsigned long long address_at
    cdef long long row_begin
    cdef long long row_end
    cdef long long row_set
    cdef long long judged
    cdef long long source
    cdef bint assumed
    cdef bint doubt

    cdef int more_doubts(self) except -1 nogil
    cdef bint run(self, Py_ssize_t first, Py_ssize_t end) except -1 nogil
    cdef int begin(self) except -1 nogil
    cdef int begin_stubs(self, Py_ssize_t member, long long number) except -1 nogil
    cdef bint settle(self) except -1 nogil
    cdef int walk(self, Py_ssize_t block) except -1 nogil
    cdef int fall(self, unsigned long long address) except -1 nogil
    cdef int return_to(self, Py_ssize_t block) noexcept nogil
    cdef int go_on(self, long long at, long long place) except -1 nogil
    cdef int enter_member(self, Py_ssize_t member) noexcept nogil
    cdef int judge(self, long long place) noexcept nogil
    cdef int find_row(self, long long offset) noexcept nogil
    cdef int record(self, long long place) noexcept nogil
    cdef bint step(self, unsigned long long address) except -1 nogil
    cdef int execute(self) noexcept nogil
    cdef bint branch(self) except -1 nogil
    cdef int flow_to(self, unsigned long long address) except -1 nogil
    cdef bint call(self, unsigned long long address) except -1 nogil
    cdef int catch(self, unsigned long long address) except -1 nogil
    cdef int take_arguments(self, long long place) noexcept nogil
    cdef int jump(self) except -1 nogil
    cdef bint follow_table(self, int number, bint is_relative) except -1 nogil
    cdef bint can_begin(self, long long place) noexcept nogil
    cdef int sweep(self) noexcept nogil
    cdef int put_off(self, long long place) except -1 nogil
    cdef int decide_doubts(self) except -1 nogil
    cdef bint fill_gaps(self) except -1 nogil
    cdef bint assume_row(self, long long place) except -1 nogil
    cdef int find_row_of(self, long long place) noexcept nogil
