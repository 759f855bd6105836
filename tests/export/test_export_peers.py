"""The text of perf script, beside what perf prints."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from profiles import written
from walkback.export import perfscript
from walkback.stacks.profile import NamedFrames, SampleBatch

pytestmark = [pytest.mark.peers, pytest.mark.kernel]

HEAD = re.compile(r"(.+?)\s+(\d+)/(\d+)\s+(?:\[(\d+)\] )?\s*(\d+)\.(\d+):\s+(\d+) (\S+): $")
FRAME = re.compile(r"\t\s*([0-9a-f]+) (.*) \((.*)\)$")


def parsed(text: str) -> SampleBatch:
    """What perf printed, as a batch."""
    known: dict[tuple[str | None, int, str, int], int] = {}
    comms: dict[str, int] = {}
    rows, frames, first = [], [], [0]
    for block in text.rstrip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        comm, pid, tid, cpu, seconds, micro, period, event = HEAD.match(head).groups()
        assert event == "cpu-clock"
        time = int(seconds) * 10**9 + int(micro) * 1000
        rows.append((comms.setdefault(comm, len(comms)), int(pid), int(tid), int(cpu or 0), time, int(period)))
        for line in lines:
            address, name, module = FRAME.match(line).groups()
            symbol, _, offset = name.rpartition("+") if name != "[unknown]" else (None, "", "0x0")
            key = (symbol, int(offset, 16), "" if module == "[unknown]" else module, int(address, 16))
            frames.append(known.setdefault(key, len(known)))
        first.append(len(frames))
    symbol, offset, module, address = (list(column) for column in zip(*known, strict=True))
    table = np.array(rows, np.int64)
    numbers = np.array(frames, np.int64)
    lookup = np.array(address, np.uint64)
    kernel = np.array([one == "[kernel.kallsyms]" for one in module], np.bool_)
    return SampleBatch(
        frames=NamedFrames(symbol, module, lookup, kernel, np.array(offset, np.uint64)),
        comms=list(comms),
        events=["cpu-clock"],
        pid=table[:, 1],
        tid=table[:, 2],
        time=table[:, 4].astype(np.uint64),
        period=table[:, 5].astype(np.uint64),
        comm=table[:, 0],
        end=np.zeros(len(rows), np.uint8),
        first=np.array(first, np.int64),
        frame=numbers,
        pc=lookup[numbers],
        lookup=lookup[numbers],
        how=np.zeros(len(numbers), np.uint8),
        event=np.zeros(len(rows), np.int64),
        cpu=table[:, 3] if HEAD.match(text.split("\n", 1)[0]).group(4) else None,
    )


def recorded(folder: Path, *options: str) -> Path:
    """A recording, or no test where perf is missing or may not record."""
    if shutil.which("perf") is None:
        pytest.skip("needs perf")
    data = folder / "perf.data"
    program = "import sys; sum(hash(str(number)) for number in range(300000)); sys.stdout.write('')"
    command: list[str | Path] = [
        "perf",
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-o",
        data,
        *options,
        "python3",
        "-S",
        "-c",
        program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not data.exists():
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[:200]}")
    return data


def script(data: Path, *options: str) -> str:
    command: list[str | Path] = ["perf", "script", "-i", data, "--no-inline", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, errors="surrogateescape")
    return done.stdout


@pytest.mark.parametrize("options", [["--call-graph", "dwarf,4096"], ["-g", "--sample-cpu"]], ids=["dwarf", "cpu"])
def test_the_same_text_as_perf_script(tmp_path: Path, options: list[str]) -> None:
    data = recorded(tmp_path, *options)
    with_pids = script(data, "-F", "+pid")
    batch = parsed(with_pids)
    assert len(batch) > 10
    assert written(perfscript.write, [batch], pids=True).decode(errors="surrogateescape") == with_pids
    assert written(perfscript.write, [batch]).decode(errors="surrogateescape") == script(data)
