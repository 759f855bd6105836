"""Runs `walkback stack` on damaged copies of a core file, each in a child with little memory and little time.

Prints a line for each that ended badly: by a signal, with a traceback, or too late.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from walkback.cli import main as walkback

MEMORY, SECONDS = 2 << 30, 30
HEAD = 1 << 14
"""Where headers and notes are."""


def damaged(data: bytes, rng: random.Random) -> bytearray:
    """Some bytes, words, or stretches changed; sometimes cut short."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        place = rng.randrange(min(HEAD, len(made)) if rng.random() < 0.7 else len(made))
        kind = rng.randrange(5)
        if kind == 0:
            made[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            word = rng.choice((0, 1, 2**63, 2**64 - 1, 2**31, len(made), rng.getrandbits(64), rng.getrandbits(20)))
            place &= -8
            made[place : place + 8] = word.to_bytes(8, "little")
        elif kind == 2:
            made[place : place + 64] = rng.randbytes(min(64, len(made) - place))
        elif kind == 3:
            # A word that is another one of the file: pointers that lead elsewhere, and to themselves.
            other = rng.randrange(len(made)) & -8
            made[place & -8 : (place & -8) + 8] = made[other : other + 8]
        else:
            size = rng.choice((16, 4096, 1 << 16))
            made[place : place + size] = rng.choice((b"\0", b"\xff", b"\x10")) * min(size, len(made) - place)
    if rng.random() < 0.1:
        del made[rng.randrange(len(made)) :]
    return made


def looked_at(arguments: list[str], told: Path) -> int:
    """The status of a child that looks at a core; what it says is in a file."""
    pid = os.fork()
    if not pid:
        out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(SECONDS)
        sys.argv = ["walkback", "stack", *arguments]
        status = 120
        command: Callable[[], Any] = walkback
        try:
            status = command()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status or 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    core, count, seed, *options = sys.argv[1:]
    counts: dict[Any, Any]
    data, counts = Path(core).read_bytes(), {}
    with tempfile.TemporaryDirectory() as folder:
        one, told = Path(folder, "core"), Path(folder, "told")
        for number in range(int(count)):
            rng = random.Random(f"{seed} {number}")
            one.write_bytes(damaged(data, rng))
            others = () if "--asyncio" in options else ("folded", "pprof", "firefox")
            form = rng.choice(("text", "text", "json", *others))
            status = looked_at([*options, "--no-cache", "--format", form, "-o", os.devnull, str(one)], told)
            text = told.read_text(errors="replace")
            counts[status] = counts.get(status, 0) + 1
            if status not in {0, 1, 3} or "Traceback" in text:
                print(f"BAD {number} (seed {seed}): status {status}\n{text[-3000:]}")
    print("statuses", counts)


if __name__ == "__main__":
    main()
