"""Registers of AMD64 by their DWARF numbers (a face: kernels compile these numbers in)."""

RAX = 0
RDX = 1
RCX = 2
RBX = 3
RSI = 4
RDI = 5
RBP = 6
RSP = 7
R11 = 11
RIP = -2
"""In the place of a base register until the length is known."""
NUMBERS = 0xFEDCBA9854673120
"""The DWARF number of each register of the machine: a hexadecimal digit for each, from the lowest on."""
