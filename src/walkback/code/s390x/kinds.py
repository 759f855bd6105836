"""What the decoder of s390x knows of an opcode (a face: kernels compile these numbers in)."""

from __future__ import annotations

from enum import IntEnum

# A kind is what the decoder knows of an opcode: the lowest byte is one of `Does`, the rest are these bits.
R1 = 1 << 8
"""The general register in the first field is written."""
PAIR1 = 1 << 9
"""So is the next one."""
R2 = 1 << 10
"""The general register in the second field is written."""
PAIR2 = 1 << 11
F1 = 1 << 12
"""The floating point register in the first field is written."""
X1 = 1 << 13
"""So is the second next one: a number of 128 bits."""
V1 = 1 << 14
"""The vector register in the first field is written."""
INDEX = 1 << 15
"""The address has an index register in the second field."""
NUMBER = 16
"""A number stands in the 8 bits from here on; mostly it is how many bytes are stored or loaded."""
AT_2 = 1 << 24
"""The first field stands in the third byte."""
AT_4 = 1 << 25
"""And in the fifth."""
LONG = 1 << 26
"""The displacement has 20 bits."""
GR0 = 1 << 27
"""Register 0 is written, wherever the fields point."""
GR1 = 1 << 28
GR2 = 1 << 29
SIGNED = 1 << 30
"""Numbers are compared or loaded with their sign."""
WRITES = R1 | R2 | F1 | V1 | GR0 | GR1 | GR2
"""Whether any register changes that no `Does` has to find."""

LAST_WITH_FIELDS_BEHIND = 3
"""Pages from 1 to this one have their register fields in the fourth byte, all others in the second."""
SECOND_BYTE = 8
"""Pages below this have the second half of their opcodes in the second byte."""
SIXTH_BYTE = 16
"""Those from here on have it in the sixth, those between in the lower half of the second."""


class Does(IntEnum):
    """What the decoder has to look at; the upper half of the number is the group."""

    NOTHING = 0
    # Between registers.
    COPY = 0x10
    COPY_FLOAT = 0x11
    TO_FLOAT = 0x12
    FROM_FLOAT = 0x13
    TEST = 0x14
    """Load and test."""
    EXTEND = 0x15
    ADD_REGISTERS = 0x16
    SUBTRACT = 0x17
    ADD_THREE = 0x18
    """The operands are the second and the third field."""
    SUBTRACT_THREE = 0x19
    SHIFT_LEFT = 0x1A
    CLEAR = 0x1B
    """xgr, which clears where both fields are the same."""
    SUBTRACT_HALF = 0x1C
    """Subtract the lower half of a register."""
    SYSTEM = 0x1D
    """svc"""
    # With a number, of 16 bits unless it says so.
    ADD = 0x20
    ADD_TO = 0x21
    """From the second field."""
    ADD_32 = 0x22
    ADD_UNSIGNED = 0x23
    SUBTRACT_UNSIGNED = 0x24
    CONSTANT = 0x25
    CONSTANT_32 = 0x26
    CONSTANT_UNSIGNED = 0x27
    """Moved to the left by `NUMBER`."""
    CONSTANT_UNSIGNED_32 = 0x28
    AND = 0x29
    AND_32 = 0x2A
    ADDRESS = 0x2B
    """larl"""
    LOAD_ADDRESS = 0x2C
    """la"""
    ROTATE = 0x2D
    """Rotate, then insert the bits between two places."""
    ROTATE_OR_TEST = 0x2E
    # Comparisons.
    COMPARE = 0x30
    COMPARE_RR = 0x31
    COMPARE_16 = 0x32
    COMPARE_32 = 0x33
    COMPARE_BRANCH = 0x34
    COMPARE_NUMBER_BRANCH = 0x35
    COMPARE_BRANCH_TO = 0x36
    """To an address in a register."""
    COMPARE_NUMBER_BRANCH_TO = 0x37
    # Loads.
    LOAD = 0x40
    LOAD_FLOAT = 0x41
    LOAD_SEVERAL = 0x42
    LOAD_LOW = 0x43
    """Several, whose other half stays."""
    LOAD_TABLE = 0x44
    LOAD_RELATIVE = 0x45
    LOAD_VECTORS = 0x46
    LOAD_ELEMENT = 0x47
    """One of a vector; `NUMBER` says how many there are in the half that is a floating point register."""
    SET_ELEMENT = 0x48
    LOAD_MASKED = 0x49
    """Each bit of the second field stands for a byte."""
    ADD_TABLE = 0x4A
    """What is loaded is added to the register."""
    GET_ELEMENT = 0x4B
    """Of a vector, into a general register."""
    # Stores.
    STORE = 0x50
    STORE_WHOLE = 0x51
    STORE_FLOAT = 0x52
    STORE_SEVERAL = 0x53
    STORE_PART = 0x54
    """Several, of each as many bytes as the number says."""
    STORE_LENGTH = 0x55
    """As many bytes as the second byte says, and one."""
    STORE_SHORT = 0x56
    """As its upper half says."""
    STORE_MASKED = 0x57
    STORE_VECTORS = 0x58
    STORE_RELATIVE = 0x59
    STORE_WHOLE_RELATIVE = 0x5A
    STORE_SOMEWHERE = 0x5B
    """At an address in a register, mostly of a length in another."""
    STORE_UPTO = 0x5C
    """Bytes that only a register knows the number of."""
    # Control.
    BRANCH_16 = 0x60
    BRANCH_32 = 0x61
    CALL_16 = 0x62
    CALL_32 = 0x63
    COUNT_16 = 0x64
    """Changes a register and branches."""
    COUNT_32 = 0x65
    COUNT_TO = 0x66
    """To an address in a register."""
    COUNT_REGISTER = 0x67
    BRANCH_REGISTER = 0x68
    BRANCH_TO = 0x69
    CALL_REGISTER = 0x6A
    CALL_TO = 0x6B
    JUMP_MEMORY = 0x6C
    RETURN = 0x6D
    TRAP = 0x6E
    EXECUTE = 0x6F
    # What changes registers that no field alone names.
    RANGE_READ = 0x70
    """From the first field to the second."""
    DIVIDE_TO_INTEGER = 0x71
    UPDATE_TREE = 0x72
    FORMAT = 0x73
    """pfpo"""
    SWITCH = 0x74
    """Changes the size of addresses and jumps."""
    CALL_SWITCH = 0x75
    FORM_CODEWORD = 0x76
    THIRD = 0x77
    """A field in the third byte too."""
    THIRD_PAIR = 0x78
