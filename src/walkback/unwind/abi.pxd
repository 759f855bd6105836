# The numbers of abi.py for the kernels; a test holds both equal.

cdef enum Op:
    UNKNOWN = 0
    SAME = 1
    REGISTER = 2
    AT_REGISTER = 3
    CFA = 4
    AT_CFA = 5
    EXPRESSION = 6
    AT_EXPRESSION = 7

cdef enum Flag:
    SIGNAL = 1
    SIGNED = 2
    KEEPS = 4
    GUESS = 8
    LOOSE = 16
    OUTERMOST = 32
    CHAIN = 64

cdef enum BuiltIn:
    ENTRY = 0
    FP_GUESS = 1
    FP_DECLARED = 2
    CONTEXT = 3
