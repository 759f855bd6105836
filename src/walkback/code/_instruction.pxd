# The C face of one instruction, for decoders and the proof.

cdef class Instruction:
    cdef int length
    cdef int flow
    cdef int effect
    cdef int condition
    cdef unsigned long long target
    cdef int first
    cdef int second
    cdef int count
    cdef int base
    cdef int index
    cdef int scale
    cdef long long offset
    cdef int width
    cdef bint signed
    cdef long long moved
    cdef bint before
    cdef unsigned long long clobbers

    cdef int clear(self) noexcept nogil
    cdef unsigned long long changes(self) noexcept nogil
