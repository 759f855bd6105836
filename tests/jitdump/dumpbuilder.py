"""Writes dumps of code by hand, in either byte order; the numbers stand here a second time."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from walkback.base.arch import ByteOrder


@dataclass
class DumpBuilder:
    """A dump in the making."""

    byteorder: ByteOrder = "little"
    machine: int = 62
    flags: int = 0
    version: int = 1
    records: bytes = b""
    time: int = 100

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(("<" if self.byteorder == "little" else ">") + form, *values)

    def record(self, kind: int, contents: bytes) -> DumpBuilder:
        self.time += 10
        self.records += self.pack("IIQ", kind, 16 + len(contents), self.time) + contents
        return self

    def load(self, name: bytes, address: int, code: bytes, index: int = 0) -> DumpBuilder:
        return self.record(0, self.pack("IIQQQQ", 7, 7, address, address, len(code), index) + name + b"\0" + code)

    def move(self, old: int, new: int, size: int, index: int) -> DumpBuilder:
        return self.record(1, self.pack("IIQQQQQ", 7, 7, new, old, new, size, index))

    def lines(self, address: int, *entries: tuple[int, int, bytes]) -> DumpBuilder:
        rows = b"".join(self.pack("Qii", address + at, line, 0) + name + b"\0" for at, line, name in entries)
        return self.record(2, self.pack("QQ", address, len(entries)) + rows)

    def frames(self, frames: bytes, header: bytes = b"") -> DumpBuilder:
        return self.record(4, self.pack("QQQ", len(frames) + len(header), len(header), 0) + frames + header)

    def entries(self, code_size: int) -> bytes:
        """An `.eh_frame` that describes code of this size before it."""
        cie = self.pack("IB", 0, 1) + b"zR\0" + bytes((1, 0x78, 16, 1, 0x1B, 0x0C, 7, 8, 0x90, 1, 0, 0))
        first = self.pack("I", len(cie)) + cie
        before = -(code_size + -code_size % 8) - len(first) - 8
        fde = self.pack("IiI", len(first) + 4, before, code_size) + bytes((0, 0x44, 0x0E, 16))
        return first + self.pack("I", len(fde)) + fde + bytes(4)

    def close(self) -> DumpBuilder:
        return self.record(3, b"")

    def __bytes__(self) -> bytes:
        return self.pack("IIIIIIQQ", 0x4A695444, self.version, 40, self.machine, 0, 7, 100, self.flags) + self.records
