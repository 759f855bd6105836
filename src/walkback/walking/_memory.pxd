# The C face of memory, for the walk.

cdef class Segments:
    cdef const unsigned char[::1] buffer
    cdef const unsigned char[::1] following
    cdef const unsigned long long[::1] words
    cdef const unsigned long long[::1] segment_start
    cdef const unsigned long long[::1] segment_size
    cdef const long long[::1] segment_offset
    cdef bint big
    cdef bint swaps
    cdef Py_ssize_t first
    cdef Py_ssize_t end
    cdef unsigned long long cut
    cdef unsigned long long value

    cdef int use(self, long long first, long long end, unsigned long long cut) except -1 nogil
    cdef bint load(self, unsigned long long address, int size) except -1 nogil
    cdef bint load_code(self, unsigned long long address, int size) except -1 nogil
    cdef bint is_cut_off(self, unsigned long long address, int size) except -1 nogil
    cdef Py_ssize_t _place(self, unsigned long long address, int size) except -2 nogil
    cdef unsigned long long _byte(self, Py_ssize_t place) except? 0xFF00 nogil
