"""Text for people, and names in files.

Names come from files and may hold anything: line ends, control characters, and bytes that are not UTF-8, which stand
in them as lone surrogates. Text formats get those bytes back as they were; JSON and HTML get U+FFFD in their place.
"""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_TURNING = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_BLANK = (0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0)
_UNSEEN = (0xAD, 0x34F, 0x180E, 0x200B, *range(0x2060, 0x2065), *range(0x206A, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC))
"""Without any width. Joiners are not among them: many scripts are written with these."""
_TAGS = range(0xE0000, 0xE0080)


def _spelled(number: int) -> str:
    # What is `\xff` may be a byte that is no text, but not a character.
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_ESCAPES = {number: _spelled(number) for number in (*_CONTROLS, *_TURNING, *_BLANK, *_UNSEEN, *_TAGS)}


def printable(text: str) -> str:
    """Names come from files: what moves the cursor, has colours, turns text around or is unseen is spelled out."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless the count is 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def encoded(text: str) -> bytes:
    """The bytes of a text; those that are not UTF-8 as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return clean(text).encode()


def clean(text: str) -> str:
    """A text that can be written as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def json_text(value: object) -> str:
    """A value as JSON in ASCII; in names what is not UTF-8 is replaced."""
    import json  # late, for most verbs print none

    return json.dumps(clean(value) if isinstance(value, str) else value, separators=(",", ":"))


def base_name(module: str) -> str:
    """The last part of a module's path."""
    return module.rstrip("/").rpartition("/")[2] or module


def spelled_out(text: str) -> str:
    """What Python has read from undecodable bytes is spelled out: no file of text can hold it."""
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(error: Exception) -> str:
    """The first line of what an error says."""
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def sql_text(text: str) -> str:
    """A string of SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'
