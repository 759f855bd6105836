"""Writing the Compact Backtrace Format, version 0.

"shortest" gives the fewest bytes that say the same frames, the first address absolute as the document demands. "swift"
gives what Swift's writer gives, byte for byte: it starts from an address of 0, and so has the first one relative; it
says more than 31 omitted frames, and not 32, behind the instruction; and it repeats at most 1,048,576 times at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, Numbers
from walkback.base.errors import ArgumentError, InexpressibleError
from walkback.cbf import _encode
from walkback.cbf.backtraces import Backtrace, Backtraces, as_offsets
from walkback.cbf.layout import SIZES, SWIFT_MOST_REPEATS, FrameCode

STYLES = ("shortest", "swift")

_WIDEST = 9
"""Bytes of an instruction that is written."""
_SPARE = 64
"""That the kernel may store over."""
_MOST_REPEATS = 1 << 10
"""Instructions that one run may need; only 16-bit words and Swift need more than one."""
_MOST_OF_SHORTEST = np.array([2**16 - 1, 2**32 - 1, 2**64 - 1], np.uint64)
_MOST_OF_SWIFT = np.full(3, SWIFT_MOST_REPEATS, np.uint64)


def encode(
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

    >>> PC, RA = walkback.cbf.FrameCode.PC, walkback.cbf.FrameCode.RA
    >>> walkback.cbf.encode([(PC, 0x401046), (RA, 0x40107B)]).hex(" ")
    '02 1a 40 10 46 20 35 00'
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


def encode_all(backtraces: Backtraces, *, end: bool = True, style: str = "shortest") -> tuple[U8, I64]:
    """The bytes of backtraces, one after the other, and where each begins and the last ends.

    >>> many = walkback.cbf.decode_all(bytes.fromhex("021a40104600021a40104600"))
    >>> data, offsets = walkback.cbf.encode_all(many)
    >>> bytes(data).hex(" "), offsets.tolist()
    ('02 1a 40 10 46 00 02 1a 40 10 46 00', [0, 6, 12])
    """
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

    >>> import numpy as np
    >>> kind = np.full(2, walkback.cbf.FrameCode.PC)
    >>> data, offsets = walkback.cbf.encode_columns(np.array([0, 1, 2]), kind, np.array([0x401046, 0x40107B]))
    >>> offsets.tolist()
    [0, 6, 12]
    """
    if style not in STYLES:
        raise ArgumentError(f"there is no style {style!r}; known: {', '.join(STYLES)}")
    swift = style == "swift"
    first = as_offsets(first, len(kind))
    repeats = np.zeros(0, np.uint64) if times is None else _as_column("a frame stands there", times, np.uint64)
    if len(value) != len(kind) or len(repeats) not in (0, len(kind)):
        raise ArgumentError("columns of frames differ in length")
    count = len(first) - 1
    words = _as_words(word, count)
    marks = np.zeros(count, np.uint8) if truncated is None else np.ascontiguousarray(truncated, np.bool_).view(np.uint8)
    if len(marks) != count:
        raise ArgumentError("truncated has to have one for each backtrace")
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
            raise ArgumentError(f"columns of frames are of whole numbers, and not of {column.dtype}")
        least, most = int(column.min()), int(column.max())
        if least < 0 or most > np.iinfo(to).max:
            raise InexpressibleError(f"{what} {least if least < 0 else most}, which cannot be said")
    return np.ascontiguousarray(column, to)


def _as_words(word: int | Numbers, count: int) -> U8:
    words = np.full(count, word, np.int64) if np.ndim(word) == 0 else np.asarray(word)
    if len(words) != count or not np.isin(words, list(SIZES)).all():
        raise ArgumentError("a word has 16, 32 or 64 bits")
    return np.ascontiguousarray(words, np.uint8)


def _as_kinds(kinds: list[int]) -> U8:
    if not all(FrameCode.PC <= kind <= FrameCode.OMIT for kind in kinds):
        raise InexpressibleError(f"a frame is of one of the kinds {', '.join(one.name for one in FrameCode)}")
    return np.array(kinds, np.uint8)


def _as_values(values: list[int]) -> U64:
    for value in values:
        if not 0 <= value < 2**64:
            raise InexpressibleError(f"{value} does not fit into 64 bits")
    return np.array(values, np.uint64)


def _repeat_instructions(times: U64, most: int) -> int:
    """How many instructions repeat runs, at most."""
    if not len(times):
        return 0
    longest = int(times.max())
    if longest > most * _MOST_REPEATS:
        raise InexpressibleError(f"a frame stands {longest} times, which takes more than {_MOST_REPEATS} instructions")
    # Runs that are equal to their neighbours may make some more of these together; no run alone makes less than this.
    return len(times) + int((times // np.uint64(most)).sum())


def _refuse(status: int, kind: int, value: int, word: int) -> None:
    if status == _encode.NO_ROOM:
        raise RuntimeError("the output is too small")
    if status == _encode.BAD_KIND:
        message = f"there are no frames of kind {kind}"
    elif status == _encode.NOT_SWIFT:
        message = f"Swift cannot write that {value} frames are omitted"
    elif kind == FrameCode.OMIT:
        message = f"{value} omitted frames are more than {word} bits can say"
    else:
        message = f"the address {value:#x} has more than {word} bits"
    raise InexpressibleError(message)
