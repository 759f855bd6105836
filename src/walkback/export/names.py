"""Names as the formats need them.

Names come from files and may hold anything: line ends, control characters, and bytes that are not UTF-8, which stand
in them as lone surrogates. Text formats get those bytes back as they were; JSON and HTML get U+FFFD in their place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from walkback.arrays import I64

_SURROGATE = re.compile("[\ud800-\udfff]")


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
    return json.dumps(clean(value) if isinstance(value, str) else value, separators=(",", ":"))


def base_name(module: str) -> str:
    """The last part of a module's path."""
    return module.rstrip("/").rpartition("/")[2] or module


def numbered(values: Sequence[object]) -> tuple[list[object], I64]:
    """The distinct values in the order of their first appearance, and the number of each value among them."""
    numbers: dict[object, int] = {}
    of_each = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), np.array(of_each, np.int64)
