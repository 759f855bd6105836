"""Damaged recordings through the whole verb: an exit status, lines that say why, and never more time or memory."""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recorded import hello, recording
from recordings.perfprograms import PROGRAMS, command_of
from recordings.perfscript import record
from waiting import PATIENCE
from walkback.capture.perfdata.recording import Recording
from walkback.naming.modules import Modules
from walkback.stacks.stacks import END_WORDS

pytestmark = pytest.mark.whole

WAYS = [
    (), ("--json",), ("--format", "perf-script"), ("--format", "top"), ("--format", "pprof"),
    ("--format", "speedscope"), ("--format", "firefox"), ("--format", "html"), ("--compare", "sframe,cfi,fp,auto"),
    ("--only", "fp", "--json"), ("--only", "sframe"), ("--only", "cfi", "--json"), ("--lines", "--mark-incomplete"),
    ("--no-kernel", "--threads", "3", "--weight", "period"), ("--max-stack", "3"),
]  # fmt: skip
"""How a recording is walked and shown."""


def run_all(
    folder: Path, recordings: list[bytes], rng: random.Random, ways: list[tuple[str, ...]] | None = None
) -> list[dict[str, Any]]:
    """Each recording in one way, all in one process with limits; binary formats go to a file."""
    lines = []
    for number, contents in enumerate(recordings):
        path = folder / f"{number}.data"
        path.write_bytes(contents)
        way = list(ways[number % len(ways)] if ways else rng.choice(WAYS))
        if way[-1:] == ["pprof"] or rng.random() < 0.1:
            way += ["-o", str(folder / "out")] if "--compare" not in way else []
        lines.append(json.dumps([*way, str(path)]))
    (folder / "list").write_text("\n".join(lines) + "\n")
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    command: list[str | Path] = [sys.executable, Path(__file__).with_name("mutated.py"), folder / "list"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr[-3000:], told[-1:])
    assert len(told) == len(recordings) + 1
    # NumPy, the tables of the libraries and the results of all of them.
    assert told.pop()["peak"] < 700_000
    for one in told:
        judge(one)
    return told


def judge(one: dict[str, Any]) -> None:
    """An exit status that is described, and what it means in lines of plain text."""
    assert one["status"] in {0, 1, 3}, one
    assert "Traceback" not in one["err"], one
    lines = one["err"].splitlines()
    assert all(line.startswith("walkback: ") for line in lines), one
    assert len(lines) <= 40
    assert all(len(line) < 2000 and line.isprintable() for line in lines), one
    if one["status"]:
        assert lines, one
    if one["status"] == 3:
        assert len(lines) == 1, one
        assert ".data" in lines[0]
    assert one["seconds"] < 15


