"""Source file and line of code, by `llvm-symbolizer` or `addr2line`, whichever the machine has.

The program is started when lines are asked for, once for all addresses of a file. It gets the file that has the line
table: the separate debug file where that was found. What the program does not say, because it died or knows
nothing, is not known.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from walkback.base.arrays import U64
from walkback.base.errors import WalkbackError
from walkback.elf import DEBUG_ROOTS, ElfFile, debug_file

_SECONDS = 600
_PROGRAMS = ("llvm-symbolizer", "addr2line")
_DISCRIMINATOR = re.compile(rb" \(discriminator [0-9]+\)$")


class SourceLine(NamedTuple):
    """Where code comes from."""

    file: str
    line: int
    function: str | None = None
    """The function, where inlined ones are asked for: of all but the last, one that was inlined."""


class Lines:
    """Answers for one file after the other."""

    def __init__(
        self, debug_roots: Sequence[str | os.PathLike[str]] = DEBUG_ROOTS, programs: Sequence[str] = _PROGRAMS
    ) -> None:
        """`programs` are tried in this order."""
        self._debug_roots = debug_roots
        found = (shutil.which(name) for name in programs)
        self.program = next((path for path in found if path is not None), None)
        """The program that is used; None if there is none of them."""
        self.trouble = None if self.program else f"lines need {' or '.join(programs)}, and neither is there"
        """Why there are no lines, or fewer than could be."""

    def find(self, elf: ElfFile, addresses: U64, *, inlined: bool = False) -> list[tuple[SourceLine, ...]]:
        """For each address its line; with `inlined` those of the inlined calls around it too, innermost first."""
        nothing: list[tuple[SourceLine, ...]] = [()] * len(addresses)
        path = self._with_lines(elf)
        if self.program is None or path is None or not len(addresses):
            return nothing
        wanted, numbers = np.unique(addresses, return_inverse=True)
        found = dict(self._ask(self.program, path, wanted, inlined=inlined))
        by_number = [found.get(address, ()) for address in wanted.tolist()]
        return [by_number[number] for number in numbers.tolist()]

    def _with_lines(self, elf: ElfFile) -> str | None:
        """The path of the file that has the line table; None if there is none, or it is no file."""
        with contextlib.suppress(WalkbackError):
            if _has_lines(elf):
                return elf.name if os.path.isfile(elf.name) else None
            separate = debug_file(elf, self._debug_roots)
            if separate is not None and _has_lines(separate):
                return separate.name
        return None

    def _ask(
        self, program: str, path: str, wanted: U64, *, inlined: bool
    ) -> Iterator[tuple[int, tuple[SourceLine, ...]]]:
        path = os.path.abspath(path)
        given = "".join(f"{address:#x}\n" for address in wanted.tolist()).encode()
        if Path(program).name.startswith("llvm-symbolizer"):
            how = "--inlines" if inlined else "--no-inlines"
            output = self._run([program, f"--obj={path}", "--output-style=JSON", how, "--demangle"], given)
            answers = _from_json(output)
        else:
            how = "-afCi" if inlined else "-afC"
            answers = _from_addr2line(self._run([program, how, "-e", path], given), wanted)
        yield from answers

    def _run(self, command: list[str], given: bytes) -> bytes:
        """What the program says, even if it dies on the way."""
        # Nothing is fetched from elsewhere; messages are in the C locale.
        environment = os.environ | {"DEBUGINFOD_URLS": "", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command, input=given, capture_output=True, env=environment, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            self.trouble = f"{command[0]} gave no answer within {_SECONDS} seconds"
            return bytes(error.stdout or b"")
        except (OSError, ValueError) as error:
            self.trouble = f"{command[0]} cannot be run: {error}"
            return b""
        if done.returncode:
            first = done.stderr.decode(errors="backslashreplace").strip().partition("\n")[0]
            self.trouble = f"{command[0]} failed" + (f": {first}" if first else f" with status {done.returncode}")
        return done.stdout


def _has_lines(elf: ElfFile) -> bool:
    return bool(elf.sections_named(".debug_line") or elf.sections_named(".zdebug_line"))


def _from_json(output: bytes) -> Iterator[tuple[int, tuple[SourceLine, ...]]]:
    """One object a line; what is none is passed over."""
    for text in output.split(b"\n"):
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            answer: dict[str, Any] = json.loads(text)
            lines = [
                SourceLine(str(each["FileName"]), int(each["Line"]), str(each["FunctionName"]) or None)
                for each in answer["Symbol"]
                if each["FileName"] and each["Line"]
            ]
            yield int(answer["Address"], 16), tuple(lines)


def _from_addr2line(output: bytes, wanted: U64) -> Iterator[tuple[int, tuple[SourceLine, ...]]]:
    """Each address on its line, and behind it two lines for every call: function, and file with line."""
    lines = output.split(b"\n")[:-1]
    position = 0
    for number, address in enumerate(wanted.tolist()):
        if position >= len(lines) or lines[position] != b"0x%016x" % address:
            return
        following = b"0x%016x" % int(wanted[number + 1]) if number + 1 < len(wanted) else None
        position += 1
        found = []
        while position + 1 < len(lines) and lines[position] != following:
            line = _line_of(lines[position], lines[position + 1])
            position += 2
            if line is not None:
                found.append(line)
        yield address, tuple(found)


def _line_of(function: bytes, place: bytes) -> SourceLine | None:
    file, _, line = _DISCRIMINATOR.sub(b"", place).rpartition(b":")
    if file in {b"", b"??"} or not line.isdigit() or not int(line[:9]):
        return None
    name = None if function == b"??" else function.decode(errors="backslashreplace")
    return SourceLine(os.fsdecode(file), int(line[:9]), name)
