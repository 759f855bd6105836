# The C face of this group, for the decoder and other groups.

from walkback.code._instruction cimport Instruction

cdef int immediate(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int page(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int number(unsigned int word, Instruction out) noexcept nogil
cdef int add_number(unsigned int word, Instruction out) noexcept nogil
cdef int subtract_number(unsigned int word, Instruction out) noexcept nogil
