"""A second reader and writer of the Compact Image Map Format, in plain Python and straight from its description.

It shares nothing with the package: numbers are strings of bits, and prefixes are kept as what they are. The writer
takes the instructions of paths as they are given, so that a test can choose any.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

FIXED = dict(
    enumerate([
        "/lib", "/usr/lib", "/usr/local/lib", "/opt/lib", "/System/Library/Frameworks",
        "/System/Library/PrivateFrameworks", "/System/iOSSupport", "/Library/Frameworks", "/System/Applications",
        "/Applications", "C:\\Windows\\System32", "C:\\Program Files",
    ])
)  # fmt: skip
WORDS = {"00": 16, "01": 32, "10": 64}


class BrokenError(Exception):
    """Something that a strict reader refuses."""


@dataclass
class PlainImage:
    base: int
    end: int
    build_id: bytes
    path: bytes | None
    broken: bool = False
    """Whether there was a path that could not be read."""


@dataclass
class PlainMap:
    word: int
    platform: str
    images: list[PlainImage] = field(default_factory=list)


def read(data: bytes) -> PlainMap:
    """The map that the data is, all of it."""
    rest = list(data)
    info = f"{take(rest):08b}"
    if info[:6] != "000000" or info[6:] not in WORDS:
        raise BrokenError("info")
    word = WORDS[info[6:]]
    text = bytes(take(rest) for _ in range(take(rest)))
    try:
        found = PlainMap(word, text.decode())
    except UnicodeDecodeError:
        raise BrokenError("platform") from None
    count = number(rest)
    if count > 1048576:
        raise BrokenError("count")
    table = {code: prefix.encode() for code, prefix in FIXED.items()}
    learned: list[bytes | None] = []
    for _ in range(count):
        before = found.images[-1].base if found.images else 0
        found.images.append(image(rest, word, before, table, learned))
    if rest:
        raise BrokenError("trailing")
    bases = [one.base for one in found.images]
    if bases != sorted(bases):
        raise BrokenError("order")
    return found


def take(rest: list[int]) -> int:
    if not rest:
        raise BrokenError("missing")
    return rest.pop(0)


def number(rest: list[int]) -> int:
    bits = ""
    while True:
        byte = f"{take(rest):08b}"
        bits += byte[1:]
        if byte[0] == "0":
            return int(bits, 2)


def address(rest: list[int], size: int, word: int, difference: bool) -> int:
    bits = "".join(f"{take(rest):08b}" for _ in range(size))
    # Swift writes differences with a byte of signs in front.
    if len(bits) > word and not (difference and bits[:8] in {"00000000", "11111111"} and len(bits) == word + 8):
        raise BrokenError("wide")
    return int(bits.rjust(word, bits[0])[-word:], 2)


def image(rest: list[int], word: int, before: int, table: dict[int, bytes], learned: list[bytes | None]) -> PlainImage:
    header = f"{take(rest):08b}"
    if header[1] == "1":
        raise BrokenError("reserved")
    base = address(rest, int(header[2:5], 2) + 1, word, header[0] == "1")
    if header[0] == "1":
        base = (base + before) % 2**word
    end = (base + address(rest, int(header[5:], 2) + 1, word, True)) % 2**word
    if end <= base:
        raise BrokenError("end")
    length = number(rest)
    if length > 1024:
        raise BrokenError("build ID")
    build_id = bytes(take(rest) for _ in range(length))
    return PlainImage(base, end, build_id, *path(rest, table, learned))


def path(rest: list[int], table: dict[int, bytes], learned: list[bytes | None]) -> tuple[bytes | None, bool]:
    made: bytes | None = b""
    raw: bytes | None = None
    """All that came from the first raw bytes on; prefixes are taken of it."""
    begun = False
    while True:
        opcode = f"{take(rest):08b}"
        value = int(opcode[-6:], 2)
        piece: bytes | None
        if opcode == "00000000":
            break
        if opcode[:2] == "00":
            piece = bytes(take(rest) for _ in range(value))
            raw = b"" if not begun and made is not None else raw
            ends = [place for place in range(len(piece)) if piece[place] in b"/\\" and (begun or place > 0)]
            learned.extend(None if raw is None else raw + piece[:place] for place in ends)
            begun = True
        elif opcode[:2] == "01":
            version = take(rest)
            name = bytes(take(rest) for _ in range(value + 1))
            middle = b"/" if version == 1 else b"/Versions/" + bytes([version]) + b"/"
            piece = b"/" + name + b".framework" + middle + name
        else:
            code = value
            if opcode[1] == "1":
                code = 64 + int("".join(f"{take(rest):08b}" for _ in range(value + 1)), 2)
            piece = learned[code - 32] if 32 <= code < 32 + len(learned) else table.get(code)
        made = None if made is None or piece is None else made + piece
        if begun:
            raw = None if raw is None or piece is None else raw + piece
        if opcode[:2] == "01":
            break
    if made is None:
        return None, True
    try:
        made.decode()
    except UnicodeDecodeError:
        return None, True
    return made or None, False


# Writing


def counted(value: int) -> bytes:
    groups = [value & 127]
    while value := value >> 7:
        groups.append(value & 127 | 128)
    return bytes(reversed(groups))


def signed_sizes(value: int, word: int) -> Iterator[bytes]:
    """All ways to say a number of the word, the shortest first."""
    bits = f"{value % 2**word:0{word}b}"
    for size in range(8, word + 8, 8):
        if set(bits[: word - size + 1]) in ({"0"}, {"1"}):
            yield int(bits[word - size :], 2).to_bytes(size // 8, "big")


@dataclass
class Chosen:
    """An image with the choices that a writer has."""

    base: int
    end: int
    build_id: bytes
    path: bytes
    """Its instructions."""
    relative: bool = False
    wider: int = 0
    """How many bytes more than needed the base takes, if the word has so many."""
    wider_end: int = 0


def write(word: int, platform: str, images: list[Chosen]) -> bytes:
    out = bytes([{16: 0, 32: 1, 64: 2}[word]]) + bytes([len(platform.encode())]) + platform.encode()
    out += counted(len(images))
    before = 0
    for one in images:
        base = list(signed_sizes(one.base - before if one.relative else one.base, word))
        end = list(signed_sizes(one.end - one.base, word))
        its_base, its_end = base[min(one.wider, len(base) - 1)], end[min(one.wider_end, len(end) - 1)]
        header = f"{one.relative:b}0{len(its_base) - 1:03b}{len(its_end) - 1:03b}"
        out += bytes([int(header, 2)]) + its_base + its_end
        out += counted(len(one.build_id)) + one.build_id + one.path
        before = one.base
    return out


def shortest_addresses(base: int, end: int, before: int, word: int) -> int:
    """How many bytes header, base and end take at least."""
    away = min(len(next(signed_sizes(value, word))) for value in (base, base - before))
    return 1 + away + len(next(signed_sizes(end - base, word)))


# Paths by choice


def shortest_path(wanted: bytes, known: dict[int, bytes], *, most: int) -> int:
    """How few bytes say a path: all sequences of instructions are tried, the short ones first."""
    endings: dict[bytes, int] = {}
    """What can end a path, and what it takes; `end` is not needed then, but counted below."""
    for length, version in itertools.product(range(1, 65), (None, *range(256))):
        name = wanted[-length:]
        folder = b"" if version is None else b"/Versions/" + bytes([version])
        endings[b"/" + name + b".framework" + folder + b"/" + name] = 2 + length - 1
    reached: dict[int, set[bytes]] = {0: {b""}}
    for size in range(most + 1):
        for text in reached.get(size, set()):
            if text == wanted:
                return size + 1
            rest = wanted[len(text) :]
            steps = [(1 + length, rest[:length]) for length in range(1, min(len(rest), 63) + 1)]
            steps += [(len(coded(code)), prefix) for code, prefix in known.items() if rest.startswith(prefix)]
            steps += [(endings[rest], rest)] if rest in endings else []
            for cost, piece in steps:
                reached.setdefault(size + cost, set()).add(text + piece)
    raise AssertionError(wanted)


def coded(code: int) -> bytes:
    if code < 64:
        return bytes([128 + code])
    code -= 64
    operand = next(code.to_bytes(size, "big") for size in range(1, 64) if code < 256**size)
    return bytes([192 + len(operand) - 1]) + operand


def random_path(chance: random.Random, codes: int) -> bytes:
    """Instructions that may make sense."""
    out = b""
    while True:
        kind = chance.random()
        if kind < 0.4:
            length = chance.choice([1, 2, 5, 20, 63])
            out += bytes([length]) + bytes(chance.choice(b"//\\abc.x") for _ in range(length))
        elif kind < 0.7:
            out += coded(chance.randrange(codes + 4))
        elif kind < 0.75:
            name = bytes(chance.choice(b"KitAB") for _ in range(chance.choice([1, 6, 64])))
            return out + bytes([64 + len(name) - 1, chance.choice(b"A\x01C")]) + name
        else:
            return out + b"\x00"
