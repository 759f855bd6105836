# The C face of reading instructions, for the kernels that run programs.

from walkback.cursor cimport Cursor

cdef class Instruction:
    cdef unsigned long long code_align
    cdef long long data_align
    cdef int encoding
    cdef int address_size
    cdef unsigned long long address
    cdef unsigned long long text
    cdef unsigned long long got
    cdef bint is_aarch64
    cdef unsigned long long register
    cdef int kind
    cdef long long operand
    cdef unsigned long long delta

    cdef int use(self, unsigned long long code_align, long long data_align, int encoding, int address_size) except -1 nogil
    cdef int read(self, Cursor cursor, unsigned long long start, unsigned long long location) noexcept nogil
    cdef int read_rule(self, Cursor cursor, int byte) noexcept nogil
    cdef int rule(self, unsigned long long register, int kind, long long operand) noexcept nogil
    cdef int advance(self, unsigned long long factored) noexcept nogil
    cdef long long scaled(self, unsigned long long factored) noexcept nogil
