"""How right SFrame, call frame information and frame pointers are on real programs: the table of the README.

Each program is recorded once by perf and walked by each way. SFrame is derived from the files' own call frame
information, because no distribution ships it. The reference is call frame information.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inputs import BIN
from walkback.capture.methods import accuracy
from walkback.stacks.accuracy import Accuracy, chart, frames_right, share

_PERF = shutil.which("perf") or str(BIN / "perf")
_SOURCE = Path(__file__).with_name("accuracy.cc")
_PYTHON = """
import json, re, threading, zlib
def deep(n): return deep(n - 1) + 1 if n else sum(i * i for i in range(3000))
def work():
    for _ in range(120):
        deep(150); json.loads(json.dumps(list(range(5000)))); re.sub("a+b", "x", "aaab" * 5000)
        sorted(range(20000), key=lambda x: -x); zlib.compress(bytes(range(256)) * 200)
threads = [threading.Thread(target=work) for _ in range(3)]
[one.start() for one in threads]; [one.join() for one in threads]
"""
_WAYS = {"sframe": "SFrame", "cfi": "call frame information", "fp": "frame pointers"}
_KEEPS = ("-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chart", help="where the chart of all programs goes, as SVG")
    options = parser.parse_args()
    print("| program | way | complete stacks | exact stacks | frames right | missed | invented | ns per frame |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    groups = []
    with tempfile.TemporaryDirectory() as name:
        for title, command in _programs(Path(name)):
            data = Path(name) / "perf.data"
            record = (_PERF, "record", "-q", "-e", "cpu-clock:u", "-F", "1500", "-m", "16M")
            subprocess.run([*record, "--call-graph", "dwarf,32768", "-o", data, *command], check=True)
            rows = accuracy(data, ("sframe", "cfi", "fp"))
            for row in rows:
                print(_line(title if row is rows[0] else "", row))
            # Call frame information is what the others are compared with.
            right = [(_WAYS[name], part) for name, part in frames_right(rows) if name != "cfi"]
            groups.append((title.replace("`", ""), right))
    if options.chart:
        Path(options.chart).write_text(chart(groups, "Frames right, against call frame information"))


def _programs(folder: Path) -> list[tuple[str, list[str]]]:
    """What is recorded: a title, and the command."""
    plain, kept = folder / "plain", folder / "kept"
    for program, options in ((plain, ()), (kept, _KEEPS)):
        subprocess.run(["g++", "-O2", *options, "-o", program, _SOURCE, "-pthread"], check=True)
    found = [
        ("C++, `-O2`", [str(plain)]),
        ("the same, `-fno-omit-frame-pointer`", [str(kept)]),
        ("the C++ compiler of Debian", ["g++", "-O2", "-c", "-o", str(folder / "made.o"), str(_SOURCE)]),
    ]
    python = Path("/usr/bin/python3")
    return [*found, ("Python of Debian", [str(python), "-c", _PYTHON])] if python.exists() else found


def _line(title: str, row: Accuracy) -> str:
    cells = (
        title,
        _WAYS[row.method],
        share(row.complete, row.stacks),
        share(row.exact, row.stacks),
        share(row.agreeing, row.reference_frames),
        share(row.missed, row.reference_frames),
        share(row.invented, row.frames),
        f"{row.per_frame:.0f}",
    )
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


if __name__ == "__main__":
    sys.exit(main())
