# The C face of this map, for the decoder.

from walkback.code._instruction cimport Instruction

cdef int special(unsigned int opcode, unsigned int modrm, unsigned int prefix, Instruction out) noexcept nogil
