# The C face of one instruction, for decoders and the proof.

cdef class Instruction:
    cdef int length
    # In the order in which `clear` can set several at once
    cdef int flow
    cdef int effect
    cdef int condition
    cdef bint signed
    cdef bint before
    cdef int first
    cdef int second
    cdef int base
    cdef int index
    cdef int count
    cdef int scale
    cdef int width
    cdef unsigned long long target
    cdef long long offset
    cdef long long moved
    cdef unsigned long long clobbers

    cdef unsigned long long changes(self) noexcept nogil
    cdef unsigned long long keeps(self) noexcept nogil
