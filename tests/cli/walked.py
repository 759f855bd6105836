"""`walkback unwind` and `walkback stack` as processes, and what they say."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from cli.commands import run

BUILD_ID = "--build-id=0x00112233445566778899aabbccddeeff00112233"
"""What the recording of `hello` has."""
FOLDED = ["hello;_start;main 1", "hello;_start;main;compute 4", "hello;compute 1"]
FORMATS = ("folded", "top", "perf-script", "json", "pprof", "speedscope", "firefox", "cbf", "html")
CUT = "1 of 6 stacks not complete: 1 stack-cut"
STACK_OF_MAIN = ("main", *["sleepy"] * 6, "pause")


def unwind(*args: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return run("unwind", *map(str, args), **more)


def complaints(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Lines of standard error without the program's name."""
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith("walkback: ") for line in lines), lines
    return [line.removeprefix("walkback: ") for line in lines]


def stack(*args: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return run("stack", *map(str, args), **more)


def paragraphs(done: subprocess.CompletedProcess[bytes], status: int = 0) -> list[list[str]]:
    """The first line, and then a list of lines for each thread."""
    assert done.stderr == b""
    assert done.returncode == status
    return [part.splitlines() for part in done.stdout.decode().rstrip("\n").split("\n\n")]


def functions(lines: list[str]) -> list[str]:
    """The functions of frames, innermost first."""
    found = [
        re.fullmatch(r"#\d+ +0x[0-9a-f]{16} ([^ +]+)(\+0x[0-9a-f]+)?( at .*)? \(.*\) \[[a-z-]+\]", one) for one in lines
    ]
    return [one[1] for one in found if one]
