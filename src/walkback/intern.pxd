# The C face of Interner, for the kernels that number strings while they read.

cdef class Interner:
    cdef const unsigned char[::1] buffer
    cdef int[::1] slots
    cdef unsigned long long[::1] keys
    cdef long long[::1] positions
    cdef long long[::1] lengths
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t slot_mask
    cdef int shift
    cdef unsigned long long multiplier

    cdef int _fill_slots(self) except -1
    cdef Py_ssize_t _slot(self, unsigned long long key) except -1 nogil
    cdef int add(self, Py_ssize_t position, Py_ssize_t length, unsigned int tag) except -1 nogil
    cdef int add_short(
        self, unsigned long long value, Py_ssize_t position, Py_ssize_t length, unsigned int tag
    ) except -1 nogil
    cdef int _add_key(self, unsigned long long key, Py_ssize_t position, Py_ssize_t length) except -1 nogil
    cdef int _equal(self, int number, Py_ssize_t position, Py_ssize_t length) except -1 nogil
