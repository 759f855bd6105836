# The C face of a state, for the walk through code.

from walkback.code._instruction cimport Instruction

cdef class State:
    cdef int registers
    cdef int sp
    cdef int fp
    cdef int ra
    cdef long long entry_offset
    cdef unsigned long long preserved
    cdef unsigned long long watched
    cdef bint big
    # What holds now
    cdef long long[::1] values
    cdef long long[::1] keys
    cdef long long[::1] saved
    cdef int slots
    cdef bint lost
    cdef bint changed
    # The last comparison, and what it says of an index
    cdef int compared
    cdef int compared_first
    cdef int compared_second
    cdef long long compared_number
    cdef int bound_register
    cdef long long bound
    # Tables of jumps that were met
    cdef long long[:, ::1] tables
    cdef int table_count

    cdef int enter(self) noexcept nogil
    cdef int size(self) noexcept nogil
    cdef int write(self, long long[::1] arena, Py_ssize_t at) noexcept nogil
    cdef int read(self, long long[::1] arena, Py_ssize_t at) noexcept nogil
    cdef bint join(self, long long[::1] arena, Py_ssize_t at) noexcept nogil
    cdef int set(self, int register, long long value) noexcept nogil
    cdef long long get(self, int register) noexcept nogil
    cdef long long load(self, long long place) noexcept nogil
    cdef int store(self, long long place, int width, long long value) noexcept nogil
    cdef int forget(self, long long place, int width) noexcept nogil
    cdef int clobber(self, unsigned long long mask) noexcept nogil
    cdef int call(self, unsigned long long changed) noexcept nogil
    cdef int apply(self, Instruction one, unsigned long long address) noexcept nogil
    cdef int copy(self, Instruction one, long long value) noexcept nogil
    cdef int access(self, Instruction one) noexcept nogil
    cdef int access_one(self, Instruction one, int number, long long place) noexcept nogil
    cdef long long sum(self, Instruction one) noexcept nogil
    cdef long long table_value(self, Instruction one) noexcept nogil
    cdef int table(self, long long address, int width, bint signed) noexcept nogil
    cdef int compare(self, Instruction one) noexcept nogil
    cdef bint assume(self, int condition) noexcept nogil
