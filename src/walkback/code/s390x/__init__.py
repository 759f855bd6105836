"""Instructions of s390x: `opcodes` has a kind for each opcode, and the decoder a module for each group of kinds."""
