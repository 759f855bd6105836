"""What all decoders share (a face: kernels compile it in): the numbers of machines, in the order of `arch.MACHINES`."""

AMD64 = 0
AARCH64 = 1
S390X = 2
SLACK = 32
"""Bytes that buffers have behind the code: decoders may read them, but make nothing of them."""
