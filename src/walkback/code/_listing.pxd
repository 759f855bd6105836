# The C face of the decoders, whatever the machine.

from walkback.code._instruction cimport Instruction

cdef int decode(
    int machine,
    const unsigned char *code,
    Py_ssize_t pos,
    Py_ssize_t end,
    unsigned long long address,
    Instruction out,
) noexcept nogil
