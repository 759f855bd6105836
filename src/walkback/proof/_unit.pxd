# The C face of a unit, for the walk through it.

from walkback.base.growing cimport Growing
from walkback.proof._state cimport State

cdef class Unit:
    # The ranges of the table
    cdef const unsigned long long[::1] start
    cdef const long long[::1] size
    cdef const long long[::1] pos
    # Those of this unit
    cdef const long long[::1] members
    cdef unsigned long long[::1] address
    cdef long long[::1] base
    # Whether each goes on with another stack: AWAY and LEFT
    cdef unsigned char[::1] switched
    cdef Py_ssize_t first
    cdef Py_ssize_t count
    cdef long long total
    # The range where the walk is, and with what it comes
    cdef Py_ssize_t member
    cdef Py_ssize_t number
    cdef long long begin
    cdef long long end
    cdef long long code_at
    cdef State state
    cdef long long source
    # Ways that were put off: the place, the state, the source and 1, the trust or WALKED if it was taken, and whether
    # all of it is supposed
    cdef Growing doubts
    # Whether there are no rules to go by, so that what is supposed has to be kept apart
    cdef bint free
    # Whether no way is put off any more
    cdef bint takes_all
    cdef bint assumed
    # Whether a jump leads to a place that was not found: certainly in the unit, or perhaps
    cdef bint unresolved
    cdef bint led_away
    # Whether control came to what is no instruction
    cdef bint is_bad
    # A `Trust`: that control comes here
    cdef int trust
    # For each byte of it
    cdef int[::1] head
    cdef int[::1] owner
    cdef unsigned char[::1] length
    cdef unsigned char[::1] verdict
    cdef unsigned char[::1] what
    cdef unsigned char[::1] first_verdict
    cdef unsigned char[::1] first_what
    cdef unsigned char[::1] first_assumed
    # Blocks
    cdef long long[::1] block_place
    cdef long long[::1] block_state
    cdef long long[::1] block_end
    cdef long long[::1] block_source
    cdef long long[::1] block_waits
    cdef long long[::1] block_assumed
    cdef long long[::1] block_trust
    cdef Py_ssize_t block_count
    cdef int[::1] queue
    cdef Py_ssize_t queued
    cdef bint is_full
    cdef long long[::1] arena
    cdef Py_ssize_t arena_used

    cdef int room(self, Py_ssize_t size) except -1 nogil
    cdef int room_for_members(self) except -1 nogil
    cdef int more_blocks(self) except -1 nogil
    cdef int more_arena(self) except -1 nogil
    cdef bint open(self, Py_ssize_t first, Py_ssize_t end) except -1 nogil
    cdef Py_ssize_t member_of(self, long long place) noexcept nogil
    cdef long long place_of(self, unsigned long long address) noexcept nogil
    cdef bint is_described(self, unsigned long long address) noexcept nogil
    cdef unsigned long long address_of(self, long long place) noexcept nogil
    cdef int enter(self, long long place) noexcept nogil
    cdef bint has_room(self, Py_ssize_t words) except -1 nogil
    cdef bint join(self, Py_ssize_t at) except -1 nogil
    cdef Py_ssize_t keep(self) except -1 nogil
    cdef int put_off(self, long long place) except -1 nogil
    cdef int bring(self, Py_ssize_t doubt) noexcept nogil
    cdef int take(self, Py_ssize_t doubt) except -1 nogil
    cdef long long wrong_places(self) noexcept nogil
    cdef int note_verdicts(self) noexcept nogil
    cdef int weigh_verdicts(self) noexcept nogil
    cdef int doubt_assumed(self) noexcept nogil
    cdef int enqueue(self, Py_ssize_t block) noexcept nogil
    cdef Py_ssize_t next(self) noexcept nogil
    cdef Py_ssize_t start_block(self, long long place) except -1 nogil
    cdef int renew(self, Py_ssize_t block) except -1 nogil
    cdef int flow(self, long long place) except -1 nogil
    cdef int take_up(self, Py_ssize_t block) noexcept nogil
    cdef bint agrees(self, long long place) noexcept nogil
    cdef bint is_of_another(self, long long place, Py_ssize_t block) noexcept nogil
    cdef bint is_inside(self, long long place, Py_ssize_t block) noexcept nogil
