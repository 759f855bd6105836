# The C face of reading values, for the kernel that reads units.

from walkback.base.cursor cimport Cursor

cdef class FormReader:
    cdef Cursor info
    cdef Cursor addresses
    cdef Cursor text_offsets
    # Of the unit
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef int version
    cdef int wide
    cdef int address_size
    cdef unsigned long long addr_base
    cdef unsigned long long text_base
    # Of the value that was read last
    cdef unsigned long long value
    cdef int value_kind

    cdef int fixed_size(self, unsigned long long form) noexcept nogil
    cdef int read_value(self, unsigned long long form, unsigned long long given) noexcept nogil
    cdef int reference(self, unsigned long long offset) noexcept nogil
    cdef int skip(self, unsigned long long size) noexcept nogil
    cdef int read_text(self) noexcept nogil
    cdef unsigned long long narrow(self) noexcept nogil
    cdef unsigned long long address_at(self, unsigned long long index) noexcept nogil
    cdef unsigned long long text(self) noexcept nogil
