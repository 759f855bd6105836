"""Machine instructions: how long each is, where control goes, and what it does to registers and the stack.

This is no disassembler. It decodes only what the proof of unwind tables needs; everything else is a set of registers
that change.
"""
