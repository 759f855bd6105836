"""Changes a file in place over and over, in children that are killed at random moments; run by test_linking_killed.py.

victim.py VERB FILE FORMER NEW ROUNDS

FORMER and NEW are copies of what FILE is before and after. Prints as JSON how often it was which of the two or anything
else, and the names that stand beside it in the end.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from walkback import add, convert, drop, fix


def once(verb: str, path: Path, output: Path) -> None:
    if verb == "convert":
        convert(path, output, version=2)
    else:
        {"add": add, "fix": fix}[verb](path, output)


def change(verb: str, path: Path, former: Path) -> None:
    """There and back for ever. What undoes `fix` takes the file's name in one step, as nothing else would be fair."""
    while True:
        if verb == "convert":
            convert(path, version=2)
            convert(path, version=3)
        elif verb == "add":
            add(path)
            drop(path)
        else:
            fix(path)
            copy = former.with_suffix(".copy")
            shutil.copy(former, copy)
            copy.replace(path)


def main() -> None:
    verb, path, former, new, rounds = sys.argv[1], *map(Path, sys.argv[2:5]), int(sys.argv[5])
    names = {former.read_bytes(): "former", new.read_bytes(): "new"}
    for _ in range(2):  # the first time modules are imported
        began = time.monotonic()
        once(verb, former, former.with_suffix(".once"))
        most = 2.5 * (time.monotonic() - began)
    seen: Counter[str] = Counter()
    for _ in range(rounds):
        child = os.fork()
        if child == 0:
            try:
                change(verb, path, former)
            finally:  # of a child there must be nothing left that goes on with the rounds
                os._exit(1)
        time.sleep(random.uniform(0, most))
        done, _ = os.waitpid(child, os.WNOHANG)
        seen["ended by itself"] += done != 0
        if not done:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        seen[names.get(path.read_bytes(), "neither")] += 1
    print(json.dumps({"seen": seen, "beside": sorted(one.name for one in path.parent.iterdir())}))


main()
