"""What stands at which byte: every instruction with its meaning, and what is wrong or worth knowing about it.

For a person who looks at some bytes; an object for each instruction, made as they are gone through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

from walkback.base.dataclass import dataclass
from walkback.base.findings import ByteFinding, ByteFindingObject
from walkback.base.text import counted
from walkback.cbf import layout
from walkback.cbf.layout import BacktraceFault, FrameCode


class InstructionObject(TypedDict):
    """Some bytes and what they say, as JSON."""

    offset: int
    """The offset."""
    bytes: str
    """The bytes, in hexadecimal."""
    mnemonic: str
    """The instruction; `info` for the information byte, and `?` for what cannot be read."""
    meaning: str
    """Its meaning."""
    findings: list[ByteFindingObject]
    """What is wrong or worth knowing about it."""
    address: NotRequired[int]
    """The address that is computed."""
    count: NotRequired[int]
    """The number of frames that are omitted, or of repeats."""


@dataclass(frozen=True, slots=True)
class BacktraceInstruction:
    """Some bytes and what they say."""

    offset: int
    data: bytes
    mnemonic: str
    """As in the document; `info` for the information byte, and `?` for what cannot be read."""
    meaning: str
    address: int | None = None
    """The address that is computed."""
    count: int | None = None
    """Of frames that are omitted, or of repeats."""
    findings: tuple[ByteFinding, ...] = ()
    """About it; what is found at the end of a backtrace is with its last instruction."""

    def as_object(self) -> InstructionObject:
        """For JSON."""
        found: InstructionObject = {
            "offset": self.offset,
            "bytes": self.data.hex(),
            "mnemonic": self.mnemonic,
            "meaning": self.meaning,
            "findings": [one.as_object() for one in self.findings],
        }
        if self.address is not None:
            found["address"] = self.address
        if self.count is not None:
            found["count"] = self.count
        return found


def explain(data: bytes) -> Iterator[BacktraceInstruction]:
    """Those of all backtraces of a stream, up to what cannot be stepped over.

    >>> [instruction.meaning for instruction in walkback.cbf.explain(bytes.fromhex("021a40104600"))]
    ['version 0, 64-bit words', 'absolute', 'the backtrace ends']
    """
    pos = 0
    if not data:
        yield _wrong(data, 0, BacktraceFault.EMPTY)
    while pos < len(data):
        reader = _CodeReader(data, pos)
        yield from reader.instructions()
        pos = reader.pos


class _CodeReader:
    """Goes through one backtrace."""

    def __init__(self, data: bytes, pos: int) -> None:
        self.data = data
        self.pos = pos
        self.width = 8
        self.address = 0
        self.addresses = 0
        self.frames = 0

    def instructions(self) -> Iterator[BacktraceInstruction]:
        info = self.data[self.pos]
        if info >> 2 != layout.FORMAT_VERSION or (info & 3) not in layout.WORDS:
            yield self._stop(BacktraceFault.VERSION if info >> 2 else BacktraceFault.SIZE)
            return
        bits = layout.WORDS[info & 3]
        self.width = bits // 8
        no_end = ByteFinding(len(self.data), "no-end", "the data ends without end or trunc", note=True)
        last = len(self.data) == self.pos + 1
        yield self._take(1, "info", f"version 0, {bits}-bit words", findings=[no_end] if last else [])
        while self.pos < len(self.data):
            code = self.data[self.pos]
            if code in (layout.OP_END, layout.OP_TRUNC):
                meaning = "the backtrace is truncated here" if code else "the backtrace ends"
                yield self._take(1, "trunc" if code else "end", meaning)
                return
            size = _operand_size(code)
            if layout.OP_TRUNC < code < layout.FIRST_ADDRESS or code >= layout.FIRST_RESERVED:
                yield self._stop(BacktraceFault.RESERVED)
                return
            if code >= layout.OP_REP and not self.frames:
                yield self._stop(BacktraceFault.REPEAT)
                return
            if self.pos + 1 + size > len(self.data):
                yield self._stop(BacktraceFault.SHORT)
                return
            findings = [BacktraceFault.WIDE.at(self.pos)] if size > self.width else []
            if self.pos + 1 + size == len(self.data):
                findings.append(no_end)
            if code < layout.OP_OMIT:
                yield self._address(code, size, findings)
            else:
                yield self._count(code, size, findings)

    def _address(self, code: int, size: int, findings: list[ByteFinding]) -> BacktraceInstruction:
        value = int.from_bytes(self.data[self.pos + 1 : self.pos + 1 + size], "big", signed=True)
        if code & layout.ABSOLUTE:
            self.address = value
            meaning = "absolute"
        else:
            self.address += value
            meaning = f"{'-' if value < 0 else '+'}{abs(value):#x}"
            if not self.addresses:
                message = "the first address is relative; the document wants it absolute, and Swift starts from 0"
                findings.insert(0, ByteFinding(self.pos, "first-relative", message, note=True))
        self.address %= 1 << 8 * self.width
        self.addresses += 1
        self.frames += 1
        return self._take(
            1 + size,
            FrameCode(code >> layout.KIND_SHIFT).name.lower(),
            meaning,
            address=self.address,
            findings=findings,
        )

    def _count(self, code: int, size: int, findings: list[ByteFinding]) -> BacktraceInstruction:
        is_rep = code >= layout.OP_REP
        inline = 1 + (code & (layout.REP_COUNT if is_rep else layout.OMIT_COUNT))
        # Of what is wider than any number that is counted with, the last 8 bytes count.
        operand = self.data[self.pos + 1 : self.pos + 1 + size][-8:]
        count = int.from_bytes(operand, "big") if size else inline
        meaning = f"{counted(count, 'frame')} omitted"
        if is_rep:
            meaning = f"the previous frame {counted(count, 'more time')}"
        if not count:
            message = "a count of 0 says nothing" + (", but to some of Swift's readers once" if is_rep else "")
            findings.insert(0, ByteFinding(self.pos, "count-0", message, note=True))
        if is_rep and count > layout.SWIFT_MOST_REPEATS + 1:
            message = f"Swift's reader takes no repeat of more than {layout.SWIFT_MOST_REPEATS + 1}"
            findings.insert(0, ByteFinding(self.pos, "many-repeats", message, note=True))
        self.frames += 1
        return self._take(1 + size, "rep" if is_rep else "omit", meaning, count=count, findings=findings)

    def _take(
        self,
        size: int,
        mnemonic: str,
        meaning: str,
        *,
        address: int | None = None,
        count: int | None = None,
        findings: list[ByteFinding] | None = None,
    ) -> BacktraceInstruction:
        start = self.pos
        self.pos += size
        data = self.data[start : self.pos]
        return BacktraceInstruction(start, data, mnemonic, meaning, address, count, tuple(findings or ()))

    def _stop(self, fault: BacktraceFault) -> BacktraceInstruction:
        """What cannot be read, and all behind it."""
        found = _wrong(self.data, self.pos, fault)
        self.pos = len(self.data)
        return found


def _operand_size(code: int) -> int:
    """Bytes behind the byte of an instruction."""
    if code < layout.OP_OMIT:
        return 1 + (code & layout.ADDRESS_COUNT)
    if code < layout.OP_REP:
        return 1 + (code & layout.OMIT_COUNT) if code & layout.OMIT_EXTERNAL else 0
    return 1 + (code & layout.REP_COUNT) if code & layout.REP_EXTERNAL else 0


def _wrong(data: bytes, pos: int, fault: BacktraceFault) -> BacktraceInstruction:
    return BacktraceInstruction(pos, data[pos:], "?", fault.words, findings=(fault.at(pos),))
