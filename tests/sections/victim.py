"""Changes a file in place, in children that are killed when that is about to be done; for test_linking_killed.py.

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
from collections.abc import Callable
from pathlib import Path

from walkback import add, convert, fix

LONGEST = 10.0


def change(verb: str, path: Path, output: Path | None = None) -> None:
    if verb == "convert":
        convert(path, output, version=2)
    else:
        verbs: dict[str, Callable[..., object]] = {"add": add, "fix": fix}
        verbs[verb](path, output)


def reset(path: Path, former: Path) -> None:
    """Under the file's name in one step, as nothing else would be fair."""
    copy = former.with_suffix(".copy")
    shutil.copy(former, copy)
    copy.replace(path)


def main() -> None:
    verb, path, former, new, rounds = sys.argv[1], *map(Path, sys.argv[2:5]), int(sys.argv[5])
    names = {former.read_bytes(): "former", new.read_bytes(): "new"}
    for _ in range(2):  # the first time modules are imported
        began = time.monotonic()
        change(verb, former, former.with_suffix(".once"))
        moment = time.monotonic() - began
    seen: Counter[str] = Counter()
    for _ in range(rounds):
        reset(path, former)
        child = os.fork()
        if child == 0:
            try:
                change(verb, path)
                time.sleep(2 * LONGEST)
            finally:  # of a child there must be nothing left that goes on with the rounds
                os._exit(1)
        time.sleep(random.uniform(0.5, 1.5) * moment)
        done, _ = os.waitpid(child, os.WNOHANG)
        seen["ended by itself"] += done != 0
        if not done:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        found = names.get(path.read_bytes(), "neither")
        seen[found] += 1
        # However busy the machine is, the kills stay around the moment of change.
        moment = min(moment * (1.1 if found == "former" else 0.9), LONGEST)
    print(json.dumps({"seen": seen, "beside": sorted(one.name for one in path.parent.iterdir())}))


main()
