"""The ELF files inside packages and archives."""
