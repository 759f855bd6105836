# The C face of what is noted along a range, for what reads it.

from walkback.code._instruction cimport Instruction

cdef class Along:
    cdef int machine
    # The register with the number of what the kernel is asked for
    cdef int number
    # Those that have something at the entry, and those that calls keep
    cdef unsigned long long passed
    cdef unsigned long long kept
    # Those that get values, and those that say where control goes
    cdef unsigned long long given
    cdef unsigned long long through
    # What registers have
    cdef long long[::1] constants
    # Whether the number is given at all, whether that is one of a thread or not known, and whether that matters
    cdef bint is_given
    cdef bint is_other
    cdef bint is_open
    # Whether the kernel is asked for a thread
    cdef bint may_fork

    cdef int begin(self, unsigned long long kept) noexcept nogil
    cdef int begin_block(self) noexcept nogil
    cdef int note(self, Instruction one, bint asks) noexcept nogil
    cdef int follow(self, Instruction one, unsigned long long changed) noexcept nogil
    cdef int ask(self, const unsigned char[::1] code, Py_ssize_t at) noexcept nogil
    cdef bint forks(self, long long asked) noexcept nogil
    cdef bint asks_for_fork(self) noexcept nogil
    cdef bint saves_more(self, Instruction one) noexcept nogil
    cdef int note_way(self, Instruction one) noexcept nogil
    cdef bint is_passed_more(self) noexcept nogil
