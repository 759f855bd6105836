"""The header of a section, and where the next one stands.

A linker without knowledge of SFrame puts complete sections one after the other. What is wrong with a header, or makes
the index unreachable, raises `SFrameError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.errors import SFrameError
from walkback.sframe import layout

_MAGICS: Final = (b"\xe2\xde", b"\xde\xe2")


class Places:
    """Where the parts of a section stand, by the fields of its header."""

    __slots__ = ()
    version: int
    num_fdes: int
    fre_len: int
    fdeoff: int
    freoff: int

    @property
    def auxhdr_len(self) -> int:
        """Bytes of the auxiliary header."""
        raise NotImplementedError

    @property
    def header_end(self) -> int:
        """Where the auxiliary header ends, and the offsets of the header count from."""
        return layout.HEADER_SIZE + self.auxhdr_len

    @property
    def fde_start(self) -> int:
        """Position of the function index."""
        return self.header_end + self.fdeoff

    @property
    def fde_end(self) -> int:
        """Where the function index ends."""
        return self.fde_start + self.num_fdes * self.fde_size

    @property
    def fre_start(self) -> int:
        """Position of the FRE sub-section."""
        return self.header_end + self.freoff

    @property
    def end(self) -> int:
        """Where the FRE sub-section ends."""
        return self.fre_start + self.fre_len

    @property
    def fde_size(self) -> int:
        """Bytes of an entry of the index."""
        return layout.FDE_SIZES[self.version]

    @property
    def head_size(self) -> int:
        """Bytes of the attribute record in front of a function's rows."""
        return layout.ATTRIBUTE_SIZE if self.version == 3 else 0


class _HeaderFields(NamedTuple):
    magic: int
    version: int
    flags: int
    abi_arch: int
    cfa_fixed_fp_offset: int
    cfa_fixed_ra_offset: int
    auxhdr_len: int
    num_fdes: int
    num_fres: int
    fre_len: int
    fdeoff: int
    freoff: int


class Header(_HeaderFields, Places):
    """The fields of a header in their order on disk."""

    __slots__ = ()


def read_header(view: memoryview, start: int = 0) -> tuple[Header, ByteOrder]:
    """The header of a section that begins at `start`, and the byte order that its magic number shows."""
    length = len(view) - start
    if length < layout.HEADER_SIZE:
        message = f"{length} bytes are too few for a header of {layout.HEADER_SIZE}"
        raise SFrameError(message, offset=0, rule="header-size")
    order: ByteOrder = "little" if view[start] == layout.MAGIC & 0xFF else "big"
    header = Header(*np.frombuffer(view, layout.header_dtype(order), 1, start)[0].item())
    if header.magic != layout.MAGIC:
        message = f"the magic number is {bytes(view[start : start + 2]).hex(' ')}, not e2 de or de e2"
        raise SFrameError(message, offset=0, rule="header-magic")
    if header.version not in layout.VERSIONS:
        message = f"version {header.version} is not known; versions 1, 2 and 3 are"
        raise SFrameError(message, offset=2, rule="header-version")
    if header.header_end > length:
        message = f"the auxiliary header of {header.auxhdr_len} bytes runs over the end at {length:#x}"
        raise SFrameError(message, offset=7, rule="header-auxiliary")
    if header.num_fdes and header.fde_end > length:
        message = (
            f"the index of {header.num_fdes} functions would end at {header.fde_end:#x}, "
            f"the section ends at {length:#x}"
        )
        raise SFrameError(message, offset=8, rule="index-bounds")
    if header.end > length:
        message = f"the FRE sub-section would end at {header.end:#x}, the section ends at {length:#x}"
        raise SFrameError(message, offset=0x10, rule="rows-bounds")
    return header, order


def headers(view: memoryview) -> Iterator[tuple[int, int, Header, ByteOrder]]:
    """Each complete section in a place: where it begins, where the next one does or the place ends, and its header.

    Between two there may be zeros up to the alignment of 8. What follows the last is its tail.
    """
    position = 0
    while True:
        try:
            header, order = read_header(view, position)
        except SFrameError as error:
            raise further(error, position) from None
        following = _next(view, position, header)
        yield position, len(view) if following is None else following, header, order
        if following is None:
            return
        position = following


def further(error: SFrameError, position: int) -> SFrameError:
    """An error of the section that begins at this position, counted from the start of the place."""
    error.offset = position + (error.offset or 0)
    if position:
        error.message = f"in the further section at {position:#x}, {error.message}"
    return error


def _next(view: memoryview, position: int, header: Header) -> int | None:
    """Where the next header stands after the section at `position`, if there is one."""
    end = position + max(header.fde_end, header.end)
    for start in range(end, min(end + 8, len(view) - layout.HEADER_SIZE + 1)):
        if bytes(view[start : start + 2]) in _MAGICS and start % 4 == position % 4:
            return start if view[start + 2] in layout.VERSIONS else None
        if view[start]:
            return None
    return None
