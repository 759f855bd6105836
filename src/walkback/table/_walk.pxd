# The C face of two tables side by side.

cdef class TablePlace:
    cdef const int[::1] piece_section
    cdef const unsigned long long[::1] piece_start
    cdef const unsigned long long[::1] piece_last
    cdef const long long[::1] piece_range
    cdef const unsigned long long[::1] range_start
    cdef const long long[::1] first_row
    cdef const long long[::1] rows
    cdef const unsigned int[::1] block
    cdef const unsigned int[::1] row_offset
    cdef const unsigned int[::1] row_rule
    cdef Py_ssize_t piece
    cdef Py_ssize_t range
    cdef Py_ssize_t rule
    cdef unsigned long long next
    cdef unsigned long long base
    cdef unsigned long long end
    cdef Py_ssize_t row

    cdef int leave(self, int section) except -1 nogil
    cdef int step(self, int section) except -1 nogil
    cdef int settle(self, unsigned long long place) except -1 nogil

cdef class Meaning:
    cdef const long long[::1] of_rule
    cdef const unsigned char[::1] signed
    cdef const unsigned char[::1] signal
    cdef const unsigned char[::1] key

    cdef Py_ssize_t at(self, TablePlace walk) except -2 nogil

cdef class UnequalStretches:
    cdef long long[:, ::1] numbers
    cdef Py_ssize_t count
    cdef unsigned long long[::1] sums
    cdef unsigned char[::1] one
    cdef unsigned char[::1] other

    cdef int add(
        self, int section, unsigned long long start, unsigned long long size, int verdict,
        TablePlace one, TablePlace other
    ) except -1 nogil
    cdef int grow(self) except -1 with gil
