"""The memory of a process as it was once read, and damaged copies of it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from walkback.capture.live.process import Process

PAGE = 4096


class Kept:
    """The pages of a process that were read; those that were not are missing later."""

    def __init__(self, target: Process) -> None:
        self.target: Process | None = target
        self.pages: dict[int, bytes] = {}
        self.reads = 0
        self.bytes = 0

    def page(self, number: int) -> bytes:
        if number not in self.pages and self.target is not None:
            self.pages[number] = self.target.read(number * PAGE, PAGE)
        return self.pages.get(number, b"")

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        found = b""
        while len(found) < size:
            number, away = divmod(address + len(found), PAGE)
            part = self.page(number)[away : away + size - len(found)]
            if not part:
                break
            found += part
        self.bytes += len(found)
        return found

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        assert all(0 <= address < 2**64 for address in addresses)
        parts = [self.read(address, size) for address in addresses]
        whole = next((number for number, part in enumerate(parts) if len(part) < size), len(parts))
        return b"".join(parts[:whole])


def damaged(page: bytes, rng: random.Random) -> bytes:
    """With some of its words or bytes changed, as a thread that runs may leave it or somebody means it."""
    changed = bytearray(page)
    for _ in range(rng.choice((1, 1, 2, 5, 50))):
        place = rng.randrange(len(changed) // 8) * 8
        way = rng.randrange(6)
        if way == 0:
            changed[place : place + 8] = rng.randbytes(8)
        elif way == 1:
            changed[place : place + 8] = changed[(other := rng.randrange(len(changed) // 8) * 8) : other + 8]
        elif way == 2:
            changed[place + rng.randrange(8)] ^= 1 << rng.randrange(8)
        elif way == 3:
            changed[place : place + 8] = rng.choice((0, 1, 2**63, 2**64 - 1, 8, 2**31)).to_bytes(8, "little")
        elif way == 4:
            changed[place : place + 64] = bytes(len(changed[place : place + 64]))
        else:
            changed[place] = rng.randrange(256)
    return bytes(changed)
