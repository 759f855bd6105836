# The C face of effects, for the walk through code.

from walkback.code._instruction cimport Instruction
from walkback.proof._state cimport State

cdef int apply(State state, Instruction one, unsigned long long address) noexcept nogil
cdef long long added(State state, Instruction one) noexcept nogil
cdef long long table_entry(State state, Instruction one) noexcept nogil
cdef bint assume(State state, int condition) noexcept nogil
