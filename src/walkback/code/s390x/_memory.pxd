# The C face of this group, for the decoder.

from walkback.code._instruction cimport Instruction

cdef int load(unsigned int kind, unsigned long long word, unsigned long long address, Instruction out) noexcept nogil
cdef int store(unsigned int kind, unsigned long long word, unsigned long long address, Instruction out) noexcept nogil
