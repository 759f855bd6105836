# The C face of reading programs, for the kernels that run them.

from walkback.base.cursor cimport Cursor

cdef class ProgramReader:
    cdef Cursor cursor
    cdef unsigned long long address
    cdef unsigned long long text
    cdef unsigned long long got
    cdef bint is_aarch64
    # Of all CIEs and FDEs
    cdef const long long[::1] cie_program
    cdef const long long[::1] cie_end
    cdef const unsigned long long[::1] cie_code_align
    cdef const long long[::1] cie_data_align
    cdef const unsigned long long[::1] cie_ra_column
    cdef const unsigned char[::1] cie_encoding
    cdef const unsigned char[::1] cie_address_size
    cdef unsigned char[::1] cie_fault
    cdef const long long[::1] cie
    cdef const unsigned long long[::1] fde_start
    cdef const long long[::1] fde_program
    cdef const long long[::1] fde_end
    cdef unsigned char[::1] fde_fault
    # Of the program that is read
    cdef unsigned long long code_align
    cdef long long data_align
    cdef int encoding
    cdef int address_size
    cdef unsigned long long start
    cdef unsigned long long ra_column
    # Of the instruction that was read last
    cdef unsigned long long register
    cdef int kind
    cdef long long operand
    cdef unsigned long long delta

    cdef int open_cie(self, Py_ssize_t cie) except -1 nogil
    cdef int open_fde(self, Py_ssize_t fde) except -1 nogil
    cdef int use(self, Py_ssize_t cie) except -1 nogil
    cdef int read(self, unsigned long long location) noexcept nogil
    cdef int set_location(self, unsigned long long location) noexcept nogil
    cdef int read_extension(self, int byte) noexcept nogil
    cdef int read_rule(self, int byte) noexcept nogil
    cdef int rule(self, unsigned long long register, int kind, long long operand) noexcept nogil
    cdef int advance(self, unsigned long long factored) noexcept nogil
    cdef long long scaled(self, unsigned long long factored) noexcept nogil
    cdef unsigned long long uleb(self) noexcept nogil
    cdef int skip_block(self) noexcept nogil
