# The C face of the decoder of s390x.

from walkback.code._instruction cimport Instruction

cdef int decode(const unsigned char *code, Py_ssize_t pos, Py_ssize_t end, unsigned long long address, Instruction out) noexcept nogil
