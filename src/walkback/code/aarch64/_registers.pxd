# The C face of this group, for the decoder and other groups.

from walkback.code._instruction cimport Instruction

cdef int registers(unsigned int word, Instruction out) noexcept nogil
cdef int logical(unsigned int word, Instruction out) noexcept nogil
cdef int add_registers(unsigned int word, Instruction out) noexcept nogil
