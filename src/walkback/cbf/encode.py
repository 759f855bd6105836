"""Writing the Compact Backtrace Format, version 0.

"shortest" gives the fewest bytes that say the same frames, the first address absolute as the document demands. "swift"
gives what Swift's writer gives, byte for byte: it starts from an address of 0, and so has the first one relative; it
says more than 31 omitted frames, and not 32, behind the instruction; and it repeats at most 1,048,576 times at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from walkback.arrays import I64, U8, U64, Bools, Numbers
from walkback.cbf import _encode
from walkback.cbf.backtraces import Backtrace, Backtraces, as_offsets
from walkback.cbf.layout import SIZES, SWIFT_MOST_REPEATS, Kind
from walkback.errors import ArgumentError, InexpressibleError

STYLES = ("shortest", "swift")

_WIDEST = 9
"""Bytes of an instruction that is written."""
_SPARE = 64
"""That the kernel may store over."""
_MOST_REPEATS = 1 << 10
"""Instructions that one run may need; only 16-bit words and Swift need more than one."""
_MOST_OF_SHORTEST = np.array([2**16 - 1, 2**32 - 1, 2**64 - 1], np.uint64)
_MOST_OF_SWIFT = np.full(3, SWIFT_MOST_REPEATS, np.uint64)


def encode_backtrace(
    frames: Backtrace | Iterable[tuple[int, int]],
    *,
    word: int | None = None,
    truncated: bool | None = None,
    end: bool = True,
    style: str = "shortest",
) -> bytes:
    """The bytes of one backtrace, which is given as such or as kind and value of each frame.

    Without `word` and `truncated` those of the backtrace count, else 64 and False. Without `end` nothing marks the end
    of one that is not truncated. Raises InexpressibleError.
    """
    if not isinstance(frames, Backtrace):
        frames = backtrace(frames)
    data, _ = encode_columns(
        np.array([0, len(frames.kind)], np.int64),
        frames.kind,
        frames.value,
        frames.times,
        word=frames.word if word is None else word,
        truncated=np.array([frames.truncated if truncated is None else truncated]),
        end=end,
        style=style,
    )
    return data.tobytes()


def backtrace(frames: Iterable[tuple[int, int]], *, word: int = 64, truncated: bool = False) -> Backtrace:
    """The backtrace of frames that are given as kind and value."""
    pairs = list(frames)
    kind, value = ([int(pair[column]) for pair in pairs] for column in (0, 1))
    return Backtrace(_as_kinds(kind), _as_values(value), np.ones(len(pairs), np.uint64), truncated, word)


def encode_backtraces(backtraces: Backtraces, *, end: bool = True, style: str = "shortest") -> tuple[U8, I64]:
    """The bytes of backtraces, one after the other, and where each begins and the last ends."""
    one = backtraces
    return encode_columns(
        one.first, one.kind, one.value, one.times, word=one.word, truncated=one.truncated, end=end, style=style
    )


def encode_columns(
    first: Numbers,
    kind: Numbers,
    value: Numbers,
    times: Numbers | None = None,
    *,
    word: int | Numbers = 64,
    truncated: Bools | None = None,
    end: bool = True,
    style: str = "shortest",
) -> tuple[U8, I64]:
    """The bytes of backtraces in columns, one after the other, and where each begins and the last ends.

    Backtrace i has the frames from `first[i]` up to `first[i + 1]`, innermost first. Raises InexpressibleError.
    """
    if style not in STYLES:
        message = f"there is no style {style!r}; known: {', '.join(STYLES)}"
        raise ArgumentError(message)
    swift = style == "swift"
    first = as_offsets(first, len(kind))
    repeats = np.zeros(0, np.uint64) if times is None else _as_column("a frame stands there", times, np.uint64)
    if len(value) != len(kind) or len(repeats) not in (0, len(kind)):
        message = "columns of frames differ in length"
        raise ArgumentError(message)
    count = len(first) - 1
    words = _as_words(word, count)
    marks = np.zeros(count, np.uint8) if truncated is None else np.ascontiguousarray(truncated, np.bool_).view(np.uint8)
    if len(marks) != count:
        message = "truncated has to have one for each backtrace"
        raise ArgumentError(message)
    most = _MOST_OF_SWIFT if swift else _MOST_OF_SHORTEST
    instructions = len(kind) + _repeat_instructions(repeats, int(most[int(words.min(initial=64)) >> 5]))
    out = np.empty(_WIDEST * instructions + 2 * count + _SPARE, np.uint8)
    offsets = np.empty(count + 1, np.int64)
    state = np.zeros(2, np.int64)
    kinds, values = _as_column("the kind of a frame is", kind, np.uint8), _as_column("a value is", value, np.uint64)
    status = _encode.encode(first, kinds, values, repeats, words, marks, swift, end, most, out, offsets, state)
    if status:
        _refuse(status, int(kinds[state[1]]), int(values[state[1]]), int(words[state[0]]))
    out.resize(int(offsets[-1]), refcheck=False)
    return out, offsets


def _as_column(what: str, numbers: Numbers, to: type[np.unsignedinteger[Any]]) -> Numbers:
    """The numbers in the type that the kernel takes; none is made another number by that."""
    column = np.asarray(numbers)
    if column.dtype != to and len(column):
        if column.dtype.kind not in "iu":
            message = f"columns of frames are of whole numbers, and not of {column.dtype}"
            raise ArgumentError(message)
        least, most = int(column.min()), int(column.max())
        if least < 0 or most > np.iinfo(to).max:
            message = f"{what} {least if least < 0 else most}, which cannot be said"
            raise InexpressibleError(message)
    return np.ascontiguousarray(column, to)


def _as_words(word: int | Numbers, count: int) -> U8:
    words = np.full(count, word, np.int64) if np.ndim(word) == 0 else np.asarray(word)
    if len(words) != count or not np.isin(words, list(SIZES)).all():
        message = "a word has 16, 32 or 64 bits"
        raise ArgumentError(message)
    return np.ascontiguousarray(words, np.uint8)


def _as_kinds(kinds: list[int]) -> U8:
    if not all(Kind.PC <= kind <= Kind.OMIT for kind in kinds):
        message = f"a frame is of one of the kinds {', '.join(one.name for one in Kind)}"
        raise InexpressibleError(message)
    return np.array(kinds, np.uint8)


def _as_values(values: list[int]) -> U64:
    for value in values:
        if not 0 <= value < 2**64:
            message = f"{value} does not fit into 64 bits"
            raise InexpressibleError(message)
    return np.array(values, np.uint64)


def _repeat_instructions(times: U64, most: int) -> int:
    """How many instructions repeat runs, at most."""
    if not len(times):
        return 0
    longest = int(times.max())
    if longest > most * _MOST_REPEATS:
        message = f"a frame stands {longest} times, which takes more than {_MOST_REPEATS} instructions"
        raise InexpressibleError(message)
    # Runs that are equal to their neighbours may make some more of these together; no run alone makes less than this.
    return len(times) + int((times // np.uint64(most)).sum())


def _refuse(status: int, kind: int, value: int, word: int) -> None:
    if status == _encode.NO_ROOM:
        message = "the output is too small"
        raise RuntimeError(message)
    if status == _encode.BAD_KIND:
        message = f"there are no frames of kind {kind}"
    elif status == _encode.NOT_SWIFT:
        message = f"Swift cannot write that {value} frames are omitted"
    elif kind == Kind.OMIT:
        message = f"{value} omitted frames are more than {word} bits can say"
    else:
        message = f"the address {value:#x} has more than {word} bits"
    raise InexpressibleError(message)
