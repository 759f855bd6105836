# The C face of growing rows, for the kernels that find them.

cdef class Growing:
    cdef Py_ssize_t width
    cdef Py_ssize_t used
    cdef unsigned long long[::1] numbers

    cdef int clear(self) noexcept nogil
    cdef int add(
        self,
        unsigned long long first,
        unsigned long long second=*,
        unsigned long long third=*,
        unsigned long long fourth=*,
        unsigned long long fifth=*,
    ) except -1 nogil
    cdef int _grow(self) except -1 with gil
