# The C face of this group, for the decoder and other groups.

from walkback.code._instruction cimport Instruction

cdef int atomic(unsigned int word, Instruction out) noexcept nogil
cdef int exclusive(unsigned int word, Instruction out) noexcept nogil
cdef int later(unsigned int word, Instruction out) noexcept nogil
