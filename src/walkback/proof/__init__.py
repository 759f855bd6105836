"""Unwind tables proved against the machine code that they describe.

The proof follows each function from its entry, as the ABI has it, through every way that its code can go. At each
instruction it knows what became of the stack and the registers, and so whether the table's rule finds the caller.
"""
