# The C face of edges, for the walk along them.

from walkback.code._instruction cimport Instruction
from walkback.proof._ways cimport Ways

cdef class Edges(Ways):
    # The instruction that was read last
    cdef Instruction one
    cdef long long pos
    cdef Instruction other
    # Of the ranges of the table
    cdef const unsigned char[::1] is_stub
    cdef const unsigned char[::1] is_target
    cdef const unsigned char[::1] leaps
    # The registers that the last call overwrites, and those that may keep only the return address
    cdef unsigned long long linked
    cdef unsigned long long overwritten
    # How many bytes below the stack pointer calls keep
    cdef const unsigned char[::1] kept_below
    # Whether the last call may not come back
    cdef bint doubt
    # Whether the return address is lost where the function goes back
    cdef bint astray

    cdef int clear(self) noexcept nogil
    cdef int read(self, long long place) noexcept nogil
    cdef bint step(self) except -1 nogil
    cdef int point_below(self) noexcept nogil
    cdef int go_back(self) noexcept nogil
    cdef bint returns_to_caller(self) noexcept nogil
    cdef bint executes(self, unsigned long long address) noexcept nogil
    cdef int execute_at(self) noexcept nogil
    cdef bint branch(self) except -1 nogil
    cdef bint is_compared(self) noexcept nogil
    cdef bint call(self) except -1 nogil
    cdef bint surely_comes_back(self) noexcept nogil
    cdef bint goes_through_silent_word(self) noexcept nogil
    cdef int go_beyond(self) except -1 nogil
    cdef int call_within(self, long long place) except -1 nogil
    cdef bint begins_thunk(self, long long place) noexcept nogil
    cdef bint follow_call(self) except -1 nogil
    cdef int jump(self) except -1 nogil
