# The C face of reading units, for the kernels that read them.

from walkback.base.cursor cimport Cursor
from walkback.base.growing cimport Growing
from walkback.debuginfo._forms cimport FormReader

cdef class Unit(FormReader):
    cdef Cursor abbrev
    cdef Cursor ranges
    cdef Cursor lists
    cdef Growing declared
    cdef Growing attributes
    cdef bint in_order
    cdef bint is_split
    cdef unsigned long long declared_at
    cdef unsigned long long declared_shape
    cdef long long declarations_left
    cdef long long ranges_left
    # Of the unit
    cdef Py_ssize_t first
    cdef int kind
    cdef unsigned long long abbrev_at
    cdef unsigned long long id
    cdef unsigned long long low
    cdef unsigned long long ranges_base
    cdef unsigned long long lists_base
    cdef unsigned long long abbrev_contribution
    cdef unsigned long long text_contribution
    cdef unsigned long long lists_contribution
    # Of the entry that was read last
    cdef Py_ssize_t place
    cdef int tag
    cdef bint has_children
    cdef unsigned long long sibling
    cdef unsigned long long low_pc
    cdef int low_kind
    cdef unsigned long long high_pc
    cdef int high_kind
    cdef unsigned long long list
    cdef int list_kind
    cdef unsigned long long origin
    cdef int origin_kind
    cdef unsigned long long name
    cdef unsigned long long linkage_name
    cdef unsigned long long call_file
    cdef unsigned long long call_line
    cdef unsigned long long program
    cdef unsigned long long folder
    cdef unsigned long long split_name
    # Of the range that was read last, and of its list
    cdef unsigned long long begin
    cdef unsigned long long behind
    cdef unsigned long long base
    cdef int form_of_list

    cdef bint open(self, Py_ssize_t start) except -1 nogil
    cdef bint read_header(self) noexcept nogil
    cdef bint open_root(self) except -1 nogil
    cdef int declare(self) except -1 nogil
    cdef Py_ssize_t declaration(self, unsigned long long code) noexcept nogil
    cdef int next(self, int wanted, int other) except -2 nogil
    cdef int forget(self) noexcept nogil
    cdef int take(self, unsigned long long name) noexcept nogil
    cdef int open_ranges(self) noexcept nogil
    cdef bint next_range(self) noexcept nogil
    cdef bint next_of_list(self) noexcept nogil
    cdef bint next_of_pairs(self) noexcept nogil
