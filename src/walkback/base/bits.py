"""Numbers of 64 bits, as kernels count with them."""

WORD = 2**64 - 1
"""The largest. Where kernels run as Python, masking with it keeps their numbers to 64 bits."""
