# The C face of reading pointers, for the programs that hold some.

from walkback.base.cursor cimport Cursor

cdef unsigned long long pointer(
    Cursor cursor,
    int encoding,
    int address_size,
    unsigned long long address,
    unsigned long long text,
    unsigned long long data,
    unsigned long long function,
) noexcept nogil
