"""Instructions of AMD64: the decoder goes by the maps of opcodes, as the manuals of Intel and AMD have them."""
