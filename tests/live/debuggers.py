"""gdb and eu-stack, asked for the program counters of all threads of a stopped process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest

from waiting import PATIENCE

Stacks = dict[int, list[int]]
"""From the number of a thread to the program counters of its frames, innermost first."""

# Frames of inlined functions and of tail calls are gdb's inference from debug data, and not on the stack.
_SERVER = r"""
import json, os
import gdb
for setting in ("confirm off", "pagination off", "backtrace past-main on", "backtrace past-entry on",
                "auto-load off", "debuginfod enabled off", "print thread-events off"):
    try:
        gdb.execute("set " + setting)
    except gdb.error:
        pass

def frames():
    found, ended = [], "complete"
    try:
        frame = gdb.newest_frame()
        while frame is not None and len(found) < 20000:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                found.append(frame.pc())
            older = frame.older()
            why = frame.unwind_stop_reason()
            if older is None and why not in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST):
                ended = gdb.frame_stop_reason_string(why)
            frame = older
    except gdb.error as error:
        ended = str(error)
    return found, ended

def answer(commands):
    for command in commands:
        gdb.execute(command, to_string=True)
    stacks = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        stacks[thread.ptid[1] or thread.ptid[0]] = frames()
    return stacks

questions, answers = os.fdopen(QUESTIONS), os.fdopen(ANSWERS, "w")
for line in questions:
    commands, after = json.loads(line)
    try:
        told = answer(commands)
    except gdb.error as error:
        told = {"error": str(error)}
    for command in after:
        try:
            gdb.execute(command, to_string=True)
        except gdb.error:
            pass
    print(json.dumps(told), file=answers, flush=True)
"""


def debugger(name: str) -> str:
    """The path of a program that compares; call it inside a test or fixture."""
    found = shutil.which(name)
    if found is None:
        reason = f"needs {name}"
        if os.environ.get("WALKBACK_PEERS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Gdb:
    """One gdb for many questions: starting it takes longer than an answer."""

    def __init__(self, name: str = "gdb") -> None:
        gdb = debugger(name)
        (theirs, self._questions), (self._answers, answers) = os.pipe(), os.pipe()
        script = _SERVER.replace("QUESTIONS", str(theirs)).replace("ANSWERS", str(answers))
        self._process = subprocess.Popen(
            [gdb, "-nx", "-batch", "-ex", f"python exec({script!r})"],
            pass_fds=(theirs, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(answers)
        self.ends: dict[int, str] = {}
        """Why gdb goes no further, of each thread in the last answer."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._questions, self._answers):
            with contextlib.suppress(OSError):
                os.close(one)
        self._process.kill()
        self._process.wait()

    def of_process(self, pid: int) -> Stacks:
        return self._ask([f"attach {pid}"], ["detach"])

    def of_core(self, core: Path, program: str | Path | None = None, sysroot: Path | None = None) -> Stacks:
        before = [f"set sysroot {sysroot if sysroot is not None else '/'}"]
        before += ["file"] if program is None else [f"file {program}"]
        return self._ask([*before, f"core-file {core}"], ["core-file", "file"])

    def _ask(self, commands: list[str], after: list[str]) -> Stacks:
        os.write(self._questions, f"{json.dumps([commands, after])}\n".encode())
        text = b""
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([self._answers], [], [], 120)
            part = os.read(self._answers, 1 << 16) if ready else b""
            assert part, f"gdb gives no answer to {commands}"
            text += part
        told = json.loads(text)
        assert "error" not in told, told["error"]
        self.ends = {int(tid): end for tid, (_, end) in told.items()}
        return {int(tid): found for tid, (found, _) in told.items()}


def eu_stacks(pid: int) -> Stacks:
    """What eu-stack says of a process; where it gives up, the frames until then."""
    command = [debugger("eu-stack"), "-n", "0", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    stacks: Stacks = {}
    for line in done.stdout.splitlines():
        if thread := re.fullmatch(r"TID (\d+):", line):
            stacks[int(thread[1])] = []
        elif frame := re.match(r"#\d+\s+0x([0-9a-f]+)", line):
            stacks[list(stacks)[-1]].append(int(frame[1], 16))
    return stacks