def damaged(contents: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut, repeated or taken out."""
    data = bytearray(contents)
    kind = rng.randrange(6)
    # The header, the features at the end and the first records are hit as often as all the samples.
    places = [
        rng.randrange(len(data)),
        rng.randrange(min(len(data), 600)),
        rng.randrange(max(0, len(data) - 3000), len(data)),
    ]
    place = rng.choice(places)
    if kind == 0:
        return bytes(data[:place])
    if kind == 1:
        del data[place : place + rng.choice((1, 4, 8, 100))]
    elif kind == 2:
        data[place:place] = rng.randbytes(rng.choice((1, 8, 64)))
    elif kind == 3:
        word = rng.choice((0, 1, 2**16 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1))
        data[place & ~7 : (place & ~7) + 8] = word.to_bytes(8, "little")
    else:
        for _ in range(rng.choice((1, 5, 50))):
            data[rng.choice((place, rng.randrange(len(data))))] = rng.randrange(256)
    return bytes(data)


@pytest.mark.parametrize("pipe", [False, True])
def test_any_damage(tmp_path: Path, pipe: bool) -> None:
    rng = random.Random(f"{pipe}")
    whole = recording(hello(tmp_path), pipe=pipe)
    found = run_all(tmp_path, [whole, *(damaged(whole, rng) for _ in range(450))], rng)
    assert {one["status"] for one in found} == {0, 1, 3}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.machine() != "x86_64":
        pytest.skip("the registers are of this machine")
    folder = tmp_path_factory.mktemp("hostile")
    return record(folder / "perf.data", command_of(PROGRAMS["signals"], folder), dump=4096, rate=99)


@pytest.mark.peers
def test_any_damage_of_a_real_recording(recorded: Path, tmp_path: Path) -> None:
    rng = random.Random(3)
    whole = recorded.read_bytes()
    run_all(tmp_path, [whole, *(damaged(whole, rng) for _ in range(60))], rng)


_REGISTERS = 20
"""In each sample for this machine."""


def stacks(contents: bytes, path: Path) -> list[tuple[int, int, int]]:
    """Where in the file the copy of each sample's stack stands, how long it is, and the address that it begins at."""
    path.write_bytes(contents)
    found = []
    for batch in Recording.open(path, Modules()).batches():
        samples, memory = batch.samples, batch.samples.memory
        there = samples.first_segment[samples.end_segment > samples.first_segment]
        columns = (memory.offset[there], memory.size[there], memory.start[there])
        found += list(zip(*(one.tolist() for one in columns), strict=True))
    assert found
    return found


def code_of(path: Path) -> list[tuple[int, int]]:
    """Where code is mapped."""
    opened = Recording.open(path, Modules())
    for _ in opened.batches():
        pass
    return [
        (int(start), int(last)) for space in opened.spaces for start, last in zip(space.start, space.last, strict=True)
    ]


def words(count: int, kind: str, start: int, code: list[tuple[int, int]], rng: random.Random) -> bytes:
    """A stack of a kind."""
    made = []
    for place in range(count):
        address = start + 8 * place
        first, last = rng.choice(code)
        any_code = rng.randint(first, last)
        made.append(
            {
                "random": rng.getrandbits(64),
                "itself": address,
                "back": start + 8 * rng.randrange(place + 1),
                "within": start + 8 * rng.randrange(count),
                "code": any_code,
                "pairs": any_code if place % 2 else address + 16,
                "circle": any_code if place % 2 else start + 8 * (place ^ 2),
                "zero": 0,
                "ones": 2**64 - 1,
            }[kind]
        )
    return b"".join(word.to_bytes(8, "little") for word in made)


KINDS = ("random", "itself", "back", "within", "code", "pairs", "circle", "zero", "ones")


@pytest.mark.peers
@pytest.mark.parametrize("kind", KINDS)
def test_any_stack_and_any_registers(recorded: Path, tmp_path: Path, kind: str) -> None:
    """Every walk ends, with a reason, whatever the stack leads to."""
    rng = random.Random(kind)
    whole = recorded.read_bytes()
    places, code = stacks(whole, tmp_path / "whole"), code_of(tmp_path / "whole")
    made = []
    for _ in range(3):
        data = bytearray(whole)
        for offset, size, start in places:
            data[offset : offset + size & ~7] = words(size // 8, kind, start, code, rng)
            if rng.random() < 0.5:
                for place in range(offset - 8 - 8 * _REGISTERS, offset - 8, 8):
                    first, last = rng.choice(code)
                    value = rng.choice(
                        (start + 8 * rng.randrange(size // 8 + 1), rng.randint(first, last), rng.getrandbits(64))
                    )
                    if rng.random() < 0.7:
                        data[place : place + 8] = value.to_bytes(8, "little")
        made.append(bytes(data))
    ways = [("--json",), ("--only", "fp", "--json"), ("--compare", "sframe,cfi,fp,auto")]
    for one in run_all(tmp_path, made, rng, ways):
        assert one["status"] in {0, 1}
        if "--json" in one["arguments"] and "-o" not in one["arguments"]:
            for line in one["out"].splitlines()[1:]:
                sample = json.loads(line)
                assert len(sample["frames"]) <= 1200
                assert sample["end"] in END_WORDS.values()
