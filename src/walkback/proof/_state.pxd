# The C face of a state, for the walk through code.

from walkback.proof._registers cimport Registers

cdef class State(Registers):
    # How far from the CFA the stack pointer can come
    cdef long long highest
    # The stack pointer of the caller, where functions save it; else no value
    cdef long long saved_stack
    # The registers that calls may be passed pointers in
    cdef unsigned long long passed
    # What is saved on the stack, and where
    cdef long long[::1] keys
    cdef long long[::1] saved
    cdef int slots
    # Where the same slots are stored, with the states of a unit; -1 if they are not
    cdef long long slots_at
    # The set of claims that was proved of the state when it changed last, as they are about it; -1 if none was
    cdef long long proved
    # Whether something was saved that no slot has
    cdef bint lost
    # Registers of the caller, or the return address, whose only copy a store went over that is none of a register
    cdef unsigned long long destroyed
    # Whether a node on the stack may have got links to itself since that was looked at
    cdef bint may_link

    cdef bint is_followed(self, long long place) noexcept nogil
    cdef long long load(self, long long place) noexcept nogil
    cdef int store(self, long long place, int width, long long value, bint through) noexcept nogil
    cdef int forget(self, long long place, int width, bint is_array) noexcept nogil
    cdef bint overwrite(self, int slot, bint wholly, bint exactly) noexcept nogil
    cdef int note_destroyed(self, long long value) noexcept nogil
    cdef int let_call_write(self, long long kept) noexcept nogil
    cdef bint may_be_written(self, int slot) noexcept nogil
    cdef int drop_rings(self) noexcept nogil
    cdef bint is_link(self, int slot, long long node) noexcept nogil
    cdef int drop_below(self) noexcept nogil
    cdef int note_slots(self) noexcept nogil
    cdef int drop(self, int slot) noexcept nogil
    cdef int call(self, unsigned long long changed, unsigned long long broken, bint is_odd) noexcept nogil
