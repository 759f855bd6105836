"""Stacks of running Go programs against what the programs themselves say: a table of counts, and what differs.

The programs have no symbols and no debug information. One is of Go alone, one goes to C and back, and one is looked at
again and again while it allocates, moves its stacks and handles signals. Then the rules of the table of functions are
compared with the debug frames of programs for three machines. `gostacks.py [ROUNDS [THREADS]]`; needs `make peers`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from gopclntab.callers import Comparison, running, stopped
from gopclntab.gotools import COMMANDS, HERE, MACHINES, VERSIONS, build, build_command, callers, rules_compared
from walkback.capture.stacks import Stopper

_PROGRAMS = {
    "Go": ("callers", ""),
    "Go, at work": ("callers_busy", ""),
    "C with frame pointers": ("callers_cgo", "-O2 -fno-omit-frame-pointer"),
    "C without frame pointers": ("callers_cgo", "-O2 -fomit-frame-pointer"),
    "C, not optimized": ("callers_cgo", "-O0"),
}
_MODES = ((), ("-buildmode=pie",))
_WORKING = 4
"""Threads that are at work at once."""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as name:
        _stacks(Path(name), rounds, threads)
        print()
        _rules(Path(name))


def _stacks(folder: Path, rounds: int, threads: int) -> None:
    print("| program | Go | machine | linked | stacks | frames | equal | different | seconds |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    total = [0, 0, 0]
    for title, (program, c_flags) in _PROGRAMS.items():
        for version in VERSIONS:
            for flags in _MODES:
                path = callers(folder, version, program, c_flags, *flags)
                start = time.perf_counter()
                found = (_at_work if program == "callers_busy" else _waiting)(path, rounds, threads)
                seconds = time.perf_counter() - start
                counts = [found.stacks, found.frames, len(found.different)]
                total = [one + more for one, more in zip(total, counts, strict=True)]
                linked = "PIE" if flags else "fixed"
                print(f"| {title} | {version} | AMD64 | {linked} {_line(*counts)} {seconds:.1f} |", flush=True)
                for line in set(found.different):
                    print(f"{path.name}: {line}", file=sys.stderr)
    print(f"| all | | | {_line(*total)} |")


def _waiting(path: Path, rounds: int, threads: int) -> Comparison:
    found = Comparison(path)
    for seed in range(rounds):
        with running(path, str(seed), str(threads)) as (pid, held):
            found.compare(stopped(pid), held)
    return found


def _at_work(path: Path, rounds: int, threads: int) -> Comparison:
    found = Comparison(path)
    with running(path, "1", str(_WORKING)) as (pid, held):
        stopper = Stopper(pid, cache=False, inline=False)
        while found.stacks < rounds * threads // 4:
            found.compare(stopper.shoot(), held, busy=True)
    return found


def _line(stacks: int, frames: int, different: int) -> str:
    return f"| {stacks:,} | {frames:,} | {stacks - different:,} | {different:,} |"


def _rules(folder: Path) -> None:
    print("| program | Go | machine | addresses | in both | different |")
    print("|---|---|---|---:|---:|---:|")
    for version, machine in product(VERSIONS, MACHINES):
        for program in ("spin", "wide", "callers_busy", *COMMANDS):
            path = folder / f"{program}-{version}-{machine}"
            if program in COMMANDS:
                build_command(program, path, version, machine)
            else:
                build(HERE / f"{program}.go", path, version, machine)
            found = rules_compared(path)
            counts = " | ".join(f"{one:,}" for one in (found.addresses, found.both, found.different.total()))
            print(f"| {program} | {version} | {machine} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
