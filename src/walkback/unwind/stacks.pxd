# The numbers of stacks.py for the kernels; a test holds both equal.

cdef enum FrameKind:
    EXACT = 0
    RETURN = 1

cdef enum How:
    FP_GUESS = 5
    SIGNAL = 6

cdef enum End:
    COMPLETE = 0
    NO_TABLE = 1
    UNREADABLE = 2
    STACK_CUT = 3
    NO_PROGRESS = 4
    LOOP = 5
    LIMIT = 6
    UNKNOWN_REGISTER = 7
    NOT_CODE = 8
    ZERO = 9
    INEXPRESSIBLE = 10
    NO_REGISTERS = 11
    GUESSED = 12
