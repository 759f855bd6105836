# The C face of line number programs.

from walkback.base.cursor cimport Cursor
from walkback.base.growing cimport Growing

cdef class LineProgram:
    cdef Cursor bytes
    cdef readonly int version
    cdef int wide
    cdef int address_size
    cdef Py_ssize_t begin
    cdef readonly Py_ssize_t end
    cdef readonly bint is_known
    cdef unsigned long long step
    cdef long long line_base
    cdef unsigned long long line_range
    cdef int first_special
    cdef Py_ssize_t lengths
    cdef Growing folders
    cdef Growing files
    cdef unsigned long long text
    cdef unsigned long long number
    # Of the row before
    cdef bint has_row
    cdef unsigned long long row_address
    cdef unsigned long long row_file
    cdef unsigned long long row_line
    # Of the addresses
    cdef Py_ssize_t turn
    cdef Py_ssize_t left

    cdef int read_header(self, Py_ssize_t at) except -1 nogil
    cdef int read_old_names(self) except -1 nogil
    cdef int read_names(self, Growing found) except -1 nogil
    cdef int read_value(self, unsigned long long form) except -1 nogil
    cdef int read_text(self) except -1 nogil
    cdef int skip(self, unsigned long long size) noexcept nogil
