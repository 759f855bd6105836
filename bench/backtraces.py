"""The measures of the Compact Backtrace Format: its kernels against plain Python, and its size against other forms.

As a program it takes recordings of perf and prints what a frame of their stacks costs in each form:

    python bench/backtraces.py perf.data...

Without any it prints how long a frame takes, of more and more stacks.
"""

from __future__ import annotations

import gzip
import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import zstandard

from measure import Figure, alternate
from recordings import recording
from walkback.base.arrays import I64, U8, U64, Bools
from walkback.capture.unwinding import Unwinding, unwind
from walkback.cbf.decoding import decode_all
from walkback.cbf.encoding import encode_columns
from walkback.cbf.layout import FrameCode
from walkback.export.formats import FORMATS
from walkback.stacks.distinct import Distinct
from walkback.stacks.stacks import End

_PLAINLY = 20_000
"""Backtraces that plain Python goes through."""
_LEVEL = 3


def backtraces(rounds: int) -> Iterator[Figure]:
    """The stacks of a compiler and of Python at work."""
    stacks = Stacks.of(recording())
    data, offsets = stacks.encoded()
    some = stacks.some(min(_PLAINLY, len(stacks)))
    pieces = [data[begin:end].tobytes() for begin, end in pairwise(offsets[: len(some) + 1].tolist())]
    assert [plain_decode(piece) for piece in pieces[:1000]] == some.as_lists()[:1000]
    lists = [frames for frames, _ in some.as_lists()]
    assert [plain_encode(frames) for frames in lists[:1000]] == [piece[:-1] for piece in pieces[:1000]]
    ours_in, theirs_in, ours_out, theirs_out = alternate(
        rounds,
        lambda: _seconds(lambda: decode_all(data)) / stacks.frames,
        lambda: _seconds(lambda: [plain_decode(piece) for piece in pieces]) / some.frames,
        lambda: _seconds(stacks.encoded) / stacks.frames,
        lambda: _seconds(lambda: [plain_encode(one) for one in lists]) / some.frames,
    )
    yield Figure("decode CBF, a frame", ours_in * 1e9, theirs_in * 1e9, "ns", "plain Python", 1 / 100)
    yield Figure("encode CBF, a frame", ours_out * 1e9, theirs_out * 1e9, "ns", "plain Python", 1 / 100, 1e3 / 30)
    sizes = stacks.sizes() | {"pprof, compressed": _pprof(stacks.path)[0] / stacks.frames}
    for name, size in sizes.items():
        if name != "CBF":
            yield Figure("CBF, a frame", sizes["CBF"], size, "B", name, 1, 5)


@dataclass(frozen=True)
class Stacks:
    """The stacks of a recording."""

    path: Path
    first: I64
    kind: U8
    pc: U64
    truncated: Bools

    @classmethod
    def of(cls, path: Path) -> Stacks:
        """All of them, in their order."""
        batches = list(Unwinding(path, names_last=True, lines=False))
        sizes = np.concatenate([np.diff(one.first) for one in batches])
        pc = np.concatenate([one.pc for one in batches])
        is_return = pc != np.concatenate([one.lookup for one in batches])
        kind = np.where(is_return, np.uint8(FrameCode.RA), np.uint8(FrameCode.PC))
        end = np.concatenate([one.end for one in batches])
        return cls(path, np.concatenate(([0], np.cumsum(sizes))), kind, pc, end != End.COMPLETE)

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def frames(self) -> int:
        """How many there are."""
        return len(self.pc)

    def some(self, count: int) -> Stacks:
        """The first of them."""
        frames = int(self.first[count])
        return Stacks(self.path, self.first[: count + 1], self.kind[:frames], self.pc[:frames], self.truncated[:count])

    def repeated(self, times: int) -> Stacks:
        """All of them, this many times."""
        first = np.concatenate(([0], np.cumsum(np.tile(np.diff(self.first), times))))
        columns = (np.tile(column, times) for column in (self.kind, self.pc, self.truncated))
        return Stacks(self.path, first, *columns)

    @cached_property
    def distinct(self) -> Stacks:
        """Each once."""
        found = Distinct()
        numbers = found.add(self.first, self.pc)
        _, chosen = np.unique(numbers, return_index=True)
        sizes = np.diff(self.first)[chosen]
        first = np.concatenate(([0], np.cumsum(sizes)))
        frame = np.arange(int(first[-1])) + np.repeat(self.first[chosen] - first[:-1], sizes)
        return Stacks(self.path, first, self.kind[frame], self.pc[frame], self.truncated[chosen])

    def encoded(self) -> tuple[U8, I64]:
        """In CBF."""
        return encode_columns(self.first, self.kind, self.pc, truncated=self.truncated)

    def as_lists(self) -> list[tuple[list[tuple[int, int]], bool]]:
        """As plain Python has them: kind and address of each frame, and whether the stack is truncated."""
        kind, pc, first = self.kind.tolist(), self.pc.tolist(), self.first.tolist()
        return [
            (list(zip(kind[begin:end], pc[begin:end], strict=True)), truncated)
            for (begin, end), truncated in zip(pairwise(first), self.truncated.tolist(), strict=True)
        ]

    def sizes(self) -> dict[str, float]:
        """Bytes a frame in each form; in pprof equal stacks are one, and names and files count as well."""
        data, _ = self.encoded()
        plain = self.pc.tobytes()
        press = zstandard.ZstdCompressor(_LEVEL)
        bounds = (self.first * 8).tolist()
        pieces = sum(len(press.compress(plain[begin:end])) for begin, end in pairwise(bounds))
        sizes = {
            "CBF": len(data),
            "plain addresses": len(plain),
            "zstd of each backtrace's addresses": pieces,
            "zstd of all addresses together": len(press.compress(plain)),
            "zstd of all CBF together": len(press.compress(data.tobytes())),
        }
        return {name: size / self.frames for name, size in sizes.items()}


