# The C face of a state, for the walk through code.

cdef class State:
    cdef int registers
    # Those that rules may name, as their numbers are DWARF's
    cdef int named
    cdef int sp
    cdef int fp
    cdef int ra
    cdef long long entry_offset
    # How far from the CFA the stack pointer can come
    cdef long long highest
    cdef long long return_address
    cdef long long signed_return
    # The stack pointer of the caller, where functions save it; else no value
    cdef long long saved_stack
    cdef unsigned long long preserved
    # The registers that calls may be passed pointers in
    cdef unsigned long long passed
    # The registers whose values at the entry are followed
    cdef unsigned long long entered
    # The stack pointer of the shadow call stack
    cdef int shadow
    cdef unsigned long long watched
    cdef bint big
    # Whether callers keep the stack aligned as the ABI says, so that what aligns it by as much moves it by a known number
    cdef bint aligned
    # What holds now
    cdef long long[::1] values
    cdef long long[::1] keys
    cdef long long[::1] saved
    cdef int slots
    cdef bint lost
    # Whether something changed that claims may be about: since they were judged, and since a call was followed
    cdef bint changed
    cdef bint stirred
    # Registers of the caller, or the return address, whose only copy a store went over that is none of a register
    cdef unsigned long long destroyed
    # Whether a node on the stack may have got links to itself since that was looked at
    cdef bint may_link
    # The last comparison, and what it says of an index
    cdef int compared
    # Behind the comparison, in the image
    cdef long long compared_at
    cdef int compared_first
    cdef int compared_second
    cdef long long compared_number
    cdef int bound_register
    cdef long long bound
    # The register that was copied last, and its copy
    cdef int copied
    cdef int copy
    # Tables of jumps that were met
    cdef long long[:, ::1] tables
    cdef int table_count
    # Where instructions are that align the stack
    cdef unsigned long long[::1] alignments
    cdef int alignment_count

    cdef int follow(self, int highest) noexcept nogil
    cdef int begin(self) noexcept nogil
    cdef long long aligned_by(self, unsigned long long address) noexcept nogil
    cdef int enter(self) noexcept nogil
    cdef long long entry_stack(self) noexcept nogil
    cdef int set(self, int register, long long value) noexcept nogil
    cdef long long get(self, int register) noexcept nogil
    cdef bint is_followed(self, long long place) noexcept nogil
    cdef long long load(self, long long place) noexcept nogil
    cdef int give(self, int register, int other, long long value) noexcept nogil
    cdef bint is_bounded(self, int register) noexcept nogil
    cdef int store(self, long long place, int width, long long value, bint through) noexcept nogil
    cdef int forget(self, long long place, int width, bint is_array) noexcept nogil
    cdef bint overwrite(self, int slot, bint exactly) noexcept nogil
    cdef int note_destroyed(self, long long value) noexcept nogil
    cdef int let_call_write(self, long long kept) noexcept nogil
    cdef bint may_be_written(self, int slot) noexcept nogil
    cdef int drop_rings(self) noexcept nogil
    cdef bint is_link(self, int slot, long long node) noexcept nogil
    cdef int drop_below(self) noexcept nogil
    cdef int drop(self, int slot) noexcept nogil
    cdef int forget_registers(self, unsigned long long mask) noexcept nogil
    cdef int clobber(self, unsigned long long mask) noexcept nogil
    cdef bint is_return_address(self, int register) noexcept nogil
    cdef bint moved_return(self) noexcept nogil
    cdef int call(self, unsigned long long changed, unsigned long long broken, bint is_odd) noexcept nogil
