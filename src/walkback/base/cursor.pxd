# The C face of the cursor, for the kernels that read with it.

cdef class Cursor:
    cdef const unsigned char[::1] buffer
    cdef bint big
    cdef Py_ssize_t pos
    cdef Py_ssize_t end
    cdef bint failed

    cdef int move(self, Py_ssize_t pos, Py_ssize_t end) except -1 nogil
    cdef unsigned long long fixed(self, int size) noexcept nogil
    cdef unsigned long long uleb(self) noexcept nogil
    cdef bint _is_wide(self, Py_ssize_t behind) noexcept nogil
    cdef long long sleb(self) noexcept nogil

cdef long long as_signed(unsigned long long value) noexcept nogil
cdef unsigned long long swapped(unsigned long long value) noexcept nogil
cdef unsigned long long sign_extended(unsigned long long value, int size) noexcept nogil
