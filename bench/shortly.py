"""What `against` measures: a small piece of each kind of work, on files that every machine with gcc has."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from inputs import ROOT
from measure import WALKBACK
from unwinding import OPTIONS, recording

_FOLDER = ROOT / ".cache" / "shortly"
_LINES = 30_000


FRESH = "FRESH"
"""In the place of an argument: a folder that is not there yet."""
_FILES = 30


@dataclass(frozen=True)
class Measure:
    """One command of walkback, or a piece of work within a process."""

    what: str
    is_command: bool
    run: tuple[str | Path, ...]
    """The arguments of `walkback`, or of `within`."""


def measures() -> Iterator[Measure]:
    """All of them; those of recordings only where perf can record."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    compiler, library = (_of_gcc(*names) for names in (("prog", "cc1"), ("file", "libstdc++.so")))
    large, folded = _made("large.sframe", _derive), _made("folded", _write_folded)
    grafted = _made("grafted.so", lambda path: _walkback("add", library, "-o", path))
    store = _made("store", lambda path: _walkback("store", path, "append", folded))
    yield from (
        Measure("help", True, ("--help",)),
        Measure("find a function in a library", True, ("find", grafted, "_Znwm")),
        Measure("check a large section", True, ("check", "--ignore", "cfa-below-sp", large)),
        Measure("show a library", True, ("show", "--source", "cfi", library)),
        Measure("derive for a compiler", True, ("derive", compiler, "-o", _FOLDER / "derived")),
        Measure("derive from a library's code", True, ("derive", "--source", "code", library, "-o", _FOLDER / "code")),
        Measure("verify a library", True, ("verify", library)),
        Measure("size of a library", True, ("size", library)),
        Measure("survey programs", True, ("survey", *_programs(), "-o", FRESH, "--jobs", "1")),
        Measure("decode a large section", False, ("decode", large)),
        Measure("find random addresses", False, ("find", large)),
        Measure("call frame information to rows", False, ("frames", compiler)),
        Measure("folded stacks into a store", True, ("store", FRESH, "append", folded)),
        Measure("a store's flame graph", True, ("store", store, "flame", "-o", _FOLDER / "flame.html")),
    )
    try:
        data = recording("shortly", "recorded.c", "gcc", *OPTIONS, frequency=1500)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"nothing can be recorded here, or measured of that: {error}", file=sys.stderr)
        return
    yield Measure("unwind a recording", True, ("unwind", data))
    yield Measure("walk a recording", False, ("walk", data))


def _of_gcc(kind: str, name: str) -> Path:
    """Where gcc has a program or a library."""
    asked = ("gcc", f"-print-{kind}-name={name}")
    return Path(subprocess.run(asked, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()).resolve()


def _made(name: str, make: Callable[[Path], object]) -> Path:
    """What is made once, under its name only when it is complete."""
    path, new = _FOLDER / name, _FOLDER / f"new.{name}"
    if not path.exists():
        shutil.rmtree(new, ignore_errors=True)
        make(new)
        new.rename(path)
    return path


def _walkback(*arguments: str | Path) -> None:
    subprocess.run([WALKBACK, *arguments], check=True, stdout=subprocess.DEVNULL)


def _derive(path: Path) -> None:
    _walkback("derive", _of_gcc("prog", "cc1"), "-o", path)


def _write_folded(path: Path) -> None:
    """Stacks that share their outer frames, as those of programs do."""
    rng = random.Random(21)
    lines = []
    for _ in range(_LINES):
        depth = rng.randrange(5, 40)
        names = [f"function_{level}_{int(rng.expovariate(1 / (1 + level / 3)))}" for level in range(depth)]
        lines.append(f"program;{';'.join(names)} {rng.randrange(1, 50)}\n")
    path.write_text("".join(lines))


def _programs() -> list[Path]:
    """Some of this machine, all of them ELF files."""
    found = (path for path in sorted(Path("/usr/bin").iterdir()) if path.is_file() and not path.is_symlink())
    return list(islice((path for path in found if path.open("rb").read(4) == b"\x7fELF"), _FILES))
