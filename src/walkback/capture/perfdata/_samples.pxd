# The C face of what takes samples apart.

cdef class Extraction:
    # The samples
    cdef const unsigned long long[::1] words
    cdef bint big
    cdef const long long[::1] offset
    cdef const long long[::1] size
    # Their shape
    cdef unsigned long long sample_type
    cdef unsigned long long read_format
    cdef unsigned long long branches
    cdef unsigned long long default_period
    # The fields of one word: how many there are, and the place of each that is taken; -1 for none
    cdef Py_ssize_t fixed
    cdef Py_ssize_t ip_at
    cdef Py_ssize_t tid_at
    cdef Py_ssize_t time_at
    cdef Py_ssize_t cpu_at
    cdef Py_ssize_t period_at
    # The column of each register that is recorded
    cdef const long long[::1] column
    cdef int sp
    cdef int copy_of_pc
    # The columns
    cdef int[::1] pid
    cdef int[::1] tid
    cdef unsigned long long[::1] time
    cdef unsigned long long[::1] period
    cdef int[::1] cpu
    cdef unsigned long long[::1] ip
    cdef unsigned long long[::1] registers
    cdef unsigned long long[::1] known
    cdef unsigned long long[::1] stack_start
    cdef unsigned long long[::1] stack_size
    cdef long long[::1] stack_offset
    cdef unsigned long long[::1] cut
    cdef long long[::1] chain_at
    cdef long long[::1] chain_length
    cdef unsigned char[::1] status
    cdef long long[::1] reading_at

    cdef int run(self, const long long[::1] which) except -1
    cdef int _one(self, Py_ssize_t i) except -1 nogil
    cdef int _fields(self, Py_ssize_t i, Py_ssize_t at) except -1 nogil
    cdef Py_ssize_t _behind(
        self, unsigned long long count, Py_ssize_t each, Py_ssize_t at, Py_ssize_t end
    ) noexcept nogil
    cdef Py_ssize_t _reading(self, Py_ssize_t i, Py_ssize_t at, Py_ssize_t end) except -2 nogil
    cdef Py_ssize_t _chain(self, Py_ssize_t i, Py_ssize_t at, Py_ssize_t end) except -2 nogil
    cdef Py_ssize_t _passed_over(self, Py_ssize_t at, Py_ssize_t end) except -2 nogil
    cdef int _registers_and_stack(self, Py_ssize_t i, Py_ssize_t at, Py_ssize_t end) except -1 nogil
    cdef unsigned long long _registers(self, Py_ssize_t row, Py_ssize_t at) except? 0 nogil
    cdef bint _stack(self, Py_ssize_t i, Py_ssize_t at, Py_ssize_t end, bint has_sp) except -1 nogil
