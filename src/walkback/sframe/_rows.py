"""Frame row entries to columns and back (compiled).

A row is its start (1, 2 or 4 bytes) and its *shape*: the info byte and the data words after it. Equal shapes get one
number while the rows are read (`walkback.base.intern`): a million rows become a million pairs of start and number, and
a few thousand shapes whose words are decoded once.

Follows "SFrame FRE" of the SFrame specification, the same in versions 1 to 3.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.intern import Interner
    from cython.cimports.walkback.base.loading import load8
    from cython.cimports.walkback.sframe import layout
    from cython.cimports.walkback.sframe.section import RowFault
else:
    from walkback.base.intern import Interner
    from walkback.base.loading import load8
    from walkback.sframe import layout
    from walkback.sframe.section import RowFault

_WORD = cython.declare(cython.ulonglong, WORD)
_SIGN_32 = cython.declare(cython.longlong, 0x80000000)


def decode_rows(buffer, ends, position, count, width, fde_type, big):
    """Read the rows of each function.

    `ends`, `position`, `count`, `width` and `fde_type` have one entry a function: where its FRE sub-section ends, where
    its first row stands, how many it claims, the bytes of a row's start, and the kind that its words are to be read as.
    `position` becomes where reading stopped.

    Returns (rows read per function, fault per function, start and shape per row, shapes' positions and kinds). The
    caller sees to it that the sum of `count` is a reasonable size.
    """
    functions = len(position)
    rows = int(count.sum())
    got = np.zeros(functions, np.int64)
    fault = np.zeros(functions, np.uint8)
    # One allocation: large ones get large pages.
    row_start, row_shape = np.empty((2, rows), np.uint32)
    interner = Interner(buffer)
    total = _decode(interner, buffer, ends, position, count, width, fde_type, big, got, fault, row_start, row_shape)
    return got, fault, row_start[:total], row_shape[:total], interner.first_positions(), interner.first_tags()


@takes_views
def _decode(
    interner: Interner,
    buffer: cython.const[cython.uchar][::1],
    ends: cython.const[cython.longlong][::1],
    position: cython.longlong[::1],
    count: cython.longlong[::1],
    width: cython.uchar[::1],
    fde_type: cython.uchar[::1],
    big: cython.bint,
    got: cython.longlong[::1],
    fault: cython.uchar[::1],
    row_start: cython.uint[::1],
    row_shape: cython.uint[::1],
):
    f: cython.Py_ssize_t
    j: cython.Py_ssize_t
    row: cython.Py_ssize_t = 0
    start: cython.uint
    with cython.nogil:
        for f in range(position.shape[0]):
            pos: cython.Py_ssize_t = position[f]
            end: cython.Py_ssize_t = ends[f]
            size: cython.Py_ssize_t = width[f]
            problem: cython.int = RowFault.NONE
            first: cython.Py_ssize_t = row
            for j in range(count[f]):
                if end - pos < size + 1:
                    problem = RowFault.CUT_OFF
                    break
                if size == 1:
                    start = buffer[pos]
                elif size == 2:
                    start = _u16(buffer, pos, big)
                else:
                    start = _u32(buffer, pos, big)
                pos += size
                length: cython.Py_ssize_t = _shape_length(buffer[pos])
                if length == 0:
                    problem = RowFault.WORD_SIZE
                elif end - pos < length:
                    problem = RowFault.CUT_OFF
                if problem != RowFault.NONE:
                    pos -= size
                    break
                row_start[row] = start
                if length <= 7 and end - pos >= 8:
                    head: cython.ulonglong = load8(buffer, pos) & (_WORD >> (64 - 8 * length))
                    row_shape[row] = interner.add_short(head, pos, length, fde_type[f])
                else:
                    row_shape[row] = interner.add(pos, length, fde_type[f])
                row += 1
                pos += length
            position[f] = pos
            got[f] = row - first
            fault[f] = problem
    return row


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _shape_length(info: cython.uint) -> cython.Py_ssize_t:
    """Bytes of a shape with this info byte; 0 if its word size means nothing."""
    code: cython.uint = (info >> layout.FRE_WORD_SIZE_SHIFT) & layout.FRE_WORD_SIZE_MASK
    if code == layout.FRE_NO_WORD_SIZE:
        return 0
    return 1 + (((info >> layout.FRE_WORD_COUNT_SHIFT) & layout.FRE_MAX_WORDS) << code)


def encode_rows(out, position, rows, width, row_start, row_shape, shape_bytes, shape_first, big):
    """Write the rows of each function into `out`, from `position` on; the inverse of `decode_rows`.

    Shape s is `shape_bytes[shape_first[s]:shape_first[s + 1]]`. Returns the number of the first row whose start does
    not fit its width, or -1.
    """
    heads = np.zeros(len(shape_first) - 1, np.uint64)
    return _encode(out, position, rows, width, row_start, row_shape, shape_bytes, shape_first, heads, big)


@takes_views
def _encode(
    out: cython.uchar[::1],
    position: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    width: cython.const[cython.uchar][::1],
    row_start: cython.const[cython.uint][::1],
    row_shape: cython.const[cython.uint][::1],
    shape_bytes: cython.const[cython.uchar][::1],
    shape_first: cython.const[cython.longlong][::1],
    heads: cython.ulonglong[::1],
    big: cython.bint,
):
    f: cython.Py_ssize_t
    j: cython.Py_ssize_t
    i: cython.Py_ssize_t
    shape: cython.Py_ssize_t
    row: cython.Py_ssize_t = 0
    wrong: cython.Py_ssize_t = -1
    with cython.nogil:
        for shape in range(heads.shape[0]):
            # The first bytes of each shape as one number, so that they can be written at once.
            for i in range(min(8, shape_first[shape + 1] - shape_first[shape])):
                heads[shape] |= cython.cast(cython.ulonglong, shape_bytes[shape_first[shape] + i]) << (8 * i)
        for f in range(position.shape[0]):
            if wrong >= 0:
                break
            pos: cython.Py_ssize_t = position[f]
            size: cython.Py_ssize_t = width[f]
            for j in range(rows[f]):
                start: cython.ulonglong = row_start[row]
                if size < 4 and start >> (8 * size):
                    wrong = row
                    break
                shape = row_shape[row]
                length: cython.Py_ssize_t = shape_first[shape + 1] - shape_first[shape]
                if size == 1 and length < 8 and j + 3 < rows[f] and pos >= 0 and pos + 8 <= out.shape[0]:
                    # What is written too much are 6 bytes at most, and three more rows write over them.
                    _store8(out, pos, start | heads[shape] << 8)
                    pos += 1 + length
                    row += 1
                    continue
                _put(out, pos, start, size, big)
                pos += size
                for i in range(shape_first[shape], shape_first[shape + 1]):
                    out[pos] = shape_bytes[i]
                    pos += 1
                row += 1
    return wrong


def measure_rows(first, rows, row_start, row_shape, shape_length):
    """For each function its largest row start, and how many bytes its rows have besides their starts."""
    largest, length = np.zeros((2, len(first)), np.int64)
    _measure(first, rows, row_start, row_shape, shape_length, largest, length)
    return largest, length


@takes_views
def _measure(
    first: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    row_start: cython.const[cython.uint][::1],
    row_shape: cython.const[cython.uint][::1],
    shape_length: cython.const[cython.longlong][::1],
    largest: cython.longlong[::1],
    length: cython.longlong[::1],
):
    f: cython.Py_ssize_t
    row: cython.Py_ssize_t
    with cython.nogil:
        for f in range(first.shape[0]):
            most: cython.uint = 0
            total: cython.longlong = 0
            for row in range(first[f], first[f] + rows[f]):
                most = max(most, row_start[row])
                total += shape_length[row_shape[row]]
            largest[f] = most
            length[f] = total
    return 0


def decode_words(buffer, positions, big):
    """The info byte of the shapes at these positions, where the words of each begin (and one more), and all words.

    The shapes have been read before, so they lie inside the buffer and have a word size.
    """
    info = np.frombuffer(buffer, np.uint8)[positions]
    first_word = np.zeros(len(positions) + 1, np.int64)
    np.cumsum((info >> layout.FRE_WORD_COUNT_SHIFT) & layout.FRE_MAX_WORDS, out=first_word[1:])
    words = np.empty(int(first_word[len(positions)]), np.int32)
    _decode_words(buffer, positions, info, big, words)
    return info, first_word, words


@takes_views
def _decode_words(
    buffer: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    info: cython.const[cython.uchar][::1],
    big: cython.bint,
    words: cython.int[::1],
):
    shape: cython.Py_ssize_t
    word: cython.Py_ssize_t = 0
    number: cython.int
    value: cython.longlong
    with cython.nogil:
        for shape in range(positions.shape[0]):
            pos: cython.Py_ssize_t = positions[shape] + 1
            code: cython.int = (info[shape] >> layout.FRE_WORD_SIZE_SHIFT) & layout.FRE_WORD_SIZE_MASK
            for number in range((info[shape] >> layout.FRE_WORD_COUNT_SHIFT) & layout.FRE_MAX_WORDS):
                if code == 0:
                    value = buffer[pos]
                    value -= (value & 0x80) << 1
                elif code == 1:
                    value = _u16(buffer, pos, big)
                    value -= (value & 0x8000) << 1
                else:
                    value = _u32(buffer, pos, big)
                    value -= (value & _SIGN_32) << 1
                words[word] = cython.cast(cython.int, value)
                word += 1
                pos += 1 << code
    return 0


@takes_views
def encode_words(
    out: cython.uchar[::1],
    first: cython.const[cython.longlong][::1],
    info: cython.const[cython.uchar][::1],
    first_word: cython.const[cython.longlong][::1],
    words: cython.const[cython.int][::1],
    big: cython.bint,
):
    """Write info byte and words of each shape at `first`; returns the first word that its size cannot hold, or -1."""
    shape: cython.Py_ssize_t
    word: cython.Py_ssize_t
    wrong: cython.Py_ssize_t = -1
    with cython.nogil:
        for shape in range(info.shape[0]):
            pos: cython.Py_ssize_t = first[shape]
            out[pos] = info[shape]
            pos += 1
            size: cython.Py_ssize_t = 1 << ((info[shape] >> layout.FRE_WORD_SIZE_SHIFT) & layout.FRE_WORD_SIZE_MASK)
            for word in range(first_word[shape], first_word[shape + 1]):
                value: cython.longlong = words[word]
                if wrong < 0 and size < 4 and (value >> (8 * size - 1)) != (value >> 63):
                    wrong = word
                _put(out, pos, cython.cast(cython.ulonglong, value & _WORD), size, big)
                pos += size
    return wrong


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _put(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    value: cython.ulonglong,
    size: cython.Py_ssize_t,
    big: cython.bint,
) -> cython.int:
    """The lowest bytes of a number."""
    i: cython.Py_ssize_t
    for i in range(size):
        if big:
            out[pos + i] = (value >> (8 * (size - 1 - i))) & 0xFF
        else:
            out[pos + i] = (value >> (8 * i)) & 0xFF
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=True)
def _u16(buffer: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    if big:
        return (buffer[pos] << 8) | buffer[pos + 1]
    return buffer[pos] | (buffer[pos + 1] << 8)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=True)
def _u32(buffer: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    first: cython.uint = _u16(buffer, pos, big)
    second: cython.uint = _u16(buffer, pos + 2, big)
    return (first << 16) | second if big else first | (second << 16)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.boundscheck(False)
@cython.exceptval(check=True)
def _store8(buffer: cython.uchar[::1], pos: cython.Py_ssize_t, value: cython.ulonglong) -> cython.int:
    """The inverse of `load8`."""
    i: cython.Py_ssize_t
    for i in range(8):
        buffer[pos + i] = (value >> (8 * i)) & 0xFF
    return 0
