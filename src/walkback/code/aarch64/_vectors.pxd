# The C face of this group, for the decoder and other groups.

from walkback.code._instruction cimport Instruction

cdef int floating(unsigned int word, Instruction out) noexcept nogil
cdef int scalable(unsigned int word, Instruction out) noexcept nogil
cdef int matrix(unsigned int word, Instruction out) noexcept nogil
