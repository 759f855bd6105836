"""A second reader and writer of the Compact Backtrace Format, in plain Python and straight from its document.

It shares nothing with the package, not even the names of instructions, and does without any cleverness: each function
follows one section of the document. What the document leaves open, the order of operand bytes, is as Swift has it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

WORD_SIZES = {0b00: 16, 0b01: 32, 0b10: 64}
FRAME_KINDS = {0b0001: "pc", 0b0010: "ra", 0b0011: "async"}


class BrokenError(Exception):
    """Data that the document does not allow; the place of the byte is its argument."""

    @property
    def place(self) -> int:
        place: int = self.args[0]
        return place


@dataclass
class Plain:
    """What was read: frames as (kind, value, how often)."""

    word: int = 0
    frames: list[tuple[str, int, int]] = field(default_factory=list)
    truncated: bool = False
    ended: bool = False
    """Whether there was an `end` or `trunc`."""
    first_is_relative: bool = False
    size: int = 0
    """Bytes read."""

    def each(self) -> list[tuple[str, int]]:
        return [(kind, value) for kind, value, times in self.frames for _ in range(times)]


def read(data: bytes) -> Plain:  # noqa: C901
    """The backtrace at the start of the data."""
    if not data:
        raise BrokenError(0)
    found = Plain()
    if data[0] >> 2 or data[0] & 0b11 == 0b11:
        raise BrokenError(0)
    found.word = WORD_SIZES[data[0] & 0b11]
    running, place, computed = 0, 1, False
    while place < len(data):
        opcode, start = f"{data[place]:08b}", place
        place += 1

        def operand(count: str, start: int = start) -> bytes:
            size = int(count, 2) + 1
            taken = data[start + 1 : start + 1 + size]
            if len(taken) != size or size * 8 > found.word:
                raise BrokenError(start)
            return taken

        if opcode in ("00000000", "00000001"):
            found.truncated = opcode[-1] == "1"
            found.ended = True
            break
        if opcode[:4] in ("0001", "0010", "0011"):
            taken = operand(opcode[5:])
            place += len(taken)
            value = int.from_bytes(taken, "big")
            if taken[0] & 0x80:  # sign-extended
                value -= 1 << (8 * len(taken))
            is_absolute = opcode[4] == "1"
            if not is_absolute and not computed:
                found.first_is_relative = True
            running = (value if is_absolute else running + value) % (1 << found.word)
            computed = True
            found.frames.append((FRAME_KINDS[int(opcode[:4], 2)], running, 1))
        elif opcode[:2] == "01":
            if opcode[2] == "1":
                taken = operand(opcode[3:])
                place += len(taken)
                found.frames.append(("omit", int.from_bytes(taken, "big"), 1))
            else:
                found.frames.append(("omit", int(opcode[3:], 2) + 1, 1))
        elif opcode[:4] == "1000":
            if not found.frames:
                raise BrokenError(start)
            if opcode[4] == "1":
                taken = operand(opcode[5:])
                place += len(taken)
                times = int.from_bytes(taken, "big")
            else:
                times = int(opcode[5:], 2) + 1
            kind, value, before = found.frames[-1]
            found.frames[-1] = (kind, value, before + times)
        else:
            raise BrokenError(start)
    found.size = place
    return found


def address_instruction(kind: str, value: int, count: int, *, absolute: bool) -> bytes:
    """`pc`, `ra` or `async` with the low `count` bytes of an address value."""
    code = {name: bits for bits, name in FRAME_KINDS.items()}[kind]
    return bytes([code << 4 | absolute << 3 | (count - 1)]) + (value % (1 << 8 * count)).to_bytes(count, "big")


def omit_instruction(number: int, count: int | None = None) -> bytes:
    """`omit`; with `count` the number is in that many bytes behind it."""
    if count is None:
        return bytes([0b01000000 | (number - 1)])
    return bytes([0b01100000 | (count - 1)]) + number.to_bytes(count, "big")


def rep_instruction(number: int, count: int | None = None) -> bytes:
    """`rep`; with `count` the number is in that many bytes behind it."""
    if count is None:
        return bytes([0b10000000 | (number - 1)])
    return bytes([0b10001000 | (count - 1)]) + number.to_bytes(count, "big")


@lru_cache(100_000)
def address_choices(kind: str, address: int, running: int, word: int) -> list[bytes]:
    """Every instruction that computes this address, absolute or not, in as many bytes as are enough or more."""
    found = []
    for absolute in (True, False):
        value = address if absolute else (address - running) % (1 << word)
        for count in range(1, word // 8 + 1):
            low = value % (1 << 8 * count)
            extended = low - (1 << 8 * count) if low >> (8 * count - 1) else low
            if extended % (1 << word) == value:
                found.append(address_instruction(kind, value, count, absolute=absolute))
    return found


@lru_cache(100_000)
def count_choices(number: int, word: int, inline: int, instruction: Callable[..., bytes]) -> list[bytes]:
    """Every `omit` or `rep` of this number."""
    found = [instruction(number)] if 1 <= number <= inline else []
    return found + [instruction(number, count) for count in range(1, word // 8 + 1) if number < 1 << 8 * count]


def write_somehow(
    frames: list[tuple[str, int]], word: int, rng: random.Random, *, truncated: bool = False, end: bool = True
) -> bytes:
    """One of the many encodings of these frames, by chance."""
    out = bytes([{16: 0, 32: 1, 64: 2}[word]])
    running, place, computed = 0, 0, False
    while place < len(frames):
        kind, value = frames[place]
        if place and frames[place - 1] == frames[place] and rng.random() < 0.7:
            most = next((n for n in range(place, len(frames)) if frames[n] != frames[place]), len(frames)) - place
            times = rng.randint(1, most)
            out += rng.choice(count_choices(times, word, 8, rep_instruction))
            place += times
            continue
        if kind == "omit":
            out += rng.choice(count_choices(value, word, 32, omit_instruction))
        else:
            choices = address_choices(kind, value, running, word)
            out += rng.choice(choices if computed else [one for one in choices if one[0] & 0b1000])
            running, computed = value, True
        place += 1
    return out + (b"\x01" if truncated else b"\x00" if end else b"")


def write_as_swift(frames: list[tuple[str, int]], word: int, *, truncated: bool = False) -> bytes:
    """What Swift's writer makes of them: its address starts at 0, and of equally long ways it takes the difference."""
    out = bytes([{16: 0, 32: 1, 64: 2}[word]])
    running, repeats = 0, 0
    for place, (kind, value) in enumerate([*frames, ("end", 0)]):
        if place and place < len(frames) and frames[place - 1] == frames[place] and repeats < 1_048_576:
            repeats += 1
            continue
        if repeats:
            size = (repeats.bit_length() + 7) // 8
            out += rep_instruction(repeats) if repeats <= 8 else rep_instruction(repeats, size)
            repeats = 0
        if kind == "omit":
            size = (value.bit_length() + 7) // 8
            out += omit_instruction(value) if value <= 31 else omit_instruction(value, size)
        elif kind != "end":
            choices = address_choices(kind, value, running, word)
            absolute = min((one for one in choices if one[0] & 0b1000), key=len)
            relative = min((one for one in choices if not one[0] & 0b1000), key=len)
            out += absolute if len(absolute) < len(relative) else relative
            running = value
    return out + (b"\x01" if truncated else b"\x00")


