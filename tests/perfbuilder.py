"""Writes perf.data, in both forms and byte orders, for any machine and with any kinds of samples."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from typing import Any

from walkback.base.arch import ByteOrder

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor

    FLUSH_BLOCK = ZstdCompressor.FLUSH_BLOCK
else:
    import zstandard
    from zstandard import COMPRESSOBJ_FLUSH_BLOCK as FLUSH_BLOCK

    def ZstdCompressor() -> Any:  # noqa: N802 - as it is called since 3.14
        return zstandard.ZstdCompressor().compressobj()


IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU = (1 << bit for bit in range(8))
PERIOD, STREAM_ID, RAW, BRANCH_STACK, REGS_USER, STACK_USER, WEIGHT, DATA_SRC = (1 << bit for bit in range(8, 16))
IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR, AUX, CGROUP, DATA_PAGE, CODE_PAGE = (1 << bit for bit in range(16, 24))

CONTEXT_KERNEL, CONTEXT_USER, CONTEXT_GUEST = 2**64 - 128, 2**64 - 512, 2**64 - 2048
MASKS = {"x86_64": 0xFF0FFF, "aarch64": (1 << 33) - 1, "s390x": (1 << 34) - 1}
KERNEL, USER = 1, 2
EXEC, DATA, FORK_EXEC = 1 << 13, 1 << 13, 1 << 13
HAS_BUILD_ID = 1 << 14


@dataclass
class Attr:
    """An event."""

    sample_type: int
    name: str = "cpu-clock"
    ids: tuple[int, ...] = ()
    regs_user: int = 0
    stack_user: int = 0
    period: int = 1
    freq: bool = False
    sample_id_all: bool = True
    read_format: int = 0
    branches: int = 0
    regs_intr: int = 0
    size: int = 136
    inherit: bool = False
    monotonic: bool = False
    deferred: bool = False


@dataclass
class Builder:
    """A recording in the making: records are added, then it is written."""

    byteorder: ByteOrder = "little"
    machine: str = "x86_64"
    attrs: list[Attr] = field(default_factory=list)
    build_ids: list[tuple[str, bytes]] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    features: dict[int, bytes] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        return "<" if self.byteorder == "little" else ">"

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(self.prefix + form, *values)

    def words(self, values: list[int] | tuple[int, ...]) -> bytes:
        return self.pack(f"{len(values)}Q", *(value % 2**64 for value in values))

    # Records

    def record(self, kind: int, misc: int, contents: bytes) -> bytes:
        """Any record; comes back as it is, so that it can be put into another one."""
        made = self.pack("IHH", kind, misc, 8 + len(contents)) + contents
        self.records.append(made)
        return made

    def trailer(self, pid: int = 0, tid: int = 0, time: int = 0, cpu: int = 0, attr: int = 0) -> bytes:
        """What stands at the end of records that are not samples."""
        if not self.attrs or not self.attrs[attr].sample_id_all:
            return b""
        kinds, number = self.attrs[attr].sample_type, (*self.attrs[attr].ids, 0)[0]
        out = self.pack("ii", pid, tid) if kinds & TID else b""
        out += self.words([time]) if kinds & TIME else b""
        out += self.words([number]) if kinds & ID else b""
        out += self.words([number]) if kinds & STREAM_ID else b""
        out += self.pack("II", cpu, 0) if kinds & CPU else b""
        return out + (self.words([number]) if kinds & IDENTIFIER else b"")

    def mmap(
        self, pid: int, start: int, size: int, offset: int, name: str, *, time: int = 0, misc: int = USER
    ) -> bytes:
        contents = self.pack("iiQQQ", pid, pid, start, size, offset) + padded(name)
        return self.record(1, misc, contents + self.trailer(pid, pid, time))

    def mmap2(
        self,
        pid: int,
        start: int,
        size: int,
        offset: int,
        name: str,
        *,
        time: int = 0,
        misc: int = USER,
        prot: int = 5,
        build_id: bytes | None = None,
    ) -> bytes:
        contents = self.pack("iiQQQ", pid, pid, start, size, offset)
        if build_id is None:
            contents += self.pack("IIQQ", 8, 1, 1234, 0)
        else:
            contents += bytes([len(build_id), 0, 0, 0]) + build_id.ljust(20, b"\0")
            misc |= HAS_BUILD_ID
        contents += self.pack("II", prot, 2) + padded(name)
        return self.record(10, misc, contents + self.trailer(pid, pid, time))

    def comm(self, pid: int, tid: int, name: str, *, time: int = 0, misc: int = 0) -> bytes:
        return self.record(3, misc, self.pack("ii", pid, tid) + padded(name) + self.trailer(pid, tid, time))

    def fork(
        self,
        pid: int,
        parent: int,
        tid: int | None = None,
        parent_tid: int | None = None,
        *,
        time: int = 0,
        misc: int = 0,
        kind: int = 7,
    ) -> bytes:
        tid, parent_tid = tid or pid, parent_tid or parent
        contents = self.pack("iiiiQ", pid, parent, tid, parent_tid, time)
        return self.record(kind, misc, contents + self.trailer(pid, tid, time))

    def exit(self, pid: int, tid: int | None = None, *, time: int = 0) -> bytes:
        return self.fork(pid, pid, tid or pid, tid or pid, time=time, kind=4)

    def finished_round(self) -> bytes:
        return self.record(68, 0, b"")

    def sample(
        self,
        attr: int = 0,
        *,
        misc: int = USER,
        **values: Any,
    ) -> bytes:
        """A sample; what is not given is 0, or where it has a length, empty."""
        return self.record(9, misc, self.sample_contents(self.attrs[attr], values))

    def sample_contents(self, attr: Attr, values: dict[str, Any]) -> bytes:
        kinds, out = attr.sample_type, b""
        number = values.get("id", (*attr.ids, 0)[0])
        out += self.words([number]) if kinds & IDENTIFIER else b""
        out += self.words([values.get("ip", 0)]) if kinds & IP else b""
        out += self.pack("ii", values.get("pid", 0), values.get("tid", 0)) if kinds & TID else b""
        for bit, name in ((TIME, "time"), (ADDR, "addr")):
            out += self.words([values.get(name, 0)]) if kinds & bit else b""
        out += self.words([number]) if kinds & ID else b""
        out += self.words([number]) if kinds & STREAM_ID else b""
        out += self.pack("II", values.get("cpu", 0), 0) if kinds & CPU else b""
        out += self.words([values.get("period", 1)]) if kinds & PERIOD else b""
        out += self.words(values.get("read", [])) if kinds & READ else b""
        if kinds & CALLCHAIN:
            chain = values.get("chain", [])
            out += self.words([len(chain), *chain])
        if kinds & RAW:
            raw = values.get("raw", b"")
            out += self.pack("I", len(raw) + (-len(raw) - 4) % 8) + raw + bytes((-len(raw) - 4) % 8)
        if kinds & BRANCH_STACK:
            branches = values.get("branches", [])
            index = [0] if attr.branches & 1 << 17 else []
            out += self.words([len(branches), *index, *(word for one in branches for word in one)])
        if kinds & REGS_USER:
            out += self._registers(attr.regs_user, values.get("registers"), values.get("abi", 2))
        if kinds & STACK_USER:
            stack = values.get("stack", b"")
            room = values.get("room", len(stack))
            out += self.words([room]) + stack.ljust(room, b"\xee") + (self.words([len(stack)]) if room else b"")
        for bit in (WEIGHT, DATA_SRC, TRANSACTION):
            out += self.words([7]) if kinds & bit else b""
        if kinds & REGS_INTR:
            out += self._registers(attr.regs_intr, values.get("registers_intr"), 2)
        for bit in (PHYS_ADDR, CGROUP, DATA_PAGE, CODE_PAGE):
            out += self.words([9]) if kinds & bit else b""
        return out + (self.words([8, 0]) if kinds & AUX else b"")

    def _registers(self, mask: int, values: dict[int, int] | None, abi: int) -> bytes:
        if values is None:
            return self.words([0])
        return self.words([abi, *(values.get(bit, 0) for bit in range(64) if mask >> bit & 1)])

    def compress(self, contents: bytes, pieces: int, *, two: bool = False) -> None:
        """Bytes of records as a zstd stream in so many COMPRESSED records, cut wherever it happens."""
        compressor = ZstdCompressor()
        step = -(-len(contents) // pieces)
        for begin in range(0, len(contents), step):
            part = compressor.compress(contents[begin : begin + step])
            part += compressor.flush(FLUSH_BLOCK)
            if two:
                part = self.words([len(part)]) + part + bytes(-len(part) % 8)
            self.record(83 if two else 81, 0, part)

    # Files

    def attr_bytes(self, attr: Attr) -> bytes:
        bits = [(attr.inherit, 1), (attr.freq, 10), (attr.sample_id_all, 18), (attr.monotonic, 25)]
        bits += [(attr.deferred, 38), (attr.deferred, 39)]
        flags = sum(1 << (bit if self.byteorder == "little" else 63 - bit) for is_set, bit in bits if is_set)
        whole = self.pack("IIQQQQQ", 1, attr.size, 0, attr.period, attr.sample_type, attr.read_format, flags)
        whole += self.pack("IIQQQ", 0, 0, 0, 0, attr.branches)
        whole += self.pack("QIiQII", attr.regs_user, attr.stack_user, attr.monotonic, attr.regs_intr, 0, 0)
        return whole.ljust(attr.size, b"\0")[: attr.size]

    def string(self, text: str) -> bytes:
        room = (len(text) + 64) // 64 * 64
        return self.pack("I", room) + text.encode().ljust(room, b"\0")

    def all_features(self) -> dict[int, bytes]:
        """The feature sections: where it was recorded, events' names, build IDs."""
        found = {3: self.string("elsewhere"), 4: self.string("6.1.0"), 6: self.string(self.machine)}
        if self.build_ids:
            found[2] = b"".join(self.build_id_record(name, one) for name, one in self.build_ids)
        size = self.attrs[0].size if self.attrs else 136
        names = self.pack("II", len(self.attrs), size)
        for attr in self.attrs:
            ids = self.words(attr.ids)
            names += self.attr_bytes(attr).ljust(size, b"\0")[:size]
            names += self.pack("I", len(attr.ids)) + self.string(attr.name) + ids
        return found | {12: names} | self.features

    def build_id_record(self, name: str, build_id: bytes) -> bytes:
        contents = self.pack("i", -1) + build_id.ljust(20, b"\0") + bytes([len(build_id), 0, 0, 0]) + padded(name)
        return self.pack("IHH", 67, 1 << 15 | USER, 8 + len(contents)) + contents

    def magic(self) -> bytes:
        return b"PERFILE2" if self.byteorder == "little" else b"2ELIFREP"

    def file(self, *, data_size: int | None = None) -> bytes:
        """A file of the usual form; `data_size` is what its header says."""
        ids = b"".join(self.words(attr.ids) for attr in self.attrs)
        attrs, place = b"", 104
        for attr in self.attrs:
            attrs += self.attr_bytes(attr) + self.pack("QQ", place, 8 * len(attr.ids))
            place += 8 * len(attr.ids)
        data = b"".join(self.records)
        features = self.all_features()
        begin = place + len(attrs)
        bits = [sum(1 << one % 64 for one in features if one // 64 == i) for i in range(4)]
        size = len(data) if data_size is None else data_size
        attr_size = (self.attrs[0].size if self.attrs else 136) + 16
        header = self.magic() + self.pack("QQQQQQQQ", 104, attr_size, place, len(attrs), begin, size, 0, 0)
        out = header + self.pack("4Q", *bits) + ids + attrs + data
        table, contents = b"", b""
        base = len(out) + 16 * len(features)
        for one in sorted(features):
            table += self.pack("QQ", base + len(contents), len(features[one]))
            contents += features[one]
        return out + table + contents

    def pipe(self) -> bytes:
        """What perf writes to a pipe."""
        records, self.records = self.records, []
        for attr in self.attrs:
            self.record(64, 0, self.attr_bytes(attr) + self.words(attr.ids))
        for number, contents in sorted(self.all_features().items()):
            self.record(80, 0, self.words([number]) + contents + bytes(-len(contents) % 8))
        for attr in self.attrs:
            if attr.ids:
                self.record(78, 0, self.words([2, attr.ids[0]]) + padded(attr.name))
        head, self.records = self.records, records
        return self.magic() + self.pack("Q", 16) + b"".join(head) + b"".join(records)


def padded(name: str) -> bytes:
    """A name with its NUL, up to a multiple of 8 bytes."""
    text = name.encode() + b"\0"
    return text + bytes(-len(text) % 8)
