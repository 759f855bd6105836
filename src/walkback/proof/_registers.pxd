# The C face of registers, for states that have them.

cdef class Registers:
    cdef int registers
    # Those that rules may name, as their numbers are DWARF's
    cdef int named
    cdef int sp
    cdef int fp
    cdef int ra
    cdef long long entry_offset
    # Whether calls put the return address on the stack
    cdef bint calls_push
    cdef long long return_address
    cdef long long signed_return
    # Whether a register may have it that is not its own
    cdef bint may_have_moved
    cdef unsigned long long preserved
    # The registers whose values at the entry are followed
    cdef unsigned long long entered
    # The stack pointer of the shadow call stack
    cdef int shadow
    cdef unsigned long long watched
    # Whether there may be jumps to addresses that the code reads, so that bounds on indices matter
    cdef bint leaps
    # Whether callers keep the stack aligned as the ABI says, so that what aligns it by as much moves it by a known number
    cdef bint aligned
    # What holds now
    cdef long long[::1] values
    # Whether something changed that claims may be about: since they were judged, and since a call was followed
    cdef bint changed
    cdef bint stirred
    # The last comparison that was kept, and what it says of an index
    cdef int compared
    # Behind the comparison, in the image; or where it is, if it also branches
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
    cdef int give(self, int register, int other, long long value) noexcept nogil
    cdef bint is_bounded(self, int register) noexcept nogil
    cdef int forget_registers(self, unsigned long long mask) noexcept nogil
    cdef int clobber(self, unsigned long long mask) noexcept nogil
    cdef bint is_return_address(self, int register) noexcept nogil
    cdef bint moved_return(self) noexcept nogil