def shortest_size(frames: list[tuple[str, int]], word: int) -> int:
    """Bytes of the shortest instructions for these frames, found by trying all; without information byte and end."""
    # For each number of frames done: the running address, and whether there was any, with the fewest bytes up to there.
    best: list[dict[tuple[int, bool], int]] = [{} for _ in range(len(frames) + 1)]
    best[0][0, False] = 0
    for done in range(len(frames)):
        for (running, computed), size in best[done].items():
            for after, state, cost in _next_states(frames, word, done, running, computed):
                best[after][state] = min(best[after].get(state, 1 << 60), size + cost)
    return min(best[-1].values())


def _next_states(
    frames: list[tuple[str, int]], word: int, done: int, running: int, computed: bool
) -> Iterator[tuple[int, tuple[int, bool], int]]:
    kind, value = frames[done]
    if kind == "omit":
        for one in count_choices(value, word, 32, omit_instruction):
            yield done + 1, (running, computed), len(one)
    else:
        for one in address_choices(kind, value, running, word):
            if computed or one[0] & 0b1000:
                yield done + 1, (value, True), len(one)
    times = 1
    while done and done + times <= len(frames) and frames[done + times - 1] == frames[done - 1]:
        for one in count_choices(times, word, 8, rep_instruction):
            yield done + times, (running, computed), len(one)
        times += 1
