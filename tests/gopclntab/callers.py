"""Go programs that say themselves what is called in their threads, and walkback's stacks against that."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import walkback
from waiting import PATIENCE, eventually
from walkback.capture import Unwinding
from walkback.capture.stacks import Stopper, ThreadStacks
from walkback.gopclntab.layout import ENTRY_SHAPES
from walkback.stacks.stacks import END_WORDS, HOW_WORDS, End, How
from walkback.symbols.sourceline import SourceLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.gopclntab.files import GoSource
    from walkback.stacks.profile import SampleBatch

HERE = Path(__file__).parent
_FLAG = {layout: shape.flag or 0 for layout, shape in ENTRY_SHAPES.items()}
"""Where in an entry the flags are; the kind of the function is in front of them."""


class Frame(NamedTuple):
    """A call, as `runtime.CallersFrames` has it."""

    pc: int
    """0 where it is not known: that of a function with inlined calls is that of the innermost one."""
    is_inlined: bool
    line: int
    function: str
    file: str


class Held(NamedTuple):
    """A thread that has said what is called in it."""

    tid: int
    case: str
    frames: list[Frame]


def said_frames(texts: list[str]) -> list[Frame]:
    """The frames that a program prints."""
    found = []
    for text in texts:
        pc, is_real, line, function, file = text.split(" ", 4)
        found.append(Frame(int(pc), is_real == "0", int(line), function, file))
    return found


_BETWEEN = {"crosscall2", "runtime.asmcgocall"}
"""Functions of Go between it and C, on the side of C."""
_NOTHING = "nothing where it says"
_SAYS = "main.tell"
"""While this runs, a thread has not said anything yet."""
_INSTEAD = {"runtime.systemstack_switch", "runtime.goexit"}
"""What `runtime.Callers` says in the place of C's functions."""


def without_instead(frames: list[Frame]) -> list[Frame]:
    """The frames that there are."""
    last = [Frame(0, False, 0, "", ""), *frames]
    found = [
        one
        for one, before in zip(frames, last, strict=False)
        if before.function != "runtime.cgocallback" or one.function not in _INSTEAD
    ]
    assert all(one.function not in _INSTEAD for one in found[:-1])
    return found


