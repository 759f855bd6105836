"""What a file is, by how it begins.

Names say nothing, with one exception: a zip archive counts only where it is a wheel, `*.whl`. Zip archives are also
documents, Java's classes and updates for telephones; to look into all of them would make a survey of something else.
Thin archives are nothing here, because their members are files that stand elsewhere and are found there.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from walkback.base.decoders import MAGIC, Method
from walkback.elf import layout

HEAD: Final = 1024
"""How many bytes are enough: more than a tar header, and the magic of a kernel."""
_TAR_HEADER: Final = 512
_DEB = re.compile(rb"!<arch>\ndebian-binary[/ ]")
_RPM = b"\xed\xab\xee\xdb"
_ZIP = (b"PK\3\4", b"PK\5\6")
_TAR_SUM = re.compile(rb" *[0-7]{1,7}[ \0]")
_TAR_SUM_AT = 148
_ANY_SIZE = 2**64 - 1
_LARGEST_LZMA = 1 << 38
_BOOT_MAGIC: Final = b"\x55\xaa"
_BOOT_MAGIC_AT: Final = 0x1FE
_MAGIC_TEXT: Final = b"HdrS"
_MAGIC_AT: Final = 0x202
_IMAGE_MAGIC: Final = b"ARM\x64"
_IMAGE_MAGIC_AT: Final = 0x38
_ZBOOT_MAGIC: Final = b"zimg"
_ZBOOT_MAGIC_AT: Final = 4
"""Of an Image that is compressed, and that EFI starts."""


class PackageKind(StrEnum):
    """ELF files, and what may hold some."""

    ELF = "elf"
    DEB = "deb"
    RPM = "rpm"
    WHEEL = "wheel"
    AR = "ar"
    TAR = "tar"
    KERNEL = "kernel"
    GZIP = "gzip"
    XZ = "xz"
    LZMA = "lzma"
    BZIP2 = "bzip2"
    ZSTD = "zstd"


COMPRESSED: Final = {PackageKind(method.value): method for method in (*MAGIC, Method.LZMA)}


def kind_of(head: bytes, name: str) -> PackageKind | None:
    """What a file of this name is that begins with these `HEAD` bytes, or with fewer if it has no more."""
    if head.startswith(layout.ELF_MAGIC):
        return PackageKind.ELF
    if head.startswith(layout.ARMAG):
        return PackageKind.DEB if _DEB.match(head) else PackageKind.AR
    if head.startswith(_RPM):
        return PackageKind.RPM
    if head.startswith(_ZIP):
        return PackageKind.WHEEL if name.endswith(".whl") else None
    for method, magic in MAGIC.items():
        if magic.match(head):
            return PackageKind(method.value)
    if _is_kernel(head):
        return PackageKind.KERNEL
    if is_tar_header(head):
        return PackageKind.TAR
    return PackageKind.LZMA if _is_lzma(head) else None


def _is_kernel(head: bytes) -> bool:
    """Whether this is the beginning of a bzImage or an Image."""
    return is_image(head) or (head.startswith(_BOOT_MAGIC, _BOOT_MAGIC_AT) and head.startswith(_MAGIC_TEXT, _MAGIC_AT))


def is_image(head: bytes) -> bool:
    """Whether this is the beginning of an Image."""
    is_zboot = head.startswith(b"MZ") and head.startswith(_ZBOOT_MAGIC, _ZBOOT_MAGIC_AT)
    return head.startswith(_IMAGE_MAGIC, _IMAGE_MAGIC_AT) or is_zboot


def is_tar_header(head: bytes) -> bool:
    """Whether the sum of the header is right: older tar archives have no magic."""
    if len(head) < _TAR_HEADER or not (digits := _TAR_SUM.match(head, _TAR_SUM_AT)):
        return False
    claimed = int(digits[0].rstrip(b"\0"), 8)
    head = head[:_TAR_HEADER]
    field = head[_TAR_SUM_AT : _TAR_SUM_AT + 8]
    unsigned = sum(head) - sum(field) + 8 * ord(" ")
    # Some old ones took the bytes as signed.
    return claimed in {unsigned, unsigned - 256 * sum(byte > 127 for byte in head)}


def _is_lzma(head: bytes) -> bool:
    """Whether this is what the compressors write: the usual properties, and sizes that are likely."""
    if len(head) < 13 or head[0] != 0x5D:
        return False
    dictionary, size = int.from_bytes(head[1:5], "little"), int.from_bytes(head[5:13], "little")
    power = 1 << max(dictionary.bit_length() - 1, 0)
    return (
        dictionary in {power, power + power // 2} and power >= 1 << 12 and (size == _ANY_SIZE or size < _LARGEST_LZMA)
    )
