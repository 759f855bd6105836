"""The ELF files inside packages and archives."""

from walkback.packages.kinds import COMPRESSED, HEAD, Kind, kind_of
from walkback.packages.streams import Flow
from walkback.packages.walk import Again, Broken, Found, Package, elf_files_in, may_hold_elf

__all__ = [
    "COMPRESSED",
    "HEAD",
    "Again",
    "Broken",
    "Flow",
    "Found",
    "Kind",
    "Package",
    "elf_files_in",
    "kind_of",
    "may_hold_elf",
]
