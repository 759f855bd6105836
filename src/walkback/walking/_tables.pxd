# The C face of tables, for the walk.

cdef class Tables:
    # The pool
    cdef unsigned long long[::1] points_start
    cdef unsigned int[::1] points_step
    cdef unsigned int[::1] directory
    cdef unsigned char[::1] step_flags
    cdef unsigned char[::1] step_how
    cdef unsigned long long[::1] block_start
    cdef unsigned int[::1] block_size
    cdef long long[::1] block_first
    cdef long long[::1] block_end
    cdef unsigned int[::1] block_offset
    cdef unsigned int[::1] block_step
    cdef unsigned long long[::1] trampoline_start
    cdef unsigned char[::1] trampoline_kind
    cdef unsigned char[::1] trampoline_size
    # Of its modules
    cdef unsigned char[::1] state
    cdef unsigned char[::1] declared
    cdef long long[::1] point_first
    cdef long long[::1] point_end
    cdef long long[::1] directory_first
    cdef unsigned char[::1] shift
    cdef long long[::1] trampoline_first
    cdef long long[::1] trampoline_end
    cdef unsigned char[::1] wanted
    # The spaces
    cdef long long[::1] space_first
    cdef unsigned long long[::1] map_start
    cdef unsigned long long[::1] map_last
    cdef int[::1] map_module
    cdef unsigned long long[::1] map_bias
    cdef bint uses
    # What was found for an address before
    cdef unsigned long long[::1] cache_key
    cdef long long[::1] cache_space
    cdef long long[::1] cache_map
    cdef long long[::1] cache_step
    # What is looked for in, and what was found last
    cdef Py_ssize_t space
    cdef Py_ssize_t map
    cdef int module
    cdef unsigned long long bias
    cdef bint is_missing

    cdef int use(self, Py_ssize_t space) except -1 nogil
    cdef Py_ssize_t find(self, unsigned long long lookup, bint is_return) except -2 nogil
    cdef bint is_code(self, unsigned long long address) except -1 nogil
    cdef bint is_unseen(self) except -1 nogil
    cdef bint is_declared(self) except -1 nogil
    cdef bint _is_known(self) except -1 nogil
    cdef int _enter(self, Py_ssize_t mapping) except -1 nogil
    cdef Py_ssize_t _mapping(self, unsigned long long address) except -2 nogil
    cdef Py_ssize_t _step_at(self, unsigned long long address, bint is_return) except -2 nogil
    cdef Py_ssize_t _point_at(self, unsigned long long address) except -2 nogil
    cdef Py_ssize_t _in_block(self, unsigned long long address, Py_ssize_t block) except -2 nogil