@contextlib.contextmanager
def running(*command: str | Path) -> Iterator[tuple[int, list[Held]]]:
    """The program, when all of its threads stay where they are: its number, and what they said."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            held: list[Held] = []
            for line in process.stdout:
                if line == "ready\n":
                    break
                tid, case, *frames = line.rstrip("\n").split("\t")
                held.append(Held(int(tid), case, without_instead(said_frames(frames))))
            yield process.pid, held
        finally:
            process.stdin.close()
            try:
                process.wait(PATIENCE)  # and what records it ends with it
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise


@dataclass
class Comparison:
    """What a walk found in the threads of one program, against what they said."""

    program: Path
    stacks: int = 0
    frames: int = 0
    left: Counter[str] = field(default_factory=Counter)
    """Stacks without what was said, by their outermost function."""
    different: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)

    @cached_property
    def source(self) -> GoSource:
        [source] = walkback.gopclntab.read(self.program)
        return source

    @cached_property
    def wrappers(self) -> frozenset[str]:
        """The functions that the table calls so, as it does one that is always there."""
        functions = self.source.functions
        kind = np.frombuffer(functions.data, np.uint8)[functions.entry_place + (_FLAG[functions.layout] - 1)]
        [known] = functions.named("runtime.call16")
        return frozenset(functions.name(one) or "" for one in np.flatnonzero(kind == kind[known]).tolist())

    def compare(self, shot: ThreadStacks, held: list[Held], *, busy: bool = False) -> None:
        """All threads that said something; some of those that are `busy` have left the stack for good."""
        threads = {tid: number for number, tid in enumerate(shot.snapshot.tids)}
        batch = shot.batch()
        for one in held:
            if one.tid in threads or not busy:
                self._compare(batch, threads[one.tid], one, busy=busy)

    def compare_recording(self, path: Path, held: list[Held]) -> None:
        """All samples of threads that said something, but for those from before that."""
        for batch in Unwinding(path, cache=False, inline=False):
            threads = {one.tid: one for one in held}
            for number, tid in enumerate(batch.tid.tolist()):
                if tid in threads:
                    self._compare(batch, number, threads[tid], busy=True)

    def _compare(self, batch: SampleBatch, thread: int, held: Held, *, busy: bool) -> None:
        found, end = self.frames_of(batch, thread), End(int(batch.end[thread]))
        difference = self._difference(found, held.frames)
        functions = {one.function for one in found}
        if busy and (held.frames[0].function not in functions or _SAYS in functions):
            self.left[found[-1].function] += 1
            return
        if busy and end in {End.UNREADABLE, End.STACK_CUT} and (difference or "").startswith(_NOTHING):
            # Of a handler of a signal a recording has the stack of that alone.
            self.left[END_WORDS[end]] += 1
            return
        self.stacks += 1
        self.frames += len(held.frames)
        self.ends[END_WORDS[end]] += 1
        first, last = batch.first[thread : thread + 2].tolist()
        self.ways.update(HOW_WORDS[How(how)] for how in batch.how[first + 1 : last].tolist())
        if difference is None and end != End.COMPLETE:
            difference = f"it ends as {END_WORDS[end]}"
        if difference is not None:
            self.different.append(f"{held.case}: {difference}")

    def frames_of(self, batch: SampleBatch, thread: int) -> list[Frame]:
        """The calls of a thread, innermost first; of what is no code of Go the function is empty."""
        first, end = batch.first[thread : thread + 2].tolist()
        numbers, frames = batch.frame[first:end], batch.frames
        found = []
        its_lines = self.source.lines.find(np.asarray(frames.address)[numbers], inlined=True)
        for frame, lookup, lines in zip(numbers.tolist(), batch.lookup[first:end].tolist(), its_lines, strict=True):
            is_own = frames.module[frame] == str(self.program)
            for number, one in enumerate(lines if is_own and lines else (SourceLine("", 0, ""),)):
                name = re.sub(r"\[go\.shape\..*\]", "[...]", one.function or "")
                found.append(
                    Frame(lookup if not number else 0, number + 1 < len(lines), one.line, name, one.file or "")
                )
        return found

    def _difference(self, found: list[Frame], said: list[Frame]) -> str | None:
        """The first difference beyond the function that holds the thread."""
        place = next((place for place, one in enumerate(found) if one.function == said[0].function), None)
        if place is None:
            return f"no {said[0].function} in {[one.function for one in found]}"
        place += 1
        for one in said[1:]:
            while place < len(found) and not is_same(found[place], one) and self._is_left_out(found[place]):
                place += 1
            if place == len(found):
                return f"{_NOTHING} {one}"
            if not is_same(found[place], one):
                return f"{found[place]} where it says {one}"
            place += 1
        rest = [one for one in found[place:] if not self._is_left_out(one)]
        return f"more than it says: {rest}" if rest else None

    def _is_left_out(self, frame: Frame) -> bool:
        """Whether it is of C, or of a function that only passes a call on: `runtime.Callers` says nothing of these."""
        return not frame.function or frame.function in self.wrappers or frame.function in _BETWEEN


def is_same(found: Frame, said: Frame) -> bool:
    return found == (said if found.pc else said._replace(pc=0))


def stopped(pid: int) -> ThreadStacks:
    """All threads, once each of them could be stopped in time."""
    stopper, last = Stopper(pid, max_stack=1 << 16, cache=False, inline=False), {}

    def are_stopped() -> bool:
        last["shot"] = stopper.shoot()
        return not last["shot"].snapshot.troubles

    assert eventually(are_stopped)
    return last["shot"]
