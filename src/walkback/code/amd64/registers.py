"""Registers of AMD64 by their DWARF numbers, as far as they fit (a face: kernels compile these numbers in)."""

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
BEHIND = 17
"""The number here of r16; those of r17 to r31 follow. (In DWARF r16 is 130, and 16 is the return address.)"""
NUMBERS = 0xFEDCBA9854673120
"""The DWARF number of each of the first 16 registers of the machine: a hexadecimal digit each, from the lowest on."""
