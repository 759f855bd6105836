# The C face of a state, for the walk through code.

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
    cdef bint is_return_address(self, int register) noexcept nogil
    cdef bint moved_return(self) noexcept nogil
    cdef int call(self, unsigned long long changed) noexcept nogil
