# The C face of frames, for the walk.

from walkback.walking._expression cimport Expressions
from walkback.walking._memory cimport Segments
from walkback.walking._tables cimport Tables

cdef class Frame:
    # The steps of the pool
    cdef unsigned char[::1] step_cfa
    cdef unsigned char[::1] step_register
    cdef long long[::1] step_operand
    cdef unsigned int[::1] step_first
    cdef unsigned int[::1] step_end
    cdef unsigned char[::1] step_flags
    cdef unsigned char[::1] step_how
    cdef unsigned char[::1] save_column
    cdef unsigned char[::1] save_op
    cdef unsigned char[::1] save_register
    cdef long long[::1] save_operand
    # The machine
    cdef Py_ssize_t sp
    cdef Py_ssize_t rip
    cdef Py_ssize_t chain_register
    cdef long long sp_from_cfa
    cdef unsigned long long preserved
    cdef unsigned long long address_mask
    # What values come from
    cdef Segments memory
    cdef Tables tables
    cdef Expressions expressions
    # The frame
    cdef unsigned long long[::1] registers
    cdef unsigned long long known
    cdef int kind
    cdef int how
    # Whether this frame or one before it was guessed
    cdef bint guessed
    # The caller, while it is looked for, and why there is none
    cdef unsigned long long[::1] values
    cdef unsigned long long value
    cdef int why
    cdef unsigned long long at
    # What shows whether a walk goes on for ever
    cdef int still
    cdef int signals
    cdef unsigned long long mark_pc
    cdef unsigned long long mark_sp

    cdef bint begin(
        self, const unsigned long long[::1] samples, Py_ssize_t number, unsigned long long known
    ) except -1 nogil
    cdef bint follow(self, Py_ssize_t step) except -1 nogil
    cdef bint _find_cfa(self, Py_ssize_t step, int flags) except -1 nogil
    cdef bint _is_caller(
        self, int flags, unsigned long long pc, unsigned long long sp, unsigned long long known
    ) except -1 nogil
    cdef int _go(
        self, Py_ssize_t step, unsigned long long pc, unsigned long long sp, unsigned long long known
    ) except -1 nogil
    cdef unsigned long long stack_pointer(self) noexcept nogil
    cdef bint leads_to_code(self, Py_ssize_t step) except -1 nogil
    cdef bint _fail(self, int why, unsigned long long at) except -1 nogil
    cdef bint _has_chain(self) except -1 nogil
    cdef bint _is_restored(self) except -1 nogil
    cdef bint _makes_progress(self, int flags, unsigned long long pc, unsigned long long sp) except -1 nogil
    cdef bint _value(
        self, int op, Py_ssize_t register_, long long operand, unsigned long long cfa, bint is_cfa
    ) except -1 nogil
    cdef bint _evaluate(self, long long number, unsigned long long cfa, bint is_cfa) except -1 nogil
    cdef bint _load(self, unsigned long long address, int size) except -1 nogil