def plain_decode(data: bytes) -> tuple[list[tuple[int, int]], bool]:
    """A decoder as one would write it in Python, with the checks that ours makes."""
    if not data or data[0] > 2:
        message = "this is no backtrace"
        raise ValueError(message)
    width = 2 << data[0]
    mask = (1 << 8 * width) - 1
    frames: list[tuple[int, int]] = []
    address, place, size = 0, 1, len(data)
    while place < size:
        code = data[place]
        place += 1
        if 0x10 <= code < 0x40:
            count = (code & 7) + 1
            value = int.from_bytes(_operand(data, place, count, width), "big", signed=True)
            place += count
            address = (value if code & 8 else address + value) & mask
            frames.append((code >> 4, address))
        elif code < 2:
            return frames, code == 1
        elif 0x40 <= code < 0x90:
            count = (code & (7 if code & 0x80 else 31)) + 1
            if code & (8 if code & 0x80 else 32):
                operand = _operand(data, place, count, width)
                place += count
                count = int.from_bytes(operand, "big")
            frames.extend([frames[-1]] * count if code & 0x80 else [(4, count)])
        else:
            message = f"this is no instruction: {code:#x}"
            raise ValueError(message)
    return frames, False


def _operand(data: bytes, place: int, count: int, width: int) -> bytes:
    operand = data[place : place + count]
    if len(operand) != count or count > width:
        message = "an operand is cut, or too wide"
        raise ValueError(message)
    return operand


def plain_encode(frames: list[tuple[int, int]]) -> bytes:
    """An encoder as one would write it in Python: of 64-bit words, for frames that are addresses; without an end."""
    out = bytearray(b"\2")
    before = None
    address = repeats = 0
    for frame in [*frames, None]:
        if frame == before and frame is not None:
            repeats += 1
            continue
        if repeats:
            count = (repeats.bit_length() + 7) // 8
            out += bytes([0x7F + repeats]) if repeats <= 8 else bytes([0x87 + count]) + repeats.to_bytes(count, "big")
            repeats = 0
        if frame is None:
            break
        kind, value = frame
        whole = value - (value >> 63 << 64)
        delta = (value - address) & 0xFFFFFFFFFFFFFFFF
        delta -= delta >> 63 << 64
        whole_size = (whole.bit_length() if whole >= 0 else (~whole).bit_length()) // 8 + 1
        delta_size = (delta.bit_length() if delta >= 0 else (~delta).bit_length()) // 8 + 1
        if before is None or whole_size < delta_size:
            out.append(kind << 4 | 8 | whole_size - 1)
            out += whole.to_bytes(whole_size, "big", signed=True)
        else:
            out.append(kind << 4 | delta_size - 1)
            out += delta.to_bytes(delta_size, "big", signed=True)
        address, before = value, frame
    return bytes(out)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _pprof(path: Path) -> tuple[int, int]:
    """Bytes of the recording as pprof, compressed and not."""
    out = io.BytesIO()
    FORMATS["pprof"].export(unwind(path), out)
    return len(out.getvalue()), len(gzip.decompress(out.getvalue()))


def _growth() -> None:
    """Nanoseconds a frame over three decades of size."""
    stacks = Stacks.of(recording())
    print(f"{'frames':>12}  {'encode':>6}  {'decode':>6}  ns a frame")
    for wanted in (10**4, 10**5, 10**6, 10**7):
        some = stacks.repeated(-(-wanted // stacks.frames))
        some = some.some(int(np.searchsorted(some.first, wanted, side="right")) - 1)
        data, _ = some.encoded()
        encode, decode = alternate(
            5, lambda some=some: _seconds(some.encoded), lambda data=data: _seconds(lambda: decode_all(data))
        )
        print(f"{some.frames:>12,}  {encode / some.frames * 1e9:6.2f}  {decode / some.frames * 1e9:6.2f}")


def main() -> None:
    if not sys.argv[1:]:
        _growth()
    for name in sys.argv[1:]:
        stacks = Stacks.of(Path(name))
        pressed, whole = _pprof(Path(name))
        for what, some in (("stacks", stacks), ("unique stacks", stacks.distinct)):
            print(f"{name}: {len(some):,} {what}, {some.frames:,} frames; bytes a frame:")
            for form, size in some.sizes().items():
                print(f"  {form:<36} {size:6.2f}")
            print(f"  {'pprof, names and all':<36} {whole / some.frames:6.2f}")
            print(f"  {'pprof, compressed':<36} {pressed / some.frames:6.2f}")


if __name__ == "__main__":
    main()
