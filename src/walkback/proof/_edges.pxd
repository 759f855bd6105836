# The C face of edges, for the walk along them.

from walkback.base.growing cimport Growing
from walkback.code._instruction cimport Instruction
from walkback.proof._code cimport Code
from walkback.proof._labels cimport Labels
from walkback.proof._rows cimport Rows
from walkback.proof._state cimport State
from walkback.proof._unit cimport Unit

cdef class Edges:
    cdef Code code
    cdef State state
    cdef Unit unit
    cdef Rows rows
    # The instruction that was read last
    cdef Instruction one
    cdef unsigned long long address
    cdef long long pos
    cdef Instruction other
    # Of the ranges of the table
    cdef const unsigned char[::1] is_stub
    cdef const unsigned char[::1] is_target
    cdef const unsigned char[::1] is_entry
    cdef const unsigned char[::1] leaps
    # The registers that the last call overwrites, and those that may keep only the return address
    cdef unsigned long long linked
    cdef unsigned long long overwritten
    # How many bytes below the stack pointer calls keep
    cdef const unsigned char[::1] kept_below
    # Where exceptions go on: from where to where calls are, and the place
    cdef const long long[::1] pad_first
    cdef const unsigned long long[::1] pad_start
    cdef const unsigned long long[::1] pad_end
    cdef const unsigned long long[::1] pad_place
    # The one of the call before
    cdef unsigned long long caught
    # How many bytes of arguments are on the stack at calls, from where on
    cdef const unsigned long long[::1] pushed_from
    cdef const unsigned long long[::1] pushed
    # Where Linux may go on without executing an instruction
    cdef const unsigned long long[::1] way_from
    cdef const unsigned long long[::1] way_to
    cdef Labels labels
    # Whether the last call may not come back
    cdef bint doubt
    # Where control goes with a frame on the stack, outside of the unit
    cdef Growing framed
    # Where tables lead outside of the unit: rows of a range, an address, and a way
    cdef Growing by_tables
    # How many entries of tables were followed
    cdef long long followed
    # Whether the return address is lost where the function goes back
    cdef bint astray
    # Whether it leaves as functions do, and whether it goes on as those that only jumps lead to
    cdef bint leaves_so
    cdef bint goes_on

    cdef int clear(self) noexcept nogil
    cdef int read(self, long long place) noexcept nogil
    cdef bint step(self) except -1 nogil
    cdef int point_below(self) noexcept nogil
    cdef bint is_optional(self, long long place) noexcept nogil
    cdef int go_without_it(self) except -1 nogil
    cdef int go_back(self) noexcept nogil
    cdef bint returns_to_caller(self) noexcept nogil
    cdef int note_leaving(self, bint goes_on) noexcept nogil
    cdef int leave_to(self, unsigned long long address) noexcept nogil
    cdef int leave(self) noexcept nogil
    cdef bint executes(self, unsigned long long address) noexcept nogil
    cdef int execute_at(self) noexcept nogil
    cdef bint branch(self) except -1 nogil
    cdef bint is_compared(self) noexcept nogil
    cdef int note_table(self, unsigned long long address) except -1 nogil
    cdef int note_frame(self, unsigned long long address) except -1 nogil
    cdef int lead_to(self, unsigned long long address, bint is_sure) except -1 nogil
    cdef int come_to(self, long long place, bint is_sure) except -1 nogil
    cdef bint call(self) except -1 nogil
    cdef bint surely_comes_back(self) noexcept nogil
    cdef int go_beyond(self) except -1 nogil
    cdef int call_within(self, long long place) except -1 nogil
    cdef bint begins_thunk(self, long long place) noexcept nogil
    cdef bint follow_call(self) except -1 nogil
    cdef int catch(self) except -1 nogil
    cdef bint fits(self, long long place) noexcept nogil
    cdef long long taken_off(self) noexcept nogil
    cdef int jump(self) except -1 nogil
    cdef bint follow_table(self, int number, bint is_relative) except -1 nogil
