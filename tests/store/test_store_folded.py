"""Folded stacks are read as a few lines of Python read them."""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path

import pytest

from effort import rounds
from store import plainreader
from walkback import Store
from walkback.base.errors import UnreadableError
from walkback.store import folded

pytestmark = pytest.mark.kernel

NOON = 1_700_000_000_000_000_000
NAMES = [b"a", b"main", b"operator new(unsigned long)", b"a rather long name", b"a rather long name!", b"", b"x_[i]"]
NAMES += [9 * name.encode() for name in ("\xe9", " ", "\x1c", "z")]
ENDS = [b"\n", b"\n", b"\n", b" \n", b"\r\n", b"\n\n \t\n", b"\v\f\n"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


def lines_of(rng: random.Random, count: int) -> list[bytes]:
    """Many begin as the one before; some are of a process alone. No two have the same weight."""
    lines, stack = [], [b"process"]
    for number in range(count):
        del stack[rng.randrange(len(stack) + 1) :]
        stack += rng.choices(NAMES, k=rng.randrange(4))
        text = b";".join(stack)
        if text.strip():
            lines.append(text + b" %d" % (rng.choice([0, 7, 10**9, 10**15]) + 10 * number) + rng.choice(ENDS))
    return lines


Sample = tuple[str | None, tuple[str | None, ...]]


def plainly(lines: list[bytes], *, with_process: bool) -> Counter[Sample]:
    found: Counter[Sample] = Counter()
    for line in b"".join(lines).split(b"\n"):
        text, _, weight = line.rstrip().rpartition(b" ")
        if text:
            names = text.decode().split(";")
            process = (names.pop(0) or None) if with_process else None
            found[process, tuple(name.removesuffix("_[i]") or None for name in reversed(names))] += int(weight)
    return found


def kept(store: Store) -> Counter[Sample]:
    found: Counter[Sample] = Counter()
    for sample in plainreader.samples(store.path):
        found[sample[5], tuple(frame[2] for frame in sample[1])] += sample[2]
    return found


@pytest.mark.parametrize("with_process", [True, False])
@pytest.mark.parametrize("block", [1, 50, 1 << 20])
def test_lines_are_read_as_plain_python_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_process: bool, block: int
) -> None:
    monkeypatch.setattr(folded, "_BLOCK", block)
    monkeypatch.setattr(folded, "_LINES", block)
    for seed in range(rounds(12, quick=3, share=6)):
        rng = random.Random(seed)
        lines = lines_of(rng, 60)
        sources: list[list[bytes] | io.BytesIO] = [lines, io.BytesIO(b"".join(lines).rstrip(b"\n"))]
        for number, source in enumerate(sources):
            store = Store(tmp_path / f"{seed}-{number}", create=True)
            with store.append() as new:
                new.folded(source, start=NOON, with_process=with_process)
            assert kept(store) == plainly(lines, with_process=with_process), seed


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (b"main;a", "does not end in a blank and a number"),
        (b"main;a 1000000000000000000", "does not end in a blank and a number"),
        (b"main;" + b"a" * 95 + b" 1", "has more than 100 bytes"),
    ],
)
def test_errors_have_the_number_of_the_line(
    store: Store, monkeypatch: pytest.MonkeyPatch, block: int, bad: bytes, what: str
) -> None:
    monkeypatch.setattr(folded, "_BLOCK", block)
    monkeypatch.setattr(folded, "_LONGEST", 100)
    text = b"main;a 1\n\nmain;a;b 2\n" + bad + b"\nmain 5\n"
    with pytest.raises(UnreadableError, match=f"line 4 {what}"), store.append() as new:
        new.folded(io.BytesIO(text), start=NOON)
    assert kept(store) == Counter()


def test_names_that_begin_alike_stay_apart(store: Store) -> None:
    lines = [b"p;name 1", b"p;name_longer 2", b"p;name_longer;x 4", b"p;name 8", b"p 16", b"p;name;name 32"]
    with store.append() as new:
        new.folded(lines, start=NOON)
    assert kept(store) == plainly([line + b"\n" for line in lines], with_process=True)
