# The C face of this group, for the decoder.

from walkback.code._instruction cimport Instruction

cdef int between(unsigned int kind, unsigned long long word, int place, Instruction out) noexcept nogil
cdef int with_number(unsigned int kind, unsigned long long word, unsigned long long address, Instruction out) noexcept nogil
