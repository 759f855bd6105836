"""A program whose threads say where they are, each in one way, and wait there."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType

told = threading.Lock()
never = threading.Lock()
never.acquire()


def tell() -> bool:
    """Say where the caller is; it waits in the same line."""
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame:
        frames.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    with told:
        print(json.dumps({"tid": threading.get_native_id(), "frames": frames}), flush=True)
    return False


def wait() -> int:
    return tell() or never.acquire()


def recursion(depth: int = 40) -> None:
    if depth:
        recursion(depth - 1)
    else:
        wait()


class Method:
    def __init__(self) -> None:
        self.called = [self.deeper(n) for n in range(1)]

    def deeper(self, n: int) -> int:
        return wait()

    def __lt__(self, other: object) -> bool:
        wait()
        return True


def callback() -> None:
    sorted(range(3), key=lambda n: wait())


def comparison() -> None:
    method = Method.__new__(Method)
    sorted([method, method])


def generator() -> None:
    def numbers(n: int) -> Iterator[int]:
        yield from (numbers(n - 1) if n else iter([wait()]))

    for _ in numbers(5):
        pass
    list(numbers(1))


def coroutine() -> None:
    async def inner() -> None:
        wait()

    async def outer() -> None:
        await inner()

    asyncio.run(outer())


def executed() -> None:
    exec(compile("\n\n\ndef naïve_名():\n    wait()\nnaïve_名()", "<füll 名>", "exec"), {"wait": wait})


def long_lines() -> None:
    code = "def far():\n" + "\n" * 3000 + "    (\n" + "\n" * 90 + "    wait(\n\n" + ")" + "\n" * 50 + ")\nfar()"
    exec(compile(code, "x" * 3000, "exec"), {"wait": wait})


def deep() -> None:
    """More frames than fit into one piece of the interpreter's own stack, by turns in C and in Python."""

    def down(n: int) -> None:
        if n % 5 == 0:
            list(map(down, [n - 1])) if n else wait()
        else:
            down(n - 1)

    down(200)


WAYS = (recursion, Method, callback, comparison, generator, coroutine, executed, long_lines, deep)

for way in WAYS:
    threading.Thread(target=way, name=way.__name__, daemon=True).start()
tell() or os.read(0, 1)
