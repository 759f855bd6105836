# The C face of the walk.

from walkback.walking._frame cimport Frame
from walkback.walking._memory cimport Segments
from walkback.walking._tables cimport Tables

cdef class Walk:
    cdef Segments memory
    cdef Tables tables
    cdef Frame frame
    cdef unsigned long long[::1] patterns
    cdef bint by_tables
    cdef bint by_chains
    # Stacks that want more registers have a second try, which follows all.
    cdef bint tries
    cdef Py_ssize_t limit

    cdef bint _go_on(self, Py_ssize_t step, Py_ssize_t depth) except -1 nogil
    cdef bint _may_chain(self, Py_ssize_t step) except -1 nogil
    cdef Py_ssize_t _unknown(self) except -2 nogil
    cdef bint _is_trampoline(self, Py_ssize_t kind) except -1 nogil
