"""Assembles core files for tests, of any of the machines and either byte order.

It knows nothing of the reader: the shapes stand here a second time, as `struct` formats.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from walkback.base.arch import ByteOrder

MACHINES = {"AMD64": 62, "AArch64": 183, "s390x": 22}
WORDS = {"AMD64": 27, "AArch64": 34, "s390x": 27}
"""How many 64-bit words the registers of a thread have."""


@dataclass
class CoreBuilder:
    machine: str = "AMD64"
    byteorder: ByteOrder = "little"
    notes: bytes = b""
    loads: list[tuple[int, bytes, int, int]] = field(default_factory=list)

    @property
    def order(self) -> str:
        return "<" if self.byteorder == "little" else ">"

    def pack(self, codes: str, *values: int) -> bytes:
        return struct.pack(self.order + codes, *values)

    def note(self, kind: int, desc: bytes, name: str = "CORE") -> CoreBuilder:
        text = name.encode() + b"\0"
        padded = text + bytes(-len(text) % 4)
        self.notes += self.pack("III", len(text), len(desc), kind) + padded + desc + bytes(-len(desc) % 4)
        return self

    def thread(self, tid: int, words: list[int], signal: int = 0) -> CoreBuilder:
        words = words + [0] * (WORDS[self.machine] - len(words))
        head = self.pack("iiihxxQQiiii", signal, 0, 0, signal, 0, 0, tid, 1, tid, tid)
        return self.note(1, head.ljust(112, b"\0") + self.pack(f"{len(words)}Q", *words) + bytes(8))

    def process(self, pid: int, name: bytes, arguments: bytes) -> CoreBuilder:
        desc = bytes(4) + bytes(4) + self.pack("QIIiiii", 0, 0, 0, pid, 1, pid, pid)
        return self.note(3, desc + name.ljust(16, b"\0") + arguments.ljust(80, b"\0"))

    def auxiliary(self, **values: Any) -> CoreBuilder:
        numbers = {"phdr": 3, "phnum": 5, "base": 7, "entry": 9, "execfn": 31, "vdso": 33}
        pairs = [self.pack("QQ", numbers[name], value) for name, value in values.items()]
        return self.note(6, b"".join(pairs) + bytes(16))

    def files(self, *entries: tuple[int, int, int, bytes], page: int = 4096) -> CoreBuilder:
        words = b"".join(self.pack("QQQ", start, end, offset) for start, end, offset, _ in entries)
        names = b"".join(name + b"\0" for *_, name in entries)
        return self.note(0x46494C45, self.pack("QQ", len(entries), page) + words + names)

    def load(self, address: int, contents: bytes, *, size: int | None = None, flags: int = 6) -> CoreBuilder:
        self.loads.append((address, contents, len(contents) if size is None else size, flags))
        return self

    def build(self) -> bytes:
        count = 1 + len(self.loads)
        extended = count >= 0xFFFF
        place = 64 + 56 * count
        headers = [self.pack("IIQQQQQQ", 4, 4, place, 0, 0, len(self.notes), 0, 4)]
        place += len(self.notes)
        for address, contents, size, flags in self.loads:
            headers.append(self.pack("IIQQQQQQ", 1, flags, place, address, 0, len(contents), size, 4096))
            place += len(contents)
        ident = b"\x7fELF\2" + (b"\1" if self.byteorder == "little" else b"\2") + b"\1" + bytes(9)
        shown, sections = (0xFFFF, place) if extended else (count, 0)
        head = self.pack(
            "HHIQQQIHHHHHH", 4, MACHINES[self.machine], 1, 0, 64, sections, 0, 64, 56, shown, 64, int(extended), 0
        )
        parts = [ident + head, *headers, self.notes, *(contents for _, contents, _, _ in self.loads)]
        if extended:
            parts.append(self.pack("IIQQQQIIQQ", 0, 0, 0, 0, 0, 1, 0, count, 0, 0))
        return b"".join(parts)
