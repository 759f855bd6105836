# The C face of the tables, for the kernels that number what they read.

cdef class KeyTable:
    cdef unsigned long long[::1] keys
    cdef int[::1] slots
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t mask
    cdef Py_ssize_t place
    cdef int shift
    cdef unsigned long long multiplier

    cdef Py_ssize_t _slot(self, unsigned long long key) noexcept nogil
    cdef int find(self, unsigned long long key) noexcept nogil
    cdef int find_next(self, unsigned long long key) noexcept nogil
    cdef int _find_from(self, Py_ssize_t slot, unsigned long long key) noexcept nogil
    cdef int add(self, unsigned long long key) except -1 nogil
    cdef int _grow(self) except -1 with gil
    cdef int _spread(self) except -1

cdef class Interner:
    cdef const unsigned char[::1] buffer
    cdef KeyTable table
    cdef long long[::1] positions
    cdef long long[::1] lengths

    cdef int add(self, Py_ssize_t position, Py_ssize_t length, unsigned int tag) except -1 nogil
    cdef int add_short(
        self, unsigned long long value, Py_ssize_t position, Py_ssize_t length, unsigned int tag
    ) except -1 nogil
    cdef int _new(self, unsigned long long key, Py_ssize_t position, Py_ssize_t length) except -1 nogil
    cdef int _grow(self) except -1 with gil
    cdef int _equal(self, int number, Py_ssize_t position, Py_ssize_t length) except -1 nogil
