"""C++ names by `__cxa_demangle`, the function of the C++ ABI that the machine's own C++ library has.

It writes as much as a name unfolds to, and a name of some hundred characters can unfold to more than any memory holds.
Such names go to another process that has little memory and time, and that may die of them. This module is also the
program of that process, and therefore imports nothing of this package.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache

TYPE_CHECKING = False  # as `typing` has it, which takes as long to import as all this
if TYPE_CHECKING:
    import subprocess

LONGEST = 32 * 1024
"""Longer names stay as they are."""

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_LONGEST_RESULT = 64 * 1024
_LONGEST_HERE = 2048
_MOST_DOUBLINGS_HERE = 16
_REFERENCES = re.compile(rb"[ST][0-9A-Z]*_")
_PACKS = re.compile(rb"Dp|sp")
_MEMORY, _SECONDS_A_NAME = 512 * 1024 * 1024, 0.5
_MOST_DEATHS = 8

Demangler = Callable[[bytes], bytes | None]


@cache
def demangler() -> Demangler | None:
    """The function, if there is a library that has it: the name for a person, or None if it is no C++ name."""
    for library in _LIBRARIES:
        with contextlib.suppress(OSError, AttributeError):
            return _wrapped(ctypes.CDLL(library).__cxa_demangle)
    return None


def _wrapped(function: Callable[..., int | None]) -> Demangler:
    function.restype = ctypes.c_void_p  # type: ignore[attr-defined]  # ctypes
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]  # type: ignore[attr-defined]  # ctypes
    free = ctypes.CDLL(None).free
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    string_at = ctypes.string_at

    def demangled(name: bytes) -> bytes | None:
        place = function(name, None, None, None)
        if not place:
            return None
        try:
            text = string_at(place)
        finally:
            free(place)
        return text if len(text) <= _LONGEST_RESULT else None

    return demangled


def demangle(names: list[bytes]) -> list[bytes | None]:
    """Each name for a person; None for what is no C++ name or unfolds beyond measure."""
    function = demangler()
    if function is None:
        return [None] * len(names)
    harmless = [_is_harmless(name) for name in names]
    suspects = [number for number, name in enumerate(names) if not harmless[number] and _is_bearable(name)]
    # The other process starts while the harmless names are read here.
    with _child() if suspects else contextlib.nullcontext() as child:
        found = [function(name) if is_harmless else None for name, is_harmless in zip(names, harmless, strict=True)]
        answers = _apart([names[number] for number in suspects], child)
    for number, text in zip(suspects, answers, strict=True):
        found[number] = text
    return found


def _is_bearable(name: bytes) -> bool:
    """Whether another process can be asked for it."""
    return len(name) <= LONGEST and b"\n" not in name and b"\0" not in name


def _is_harmless(name: bytes) -> bool:
    """Whether it cannot unfold to very much.

    Two references to an earlier part can double what there is; a pack repeats a part for each of its elements.
    """
    if len(name) < 2 * _MOST_DOUBLINGS_HERE:
        return True
    if len(name) > _LONGEST_HERE:
        return False
    doublings = len(_REFERENCES.findall(name)) / 2
    if b"Dp" in name or b"sp" in name:
        doublings += len(_PACKS.findall(name)) * math.log2(len(name) / 4)
    return doublings <= _MOST_DOUBLINGS_HERE


@contextlib.contextmanager
def _child() -> Iterator[subprocess.Popen[bytes] | None]:
    """Another process, which answers the names that it is given, for as long as this is held; None if there is none."""
    import subprocess  # not in that process, which starts sooner so

    child = None
    with contextlib.suppress(OSError):
        if sys.executable:
            command = [sys.executable, "-I", "-S", __file__]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if child is None:
        yield None
        return
    with child:
        try:
            yield child
        except BaseException:
            child.kill()
            raise


def _apart(names: list[bytes], child: subprocess.Popen[bytes] | None) -> list[bytes | None]:
    """The answers of another process, and of a new one behind each name that it died of."""
    found = _answers(names, child)
    for _ in range(_MOST_DEATHS - 1):
        if len(found) == len(names):
            break
        with _child() as another:
            found += _answers(names[len(found) :], another)
    return found + [None] * (len(names) - len(found))


def _answers(names: list[bytes], child: subprocess.Popen[bytes] | None) -> list[bytes | None]:
    """The names that a process has answered, and None for the one that it died of; None for all if there is none."""
    if child is None or not names:
        return [None] * len(names)
    try:
        answer, _ = child.communicate(b"\n".join(names) + b"\n")
    except OSError:
        return [None] * len(names)
    lines = answer.split(b"\n")[: len(names) + 1]
    found = [line or None for line in lines[:-1]]
    return found if len(found) == len(names) else [*found, None]


def main() -> None:
    """Answer each line with its name, or an empty line; each is given so much time, and all so much memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    function = demangler()
    for line in sys.stdin.buffer.read().split(b"\n")[:-1]:
        signal.setitimer(signal.ITIMER_PROF, _SECONDS_A_NAME)  # its signal ends the process
        answer = (function(line) if function is not None else None) or b""
        os.write(1, answer.replace(b"\n", b" ") + b"\n")


if __name__ == "__main__":
    main()
