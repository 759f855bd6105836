# The C face of Expressions, for the walk.

cdef class Expressions:
    cdef const unsigned char[::1] bytes
    cdef long long[::1] first
    cdef long long[::1] end
    cdef unsigned long long[::1] registers
    cdef unsigned long long[::1] stack
    cdef bint big
    cdef unsigned long long known
    cdef unsigned long long bias
    cdef unsigned long long address
    cdef int size
    cdef Py_ssize_t position
    cdef Py_ssize_t stop
    cdef Py_ssize_t start_position
    cdef Py_ssize_t depth
    cdef int done
    cdef unsigned long long operand

    cdef int start(
        self, long long number, unsigned long long known, unsigned long long cfa, bint is_cfa, unsigned long long bias
    ) except -1 nogil
    cdef int take(self, unsigned long long value) except -1 nogil
    cdef unsigned long long result(self) except? 1 nogil
    cdef int _run(self) except -1 nogil
    cdef int _binary(self, int code) except -1 nogil
    cdef inline int _register(self, int code) except -1 nogil
    cdef int _pick(self) except -1 nogil
    cdef int _dereference(self, int code) except -1 nogil
    cdef int _turn(self, Py_ssize_t count) except -1 nogil
    cdef int _unary(self, int code) except -1 nogil
    cdef int _fixed(self, int size, bint signed) except -1 nogil
    cdef int _leb(self, bint signed) except -1 nogil
    cdef inline int _push(self, unsigned long long value) except -1 nogil
    cdef int _branch(self, int code) except -1 nogil
