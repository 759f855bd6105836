"""A program of asyncio that says what its tasks do, as its own Python knows it, and then waits.

What it runs is one of the functions below, by name.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

told = threading.Lock()
kept: list[Any] = []
"""Tasks that nothing else holds."""


def place(frame: FrameType) -> tuple[str, str, int]:
    return frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno


def chain(awaited: Any) -> list[tuple[str, str, int]]:
    """The functions from an object on that await each other, the innermost first."""
    found: list[tuple[str, str, int]] = []
    while awaited is not None:
        if isinstance(awaited, CoroutineType):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        elif isinstance(awaited, GeneratorType):
            frame, awaited = awaited.gi_frame, awaited.gi_yieldfrom
        elif isinstance(awaited, AsyncGeneratorType):
            frame, awaited = awaited.ag_frame, awaited.ag_await
        elif type(awaited).__name__ in {"coroutine_wrapper", "async_generator_asend", "anext_awaitable"}:
            frame, awaited = None, next(iter(gc.get_referents(awaited)))
        else:
            break
        if frame is not None:
            found.insert(0, place(frame))
    return found


def names(waiters: Any) -> list[str]:
    """The tasks among those that await something, or behind futures among them."""
    found: set[str] = set()
    for one in waiters or ():
        found.update([one.get_name()] if isinstance(one, asyncio.Task) else names(one._asyncio_awaited_by))
    return sorted(found)


def tell(tasks: Any, thread: int | None) -> None:
    """Say what these tasks do; the one that runs waits in the line that it is in."""
    try:
        current = asyncio.current_task()
    except RuntimeError:
        current = None
    said = []
    for task in tasks:
        frames = running(task.get_coro()) if task is current else chain(task.get_coro())
        waiters = names(task._asyncio_awaited_by)
        said.append({"name": task.get_name(), "thread": thread, "frames": frames, "awaited_by": waiters})
    with told:
        print(json.dumps(said), flush=True)


def running(coroutine: Any) -> list[tuple[str, str, int]]:
    """The functions from the caller's caller on to that of a coroutine that runs."""
    frame: FrameType | None = sys._getframe(2)
    found = []
    while frame is not None:
        found.append(place(frame))
        if frame is coroutine.cr_frame:
            break
        frame = frame.f_back
    return found


async def some_turns() -> None:
    """Let all others come to where they wait."""
    for _ in range(1000):
        await asyncio.sleep(0)


async def told_later() -> None:
    """Say it when all the others wait; it waits itself in the line in which it says so."""
    loop = asyncio.get_running_loop()
    await some_turns()
    loop.call_soon(lambda: tell(asyncio.all_tasks(loop), threading.get_native_id()))
    await asyncio.Event().wait()


async def leaf() -> None:
    await asyncio.sleep(100000)


async def deep(depth: int) -> None:
    await (deep(depth - 1) if depth else leaf())


async def gathered() -> None:
    await asyncio.gather(leaf(), deep(3), asyncio.shield(leaf()), told_later())


async def grouped() -> None:
    async def inner() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(leaf(), name="naïve 名 \N{BANANA}")
            group.create_task(deep(300), name="deep" * 100)

    async with asyncio.TaskGroup() as group:
        group.create_task(inner(), name="inner")
        group.create_task(told_later())


async def nested() -> None:
    async def waits(*others: asyncio.Task[None]) -> None:
        for one in others:
            await one

    first = asyncio.create_task(leaf(), name="first")
    second = asyncio.create_task(waits(first), name="second")
    third = asyncio.create_task(waits(first), name="third")
    fourth = asyncio.create_task(waits(second, third), name="fourth")
    fifth = asyncio.create_task(waits(third), name="fifth")
    kept.append(asyncio.create_task(told_later(), name="teller"))
    await asyncio.wait([fourth, fifth])


async def circular() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def turn(number: int) -> None:
        await tasks[(number + 1) % 3]

    tasks += [asyncio.create_task(turn(number), name=f"turn {number}") for number in range(3)]
    await told_later()


async def generators() -> None:
    async def numbers(depth: int) -> Any:
        yield 1
        if depth:
            async for one in numbers(depth - 1):
                yield one
        else:
            await leaf()

    async def iterates() -> None:
        async for _ in numbers(2):
            pass

    async def steps(*default: None) -> None:
        its = numbers(0)
        await anext(its, *default)
        await anext(its, *default)

    class Wrapping:
        def __await__(self) -> Any:
            return leaf().__await__()

    class Yielding:
        def __await__(self) -> Any:
            yield from leaf().__await__()

    async def awaits(one: Any) -> None:
        await one

    await asyncio.gather(iterates(), steps(), steps(None), awaits(Wrapping()), awaits(Yielding()), told_later())


async def at_work() -> None:
    async def works(depth: int) -> None:
        if depth:
            await works(depth - 1)
        else:
            await some_turns()
            blocks()

    def blocks() -> None:
        tell(asyncio.all_tasks(), threading.get_native_id()) or time.sleep(100000)  # type: ignore[func-returns-value]

    kept.append(asyncio.create_task(leaf(), name="waits"))
    await asyncio.create_task(works(3), name="works")


async def not_begun() -> None:
    async def blocks() -> None:
        kept.append(asyncio.create_task(leaf(), name="new"))
        tell(asyncio.all_tasks(), threading.get_native_id()) or time.sleep(100000)  # type: ignore[func-returns-value]

    await blocks()


async def eager() -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]  # from 3.12 on
    await asyncio.gather(leaf(), deep(2), told_later())


def threads() -> None:
    """Two loops in two threads, and tasks of a third one that has ended."""

    def leaves() -> None:
        loop = asyncio.new_event_loop()

        async def makes() -> None:
            kept.append(asyncio.create_task(leaf(), name="left"))
            await asyncio.sleep(0)

        loop.run_until_complete(makes())
        kept.append(loop)

    thread = threading.Thread(target=leaves)
    thread.start()
    thread.join()
    tell(kept[:1], None)
    threading.Thread(target=lambda: asyncio.run(gathered()), daemon=True).start()
    asyncio.run(nested())


def changing() -> None:
    """Tasks that begin and end all the time."""

    async def short(depth: int) -> None:
        if depth:
            await asyncio.gather(short(depth - 1), short(depth - 1))
        else:
            await asyncio.sleep(0)

    async def forever() -> None:
        print("[]", flush=True)
        while True:
            await asyncio.gather(*(short(2) for _ in range(20)))

    asyncio.run(forever())


if __name__ == "__main__":
    what = globals()[sys.argv[1]]
    if asyncio.iscoroutinefunction(what):
        asyncio.run(what())
    else:
        what()
