# The C face of this group, for the decoder and other groups.

from walkback.code._instruction cimport Instruction

cdef int scaled(unsigned int word, Instruction out) noexcept nogil
cdef int one(unsigned int word, Instruction out) noexcept nogil
cdef int one_vector(unsigned int word, Instruction out) noexcept nogil
cdef int near(unsigned int word, Instruction out) noexcept nogil
cdef int indexed(unsigned int word, Instruction out) noexcept nogil
cdef int authenticated(unsigned int word, Instruction out) noexcept nogil
cdef int pair(unsigned int word, Instruction out) noexcept nogil
cdef int literal(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int structures(unsigned int word, Instruction out) noexcept nogil
