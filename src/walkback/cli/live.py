"""A view of what is being recorded, in the terminal: the hottest functions and stacks so far."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from pathlib import Path
from typing import TYPE_CHECKING

import click

from walkback.base.text import base_name, counted, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rich.console import RenderableType
    from rich.text import Text

    from walkback.stacks.profile import Profile

_EVERY = 1.0
"""Seconds between two pictures."""
_GLANCE = 0.1
"""Seconds between two looks at whether keys are wanted any more."""
_NO_KEY = b"\0"
"""In the place of a key that the terminal acts on."""
_STACKS = 5
_FRAMES = 6
"""Innermost functions that are shown of a stack."""
_FEWEST_ROWS = 5
_BESIDE = _STACKS + 8
"""Lines for what is not a function."""


def check_live() -> None:
    """Refuse to draw where nobody looks."""
    if not sys.stdout.isatty():
        message = "--live draws on a terminal, and standard output is none"
        raise click.UsageError(message)
    if os.environ.get("TERM", "").lower() in {"dumb", "unknown"}:
        message = f"--live draws on a whole screen, which a terminal of type {os.environ['TERM']} has not"
        raise click.UsageError(message)


@contextlib.contextmanager
def live_view(title: str, stop: Callable[[], None]) -> Iterator[Callable[[Callable[[], Profile]], None]]:
    """Gives what draws a profile, which is asked for only when it is time to; the key q calls `stop`.

    Ctrl-Z gives the terminal back until the command goes on.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    due = 0.0
    drawing = threading.Lock()

    @contextlib.contextmanager
    def aside() -> Iterator[None]:
        with drawing:
            live.stop()
            yield
            live.start(refresh=True)

    def show(change: Callable[..., None], *what: object, **how: bool) -> None:
        """Change the picture; a terminal that is gone ends what is shown there."""
        try:
            change(*what, **how)
        except OSError:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
            stop()

    live = Live(console=console, screen=True, auto_refresh=False)
    with contextlib.ExitStack() as then:
        show(live.start)
        then.callback(show, live.stop)
        then.enter_context(_keys(stop, aside))

        def draw(profile: Callable[[], Profile]) -> None:
            nonlocal due
            if time.monotonic() >= due:
                picture = _picture(title, profile(), console.height)
                with drawing:
                    show(live.update, picture, refresh=True)
                due = time.monotonic() + _EVERY

        show(live.update, _head(title, "no samples yet"), refresh=True)
        yield draw


def _head(title: str, what: str) -> Text:
    from rich.text import Text

    return Text(f"{printable(title)}: {what}; q ends it", style="reverse", no_wrap=True)


def _picture(title: str, profile: Profile, height: int) -> RenderableType:
    import numpy as np
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from walkback.stacks.functions import FunctionStacks
    from walkback.stacks.top import hottest

    whole = max(int(profile.weight.sum()), 1)
    functions = Table("self", "total", "function", "file", box=None, expand=True, header_style="bold")
    functions.columns[0].justify = functions.columns[1].justify = "right"
    for one in hottest(profile, max(height - _BESIDE, _FEWEST_ROWS)):
        shares = (f"{100 * part / whole:.1f} %" for part in (one.own, one.total))
        functions.add_row(*shares, *(Text(printable(text), no_wrap=True) for text in (one.name, base_name(one.module))))
    stacks = Table("share", "stack", box=None, expand=True, header_style="bold")
    stacks.columns[0].justify = "right"
    found = FunctionStacks.of(profile, profile.frames.labels())
    weights = found.stack_weight.astype(np.float64)
    for number in np.argsort(-weights, kind="stable")[:_STACKS].tolist():
        begin, end = found.first[number : number + 2].tolist()
        names = [printable(found.names[name]) for name in found.stacks[begin : min(end, begin + _FRAMES)].tolist()]
        stacks.add_row(f"{100 * weights[number] / whole:.1f} %", Text(" < ".join(names), no_wrap=True))
    return Group(_head(title, counted(whole, profile.unit.removesuffix("s"))), functions, Text(), stacks)


@contextlib.contextmanager
def _keys(stop: Callable[[], None], aside: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Take keys as they are pressed: q calls `stop`, and Ctrl-Z stops this process while the picture is put `aside`."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    former = termios.tcgetattr(descriptor)
    *_, characters = former
    suspends = characters[termios.VSUSP]
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if not select.select([descriptor], [], [], _GLANCE)[0]:
                continue
            try:
                keys = os.read(descriptor, 64)
            except OSError:  # the terminal is gone
                return
            if not keys or b"q" in keys.lower():
                stop()
                return
            if suspends in keys and suspends != _NO_KEY:
                with aside():
                    termios.tcsetattr(descriptor, termios.TCSADRAIN, former)
                    signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
                    take_keys()

    def take_keys() -> None:
        tty.setcbreak(descriptor)
        modes = termios.tcgetattr(descriptor)
        # As a key, for a signal would come while a picture is being drawn.
        modes[-1][termios.VSUSP] = _NO_KEY
        termios.tcsetattr(descriptor, termios.TCSADRAIN, modes)

    watching = threading.Thread(target=watch, daemon=True)
    take_keys()
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, former)
