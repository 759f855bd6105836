"""A busy program whose threads write down in shared memory which functions they are in."""

import mmap
import random
import sys
import threading
from collections.abc import Callable, Iterator

SLOT = 1024
"""Bytes for each thread: its number, how deep it is, and the function at each depth."""
THREADS = 3
FUNCTIONS = 12
LINES = 1000
"""Each function has lines of its own."""

WAYS = (
    "{f}(place, left - 1)",
    "sorted((1, 2), key=lambda n: n < 2 or {f}(place, left - 1) or 0)",
    "[{f}(place, left - n) for n in (2, 3)]",
    "list(map({f}, (place,), (left - 1,)))",
    "max(one for one in stepping({f}, place, left - 1))",
    "Held(place, left - 1) == {f}",
    "sum(range(left * 30))",
)
TEXT = """
def {name}(place, left):
    depth = shared[place + 5] + 1
    shared[place + 5 + depth] = {number}
    shared[place + 5] = depth
    if left > 0:
        call = choose()
        {calls}
    shared[place + 5] = depth - 1
    return 0
"""


def choose() -> int:
    return random.randrange(30)


def stepping(function: Callable[[int, int], int], place: int, left: int) -> Iterator[int]:
    yield function(place, left)
    yield 1


class Held:
    def __init__(self, place: int, left: int) -> None:
        self.place, self.left = place, left

    def __eq__(self, other: object) -> bool:
        return not callable(other) or not other(self.place, self.left)

    __hash__ = None  # type: ignore[assignment]


def functions(shared: mmap.mmap) -> dict[str, Callable[[int, int], int]]:
    """Functions that call each other in many ways."""
    space: dict[str, object] = {"shared": shared, "choose": choose, "stepping": stepping, "Held": Held}
    for number in range(FUNCTIONS):
        rng = random.Random(number)
        calls = "\n        ".join(
            f"{'elif' if one else 'if'} call == {one}: {rng.choice(WAYS).format(f=f'f{rng.randrange(FUNCTIONS):02}')}"
            for one in range(30)
        )
        text = TEXT.format(name=f"f{number:02}", number=number, calls=calls)
        exec(compile("\n" * LINES * number + text, f"<f{number:02}>", "exec"), space)
    return space  # type: ignore[return-value]


def main() -> None:
    with open(sys.argv[1], "r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)
    space = functions(shared)

    def work(place: int) -> None:
        shared[place : place + 4] = threading.get_native_id().to_bytes(4, "little")
        while True:
            space[f"f{random.randrange(FUNCTIONS):02}"](place, random.randrange(25))

    for number in range(THREADS):
        threading.Thread(target=work, args=(number * SLOT,), daemon=True).start()
    while not all(any(shared[number * SLOT : number * SLOT + 4]) for number in range(THREADS)):
        pass
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
