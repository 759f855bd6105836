"""Parameters that name files, and where bytes come from and go to: for every verb `-` is standard input or output.

It becomes the path that the system has for it, /dev/stdin or /dev/stdout, which messages name too.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.replace import STDOUT, check_replaceable, refuse_lost, replacing
from walkback.base.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

STDIN = "/dev/stdin"
_STDOUT = "/dev/stdout"
_DESCRIPTOR = re.compile(r"/dev/stdin|(?:/dev|/proc/self)/fd/(\d{1,9})")
_LARGEST = 4 << 30
"""Bytes that are kept of what comes through a pipe."""
_PIECE = 1 << 20


class _File(click.Path):
    """A path; whether it can be read or written is for the verb to find out."""

    _standard: str

    def __init__(self) -> None:
        super().__init__(readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(self._standard if value == "-" else value, param, ctx)


class _Stream(_File):
    """A file that is read once, from front to back."""

    _standard = STDIN
    _again = False
    """Whether another parameter can be standard input as well."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-" and ctx is not None:
            former = ctx.meta.get(STDIN)
            ctx.meta[STDIN] = self
            if former is not None and not (self._again and former._again):
                self.fail("standard input can be read only once here", param, ctx)
        return super().convert(value, param, ctx)


class _Input(_Stream):
    """A file that is read in any order and more than once, even if it comes through a pipe."""

    _again = True

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        _keep_input(os.fspath(path))
        return path


class _PlacedInput(_Input):
    """The same, with an address behind it perhaps."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path, at, address = os.fspath(value).partition("@")
        if path != "-" and not _DESCRIPTOR.fullmatch(path):
            return super().convert(value, param, ctx)
        return super().convert(path, param, ctx) + at + address


class _Output(_File):
    """A file that is written."""

    _standard = _STDOUT

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click does; an empty name is none."""
        if value == "":
            self.fail("the name of the file is empty", param, ctx)
        return super().convert(value, param, ctx)


class _Folder(click.Path):
    """A folder, or whatever else has to have a path."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=not exists, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("- is standard input or output, which has no path; ./- is the file of that name", param, ctx)
        return super().convert(value, param, ctx)


STREAM, INPUT_FILE, PLACED_FILE, OUTPUT_FILE = _Stream(), _Input(), _PlacedInput(), _Output()
FOLDER, EXISTING_FOLDER = _Folder(), _Folder(exists=True)


def _keep_input(path: str) -> None:
    """Put what comes through a descriptor of this process into a file without a name, which takes its number."""
    found = _DESCRIPTOR.fullmatch(path)
    if found is None:
        return
    from tempfile import TemporaryFile  # which takes longer to import than most verbs to run

    number = int(found[1] or 0)
    try:
        if stat.S_ISREG(os.fstat(number).st_mode) and os.lseek(number, 0, os.SEEK_CUR) == 0:
            return
        with TemporaryFile() as kept:
            for piece in bounded(partial(os.read, number), path, _LARGEST):
                kept.write(piece)
            kept.seek(0)
            os.dup2(kept.fileno(), number)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error), file=path) from error


def bounded(read: Callable[[int], bytes], path: str, most: int) -> Iterator[bytes]:
    """What can be read, piece by piece; an error if it is more than this."""
    size = 0
    while piece := read(_PIECE):
        size += len(piece)
        if size > most:
            message = f"this is more than {most} bytes"
            raise UnreadableError(message, file=path)
        yield piece


def standard_input(path: str) -> BinaryIO | None:
    """Standard input, if that is what is meant."""
    return sys.stdin.buffer if path == STDIN else None


# Outputs


def output_for(file: str, output: str | None) -> str | None:
    """Where a verb writes that works in place without an output: what came by a descriptor goes to standard output."""
    if output is None and _DESCRIPTOR.fullmatch(file):
        output = _STDOUT
    if output is not None:
        refuse_terminal("a binary file", output)
    return output


def is_stdout(output: str | None) -> bool:
    """Whether this is standard output, on which nothing else may stand then."""
    return output in STDOUT


def account(output: str | None) -> contextlib.AbstractContextManager[Any]:
    """Where the account of what was written goes: to standard error if the bytes go to standard output."""
    return contextlib.redirect_stdout(sys.stderr if is_stdout(output) else sys.stdout)


@contextlib.contextmanager
def opened(output: str | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that gets its name when it is complete."""
    if output is None or is_stdout(output):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(output) as out:
        yield out


def check_output(output: str) -> None:
    """Find out whether a file can be written before there is anything to write; raises OSError, which names it."""
    if not is_stdout(output):
        check_replaceable(output)


def refuse_input(source: str, output: str | None) -> None:
    """Refuse to write over what is read: a recording cannot be made again. A pipe or a terminal loses nothing."""
    try:
        if output is not None:
            refuse_lost(source, output)
    except ArgumentError as error:
        raise click.UsageError(printable(str(error))) from None


def refuse_terminal(name: str, output: str | None) -> None:
    """Refuse to write bytes that are no text to a terminal."""
    if _is_terminal(output):
        message = f"{name} is not for a terminal; use -o FILE, or a pipe"
        raise click.UsageError(message)


def _is_terminal(output: str | None) -> bool:
    if output is None or is_stdout(output):
        return sys.stdout.isatty()
    try:
        if not stat.S_ISCHR(os.stat(output).st_mode):
            return False
        descriptor = os.open(output, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def same_file(one: str, other: str) -> bool:
    """Whether two names stand for one file."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
