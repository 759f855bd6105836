# The C face of what a table claims.

from walkback.proof._state cimport State

cdef class Claims:
    cdef const long long[::1] first
    cdef const short[::1] target
    cdef const short[::1] base
    cdef const unsigned char[::1] depth
    cdef const long long[:, ::1] offset
    cdef const unsigned char[::1] signed
    # The form, if it is a usual one, in which register or at which place, what has to be there, and in which slot it was
    cdef long long[:, ::1] usual
    # The registers that each set needs, and those that it needs only for the return address
    cdef const unsigned long long[:, ::1] needed
    cdef int sp
    cdef bint denies_ends
    cdef long long sp_from_cfa
    # What was found last
    cdef int verdict
    cdef int what
    cdef bint by_call
    cdef int why

    cdef int judge(self, State state, Py_ssize_t number) noexcept nogil
    cdef bint needs(
        self, Py_ssize_t number, unsigned long long linked, unsigned long long overwritten, int ra
    ) noexcept nogil
    cdef bint ends_here(self, State state, Py_ssize_t number) noexcept nogil
    cdef bint is_lost_by_calls(self, State state, Py_ssize_t entry) noexcept nogil
    cdef bint holds(self, State state, Py_ssize_t entry) noexcept nogil
    cdef long long value(self, State state, Py_ssize_t entry) noexcept nogil
    cdef int judge_cfa(self, State state, Py_ssize_t entry) noexcept nogil
    cdef int judge_register(self, State state, Py_ssize_t entry) noexcept nogil
    cdef long long wanted(self, Py_ssize_t entry) noexcept nogil
    cdef int suppose(self, State state, Py_ssize_t number) noexcept nogil
    cdef int suppose_one(self, State state, Py_ssize_t entry) noexcept nogil
