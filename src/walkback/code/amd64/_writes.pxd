# The C face of these writes, for the decoder and the maps.

from walkback.code._instruction cimport Instruction

cdef int write(unsigned int kind, unsigned int opcode, unsigned int modrm, unsigned int prefix, Instruction out) noexcept nogil
cdef int write_of_vector(unsigned int lead, unsigned int map_, unsigned int opcode, unsigned int modrm, unsigned int prefix, Instruction out) noexcept nogil
