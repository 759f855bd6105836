"""The Linux kernel as it is booted, `vmlinuz`: on x86 a bzImage, with the compressed ELF file in it.

On AArch64 it is an Image, which has no ELF file: it is what the kernel has in memory, without headers and symbols.
Facts are those of the kernel's `Documentation/arch/x86/boot.rst` and `Documentation/arch/arm64/booting.rst`, and of
LZ4's "legacy frame", in which the kernel's build writes LZ4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from walkback.base.decoders import MAGIC, Method
from walkback.base.errors import ElfError, UnreadableError
from walkback.packages import _lz4
from walkback.packages.kinds import is_image
from walkback.packages.streams import Flow, MemoryBudget, Stream, counted, inflated

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION_AT: Final = 0x206
_WITH_PAYLOAD: Final = 0x208
"""The first version of the header that says where the compressed kernel is."""
_SECTORS_AT: Final = 0x1F1
_SECTOR: Final = 512
_USUAL_SECTORS: Final = 4
"""How many there are where the header has 0."""
_PAYLOAD_AT: Final = 0x248
_HEADER: Final = 0x250

_LZ4: Final = b"\x02\x21\x4c\x18"
_LZO: Final = b"\x89LZO"
_LZMA: Final = b"\x5d\0\0"
_BLOCK: Final = 8 << 20
"""The most bytes that a block of LZ4 holds."""
_LARGEST: Final = _BLOCK + _BLOCK // 255 + 16
"""The most bytes that it takes."""
_SIZE: Final = 4
"""Bytes behind the compressed kernel, which have its size."""
_LONGEST_MAGIC: Final = 6


def unpacked(stream: Stream, room: MemoryBudget) -> Stream:
    """The ELF file of a bzImage."""
    if is_image(stream.peek(_HEADER)):
        raise UnreadableError("is a kernel without an ELF file in it, as AArch64 boots it; vmlinux is one")
    header = stream.read(_HEADER)
    version = int.from_bytes(header[_VERSION_AT : _VERSION_AT + 2], "little")
    if version < _WITH_PAYLOAD:
        raise UnreadableError(f"is a kernel with a boot header of version {version:#06x}, before {_WITH_PAYLOAD:#06x}")
    offset = int.from_bytes(header[_PAYLOAD_AT : _PAYLOAD_AT + 4], "little")
    size = int.from_bytes(header[_PAYLOAD_AT + 4 : _PAYLOAD_AT + 8], "little")
    before = ((header[_SECTORS_AT] or _USUAL_SECTORS) + 1) * _SECTOR + offset - _HEADER
    if before < 0:
        raise ElfError("is a kernel that would begin within its boot header")
    stream.part(before).drain()
    payload = stream.part(size)
    magic = payload.peek(_LONGEST_MAGIC)
    for method, pattern in MAGIC.items():
        if pattern.match(magic):
            return inflated(method, payload, room)
    if magic.startswith(_LZ4):
        payload = payload.part(max(size - _SIZE, 0))
        return Flow(counted(_blocks(payload), room.of(payload)))
    if magic.startswith(_LZO):
        raise UnreadableError("is a kernel compressed with LZO, which is not read here")
    if not magic.startswith(_LZMA):
        raise UnreadableError("is a kernel compressed in a way that is not known here")
    return inflated(Method.LZMA, payload, room)


def _blocks(stream: Stream) -> Iterator[bytes]:
    """What a legacy frame of LZ4 holds."""
    stream.read(len(_LZ4))
    while size := stream.peek(_SIZE):
        number = int.from_bytes(stream.read(_SIZE), "little") if len(size) == _SIZE else 0
        if not 0 < number <= _LARGEST:
            raise ElfError("holds a broken lz4 stream: a block has an impossible size")
        found = _lz4.expand(stream.read(number), _BLOCK)
        if found is None:
            raise ElfError("holds a broken lz4 stream: a block is damaged")
        yield found
