# The C face of ways, for the edges along them.

from walkback.base.growing cimport Growing
from walkback.proof._code cimport Code
from walkback.proof._labels cimport Labels
from walkback.proof._rows cimport Rows
from walkback.proof._state cimport State
from walkback.proof._unit cimport Unit

cdef class Ways:
    cdef Code code
    cdef State state
    cdef Unit unit
    cdef Rows rows
    # Of the instruction
    cdef unsigned long long address
    # Of the ranges of the table
    cdef const unsigned char[::1] is_entry
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
    # How many entries of tables were followed
    cdef long long followed
    # Where control goes with a frame on the stack, outside of the unit
    cdef Growing framed
    # Where tables lead outside of the unit: rows of a range, an address, and a way
    cdef Growing by_tables
    # Whether it leaves as functions do, and whether it goes on as those that only jumps lead to
    cdef bint leaves_so
    cdef bint goes_on

    cdef int clear(self) noexcept nogil
    cdef int lead_to(self, unsigned long long address, bint is_sure) except -1 nogil
    cdef int come_to(self, long long place, bint is_sure) except -1 nogil
    cdef bint fits(self, long long place) noexcept nogil
    cdef bint follow_table(self, int number, bint is_relative) except -1 nogil
    cdef int catch(self) except -1 nogil
    cdef long long taken_off(self) noexcept nogil
    cdef int go_without_it(self) except -1 nogil
    cdef bint is_optional(self, long long place) noexcept nogil
    cdef int leave_to(self, unsigned long long address) noexcept nogil
    cdef int leave(self) noexcept nogil
    cdef int note_leaving(self, bint goes_on) noexcept nogil
    cdef int note_frame(self, unsigned long long address) except -1 nogil
    cdef int note_table(self, unsigned long long address) except -1 nogil
