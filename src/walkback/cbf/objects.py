"""Backtraces as objects for JSON, and back.

A backtrace is a list of `{"kind": "pc" | "ra" | "async", "address": N}` and `{"kind": "omit", "count": N}`, and at its
end `{"kind": "truncated"}` if it is. A frame may have more to it, as the file that it is in, which is passed over.
"""

from __future__ import annotations

from itertools import islice
from typing import NotRequired, TypedDict

from walkback.base.errors import ArgumentError, BacktraceError
from walkback.cbf.backtraces import Backtrace
from walkback.cbf.encoding import backtrace as made_of
from walkback.cbf.layout import FrameCode

_TRUNCATED: dict[str, object] = {"kind": "truncated"}
NAMES = {kind: kind.name.lower() for kind in FrameCode}
"""What frames are called."""
_KINDS = {name: kind for kind, name in NAMES.items()}


class FrameObject(TypedDict):
    """A frame, as JSON."""

    kind: str
    """`pc`, `ra` or `async`; `omit` for omitted frames; `truncated`, only as the last, if the stack continued."""
    address: NotRequired[int]
    """Of `pc`, `ra` and `async`: an integer of up to 64 bits."""
    count: NotRequired[int]
    """Of `omit`: the number of frames."""


def to_json(backtrace: Backtrace, limit: int | None = None) -> list[FrameObject]:
    """A backtrace as `json.dumps` takes it; after `limit` frames a longer one is truncated.

    >>> walkback.cbf.to_json(walkback.cbf.decode(bytes.fromhex("021a40104600")))
    [{'kind': 'pc', 'address': 4198470}]
    """
    if limit is not None and limit < 0:
        raise ArgumentError(f"{limit} is no number of frames")
    objects: list[FrameObject] = [
        {"kind": NAMES[kind], "count": value} if kind == FrameCode.OMIT else {"kind": NAMES[kind], "address": value}
        for kind, value in islice(backtrace, limit)
    ]
    if backtrace.truncated or (limit is not None and backtrace.frame_count > limit):
        objects.append({"kind": "truncated"})
    return objects


def from_json(objects: object, word: int = 64) -> Backtrace:
    """The backtrace of such a list, as `json.loads` gives it; raises BacktraceError for anything else.

    >>> walkback.cbf.encode(walkback.cbf.from_json([{"kind": "pc", "address": 0x401046}])).hex(" ")
    '02 1a 40 10 46 00'
    """
    if not isinstance(objects, list):
        raise BacktraceError("a backtrace is a list of frames")
    truncated = bool(objects) and objects[-1] == _TRUNCATED
    frames = objects[:-1] if truncated else objects
    pairs = (_frame(number, one) for number, one in enumerate(frames))
    return made_of(pairs, word=word, truncated=truncated)


def _frame(number: int, one: object) -> tuple[FrameCode, int]:
    """The kind and value of a frame."""
    wanted = ": a frame is an object, and a backtrace a list of these, one a line"
    if isinstance(one, dict):
        kind = _KINDS.get(one["kind"]) if isinstance(one.get("kind"), str) else None
        if kind is not None:
            key = "count" if kind == FrameCode.OMIT else "address"
            value = one.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return kind, value
            wanted = f': "{kind.name.lower()}" has {key}, a whole number'
        elif one == _TRUNCATED:
            wanted = ": only the last can be truncated"
        else:
            wanted = f": its kind is none of {', '.join(_KINDS)} and, at the end, truncated"
    raise BacktraceError(f"frame {number} is none{wanted}")
