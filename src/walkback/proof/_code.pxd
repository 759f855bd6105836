# The C face of a file's memory, for the walk.

from walkback.code._instruction cimport Instruction

cdef class Code:
    cdef const unsigned char[::1] data
    # The same for decoders, to which a view takes longer to pass
    cdef const unsigned char *bytes
    cdef const unsigned long long[::1] start
    cdef const unsigned long long[::1] end
    cdef const long long[::1] pos
    cdef const unsigned char[::1] executable
    # The largest part with code
    cdef unsigned long long code_start
    cdef unsigned long long code_size
    cdef unsigned long long code_pos
    # Which blocks of the data are read, as far as it is known here
    cdef object contents
    cdef unsigned char[::1] is_there
    # The number that is to be read
    cdef Py_ssize_t number_at
    cdef bint big
    cdef int machine
    cdef bint waits
    cdef bint moves
    # Functions that are called: whether they come back, what they change and keep, and their bytes
    cdef const unsigned long long[::1] functions
    # For equally wide pieces of addresses, by their width in bits, the first of them that begins there or behind
    cdef const unsigned int[::1] near
    cdef int shift
    cdef const unsigned char[::1] back
    cdef const unsigned long long[::1] written
    cdef const unsigned long long[::1] kept
    cdef const long long[::1] size
    # Addresses of data that the code names
    cdef const unsigned long long[::1] named
    cdef const unsigned long long[::1] pointed
    cdef const unsigned long long[::1] returning
    cdef const unsigned long long[::1] silent_words
    cdef int highest
    # A bit for each byte that is jumped to
    cdef const unsigned char[::1] targets
    # Instructions in brief, one for each two bytes
    cdef const unsigned short[::1] brief
    cdef bint ok
    # What `look_up` found
    cdef bint is_silent
    cdef bint is_seldom
    cdef bint comes_back
    cdef bint is_again
    cdef bint is_beyond
    cdef bint is_odd
    cdef long long known_size
    cdef unsigned long long changed
    cdef unsigned long long broken
    # For `reach`: the functions that are called, and an instruction of one
    cdef unsigned long long[::1] called
    cdef int calls
    cdef Instruction one

    cdef bint has(self, unsigned long long address, int width) except -1 nogil
    cdef long long read(self, int width, bint signed) noexcept nogil
    cdef bint is_wait(self, unsigned long long address) noexcept nogil
    cdef Py_ssize_t place(self, unsigned long long address) noexcept nogil
    cdef Py_ssize_t place_of_code(self, unsigned long long address) noexcept nogil
    cdef bint is_pointed_to(self, unsigned long long address) noexcept nogil
    cdef bint is_data(self, unsigned long long address) noexcept nogil
    cdef int look_up(self, unsigned long long address) noexcept nogil
    cdef Py_ssize_t function_before(self, unsigned long long address) noexcept nogil
    cdef bint returns(self, unsigned long long address) noexcept nogil
    cdef unsigned long long reach(self, unsigned long long address) noexcept nogil
    cdef unsigned long long read_calls(self, unsigned long long begin, long long size) noexcept nogil
    cdef bint will_call(self, unsigned long long address) noexcept nogil
    cdef bint gets_pc(self, unsigned long long behind, unsigned long long target) noexcept nogil
    cdef int hold(self, Py_ssize_t pos, Py_ssize_t end) noexcept nogil
    cdef bint calls_over(self, unsigned long long behind, unsigned long long target) noexcept nogil
    cdef long long room(self, unsigned long long address) noexcept nogil
    cdef int filling(self, Py_ssize_t pos, Py_ssize_t end) noexcept nogil
    cdef int unused(self, Py_ssize_t pos, Py_ssize_t end) noexcept nogil
    cdef unsigned int word(self, Py_ssize_t pos) noexcept nogil
    cdef bint keeps(self, long long at, long long end, unsigned long long registers) noexcept nogil
    cdef bint jumps_by_table(self, long long at, long long end) noexcept nogil
    cdef int padding(self, Py_ssize_t pos, Py_ssize_t end) noexcept nogil
