# The C face of this group, for the decoder and other groups.

from walkback.code._instruction cimport Instruction

cdef int branch(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int jump(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int call(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int branch_if_zero(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int branch_if_bit(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
cdef int conditional(unsigned int word, unsigned long long address, Instruction out) noexcept nogil
