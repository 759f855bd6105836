# The C face of this group, for the decoder.

from walkback.code._instruction cimport Instruction

cdef int comparison(unsigned int kind, unsigned long long word, int place, unsigned long long address, Instruction out) noexcept nogil
cdef int control(unsigned int kind, unsigned long long word, int place, unsigned long long address, Instruction out) noexcept nogil
