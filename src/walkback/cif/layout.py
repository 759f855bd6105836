"""Constants of the Compact Image Map Format, in the words of its document and of Swift's reader.

All numbers stand most significant byte first.
"""

from __future__ import annotations

VERSION = 0
WORDS = {0: 16, 1: 32, 2: 64}
"""The bits of a machine word by the lowest two bits of the info byte; 3 is reserved."""
VERSION_SHIFT = 2
SIZE_MASK = 0x03

# The header byte of an image

RELATIVE = 0x80
RESERVED = 0x40
ACOUNT_SHIFT = 3
COUNT_MASK = 0x07

# Counts of images, and of the bytes of a build ID: 7 bits a byte

MORE = 0x80
COUNT_BITS = 7

# The opcodes of a path

END = 0x00
FRAMEWORK = 0x40
EXPAND = 0x80
EXTENDED = 0x40
"""With EXPAND: bytes follow that have the code."""
OPERAND_MASK = 0x3F
LONGEST_STRING = 63
LONGEST_FRAMEWORK = 64
FIRST_EXTENDED = 64
"""The code that an extended operand of 0 stands for."""
FLAT = 1
"""Instead of the version of a framework: it has no folder of versions."""

PREFIXES = (
    b"/lib",
    b"/usr/lib",
    b"/usr/local/lib",
    b"/opt/lib",
    b"/System/Library/Frameworks",
    b"/System/Library/PrivateFrameworks",
    b"/System/iOSSupport",
    b"/Library/Frameworks",
    b"/System/Applications",
    b"/Applications",
    rb"C:\Windows\System32",
    # The document has a backslash at the end. Swift's reader and writer have none, and make most of what there is.
    rb"C:\Program Files",
)
"""What the codes from 0 on stand for; those up to 31 are reserved for more of them."""
FIRST_LEARNED = 32
SEPARATORS = b"/\\"

# What Swift's reader takes at most

MOST_IMAGES = 1 << 20
LONGEST_BUILD_ID = 1024
LONGEST_PLATFORM = 255

# What is taken here at most, since a few bytes can stand for a path of any length

LONGEST_PATH = 1 << 16
_PATHS_OF_ANY = 1 << 24
_PATHS_OF_BYTE = 64


def path_room(size: int) -> int:
    """The most bytes that all paths of a map of this size may have together; those of programs take a tenth."""
    return max(_PATHS_OF_ANY, _PATHS_OF_BYTE * size)
