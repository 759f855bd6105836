"""The numbers of machines, in the order of `arch.MACHINES` (a face: kernels compile them in)."""

AMD64 = 0
AARCH64 = 1
S390X = 2
