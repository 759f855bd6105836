"""Runs instructions of s390x one by one under qemu, and compares the registers with what the decoder said of them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from peers import peer
from walkback.code.effects import NONE, Effect

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLD = (1 << 64) - 1
NUMBERS = [*range(16), *(16 + at for at in (0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15))]
"""The DWARF number of each register that the runner writes: %r0 to %r15, %f0 to %f15."""
NEAR = 1 << 30
Row = dict[str, int]


def runner(folder: Path) -> Path:
    """The program for qemu."""
    gcc, assembler, linker = (peer(f"s390x-{name}") for name in ("gcc", "as-2.40", "ld-2.40"))
    flags = ("-O1", "-ffreestanding", "-fno-pie", "-fno-stack-protector", "-march=z10", "-S")
    made = folder / "runner"
    source = Path(__file__).with_name("s390xrunner.c")
    subprocess.run([gcc, *flags, "-o", made.with_suffix(".s"), source], check=True)
    subprocess.run([assembler, "-o", made.with_suffix(".o"), made.with_suffix(".s")], check=True)
    subprocess.run([linker, "-static", "-o", made, made.with_suffix(".o")], check=True)
    return made


def states(rng: random.Random) -> Iterator[list[int]]:
    """Registers to start from: addresses, any numbers, small ones and half ones; floating point numbers or any bits."""
    doubles = np.array([rng.uniform(-1e6, 1e6) for _ in range(16)]).view(np.uint64).tolist()
    for _ in range(3):
        yield [NEAR + 16 * one for one in rng.sample(range(4096), 16)] + doubles[:]
        rng.shuffle(doubles)
    yield [rng.getrandbits(64) for _ in range(16)] + [rng.getrandbits(64) for _ in range(16)]
    yield [rng.randrange(1, 64) for _ in range(16)] + doubles
    yield [rng.getrandbits(32) * 2 + 1 for _ in range(16)] + doubles


def after(program: Path, words: list[bytes], befores: list[list[int]]) -> list[tuple[int, list[int]]]:
    """The signal that each raised, and the registers behind it; the condition codes take turns."""
    asked = b"".join(
        bytes([len(word), at % 4]) + word.ljust(6, b"\0") + b"".join(one.to_bytes(8, "big") for one in before)
        for at, (word, before) in enumerate(zip(words, befores, strict=True))
    )
    done = subprocess.run([peer("qemu-s390x"), program], input=asked, capture_output=True, check=True, timeout=100)
    answers = np.frombuffer(done.stdout, ">u8").reshape(-1, 33).tolist()
    assert len(answers) == len(words)
    return [(signal, registers) for signal, *registers in answers]


def differences(program: Path, words: list[bytes], rows: list[Row]) -> tuple[set[bytes], dict[str, list[str]]]:
    """The words that ran at least once; for each word what is not as the decoder said."""
    rng = random.Random(390)
    tries = [(word, row, state) for word, row in zip(words, rows, strict=True) for state in states(rng)]
    answers = after(program, [word for word, _, _ in tries], [state for _, _, state in tries])
    changed: dict[bytes, int] = {}
    wrong: dict[str, list[str]] = {}
    said = dict(zip(words, rows, strict=True))
    for (word, row, before), (signal, behind) in zip(tries, answers, strict=True):
        if signal:
            continue
        old, new = ({number: one[at] for at, number in enumerate(NUMBERS)} for one in (before, behind))
        changed[word] = changed.get(word, 0) | sum(1 << one for one in old if old[one] != new[one])
        if (expected := outcome(row, old)) is not None and expected != new[row["first"]]:
            wrong.setdefault(word.hex(), []).append(f"gives {new[row['first']]:x} instead of {expected:x}")
    for word, seen in changed.items():
        mask = said[word]["changes"]
        if seen & ~mask:
            wrong.setdefault(word.hex(), []).append(f"changes {seen & ~mask:x}")
        if mask & ~seen:
            wrong.setdefault(word.hex(), []).append(f"never changes {mask & ~seen:x}")
    return set(changed), wrong


def outcome(row: Row, old: dict[int, int]) -> int | None:
    """What the first register has then, as the effect says; None where it says nothing of it or only memory knows."""
    base, index = (old[row[name]] if row[name] != NONE else 0 for name in ("base", "index"))
    match row["effect"]:
        case Effect.COPY:
            return old[row["second"]]
        case Effect.ADD:
            return (base + row["offset"]) & FOLD
        case Effect.ADD_REGISTERS:
            return (base + index * row["scale"] + row["offset"]) & FOLD
        case Effect.SUBTRACT:
            return (base - index) & FOLD if row["index"] != NONE else None
        case Effect.ALIGN:
            return base & row["offset"] & FOLD
        case _:
            return None
