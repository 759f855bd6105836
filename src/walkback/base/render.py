"""Columns to text, quickly (compiled).

A page is made of items, each with a head line, rows, and a foot line. A `LineForm` is a sequence of fields: constant
text, a number from a column in some notation, or one of several texts chosen by a column. Texts are the rules that many
rows share, so most of a page is copied and little is formatted.
"""

import cython
import numpy as np

from walkback.base.views import takes_views

_DIGITS = memoryview(b"0123456789abcdef0123456789ABCDEF")
_BUFFER_SIZE = 1 << 18
_WIDEST_NUMBER = cython.declare(cython.Py_ssize_t, 24)

_TEXT = cython.declare(cython.int, 0)
_CHOICE = cython.declare(cython.int, 1)
_DECIMAL = cython.declare(cython.int, 2)
_UNSIGNED = cython.declare(cython.int, 3)
_HEX = cython.declare(cython.int, 4)
_HEX_UPPER = cython.declare(cython.int, 5)
_HEX_16 = cython.declare(cython.int, 6)
_TEN = cython.declare(cython.ulonglong, 10)

NOTATIONS = {"decimal": 2, "unsigned": 3, "hex": 4, "HEX": 5, "hex16": 6}


@cython.final
@cython.cclass
class LineForm:
    """The fields of one kind of line, for all items or all rows."""

    start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    stop = cython.declare(cython.Py_ssize_t, visibility="readonly")
    longest = cython.declare(cython.Py_ssize_t, visibility="readonly")
    ops: cython.const[cython.int][::1]
    numbers: cython.const[cython.longlong][:, ::1]
    choices: cython.const[cython.longlong][:, ::1]
    text: cython.const[cython.uchar][::1]
    text_first: cython.const[cython.longlong][::1]

    def __init__(self, *fields, start=0):
        """Fields are `bytes`; (notation, column); or (texts, column), the column choosing a text.

        The columns begin with item or row `start`.

        Notations: "decimal" (signed), "unsigned", "hex" and "HEX" (no zeros before), "hex16" (16 digits).
        """
        ops, numbers, choices, texts = [], [], [], []
        for field in fields:
            if isinstance(field, bytes):
                ops.append((0, len(texts)))
                texts.append(field)
            elif isinstance(field[0], str):
                ops.append((NOTATIONS[field[0]], len(numbers)))
                column = np.asarray(field[1])
                numbers.append(column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64))
            else:
                ops.append((1, len(choices)))
                choices.append(np.add(field[1], len(texts), dtype=np.int64))
                texts.extend(field[0])
        self.ops = memoryview(np.array(ops, np.int32).reshape(-1))
        self.numbers = memoryview(_columns(numbers))
        self.choices = memoryview(_columns(choices))
        self.text_first = memoryview(np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64))
        self.text = memoryview(b"".join(texts) or b"\0")
        longest = [len(field) for field in fields if isinstance(field, bytes)]
        longest += [max(map(len, field[0]), default=0) for field in fields if isinstance(field, tuple)]
        self.longest = sum(longest) + _WIDEST_NUMBER * len(numbers)
        self.start = start
        # Not of a tuple with stars: Cython 3.1.0 takes the lists themselves for what it iterates over.
        columns = [len(column) for column in numbers + choices]
        self.stop = start + min(columns) if columns else np.iinfo(np.int64).max


def _columns(columns):
    if not columns:
        return np.zeros((0, 0), np.int64)
    return np.ascontiguousarray(columns[0][None] if len(columns) == 1 else np.stack(columns))


def render(head, row, foot, first_row, rows, between=b""):
    """Yield the text of all items, in pieces that are valid until the next one is asked for.

    Item i has the rows from `first_row[i]` on, `rows[i]` of them; `between` stands between two rows. `row` is the line
    of all rows, or a function that gives a line of some rows from a wanted one on.
    """
    line = row if isinstance(row, LineForm) else None
    out = np.empty(max(_BUFFER_SIZE, head.longest, foot.longest), np.uint8)
    state = np.zeros(2, np.int64)
    between = np.frombuffer(between or b"\0", np.uint8)[: len(between)]
    while state[0] < len(rows):
        wanted = int(first_row[state[0]] + state[1] - 1)
        if line is None or (0 < state[1] <= rows[state[0]] and not line.start <= wanted < line.stop):
            line = row(max(wanted, 0))
        if len(out) < line.longest + len(between):
            out = np.empty(line.longest + len(between), np.uint8)
        length = _fill(out, state, head, line, foot, first_row, rows, between, _DIGITS)
        if length:
            yield memoryview(out)[:length]


@takes_views
def _fill(
    out: cython.uchar[::1],
    state: cython.longlong[::1],
    head: LineForm,
    row: LineForm,
    foot: LineForm,
    first_row: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    between: cython.const[cython.uchar][::1],
    digits: cython.const[cython.uchar][::1],
):
    """Fill the buffer from where `state` (item, line of the item) stands; returns the bytes written."""
    item: cython.Py_ssize_t = state[0]
    line: cython.Py_ssize_t = state[1]
    pos: cython.Py_ssize_t = 0
    new: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        while item < rows.shape[0]:
            if line == 0:
                new = _put(out, pos, item - head.start, head, digits)
            elif line <= rows[item]:
                i = first_row[item] + line - 1
                if i < row.start or i >= row.stop:
                    break
                new = pos
                if line > 1 and between.shape[0]:
                    new = _copy(out, pos, between, 0, between.shape[0])
                    if new < 0:
                        break
                new = _put(out, new, i - row.start, row, digits)
            else:
                new = _put(out, pos, item - foot.start, foot, digits)
            if new < 0:
                break
            pos = new
            line += 1
            if line == rows[item] + 2:
                line = 0
                item += 1
    state[0] = item
    state[1] = line
    return pos


@cython.cfunc
@cython.nogil
@cython.exceptval(-2, check=False)
def _put(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
    form: LineForm,
    digits: cython.const[cython.uchar][::1],
) -> cython.Py_ssize_t:
    """Write one line; returns where it ends, or -1 if there is not enough room for it."""
    field: cython.Py_ssize_t
    for field in range(form.ops.shape[0] // 2):
        op: cython.int = form.ops[2 * field]
        which: cython.Py_ssize_t = form.ops[2 * field + 1]
        if op <= _CHOICE:
            if op == _CHOICE:
                which = form.choices[which, index]
            first: cython.Py_ssize_t = form.text_first[which]
            pos = _copy(out, pos, form.text, first, form.text_first[which + 1] - first)
            if pos < 0:
                return -1
        else:
            if out.shape[0] - pos < _WIDEST_NUMBER:
                return -1
            pos = _put_number(out, pos, form.numbers[which, index], op, digits)
    return pos


@cython.cfunc
@cython.inline
@cython.nogil
@cython.boundscheck(False)
@cython.exceptval(-2, check=False)
def _copy(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    text: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy bytes; returns where they end, or -1 if there is not enough room. One check serves all bytes."""
    i: cython.Py_ssize_t
    if length < 0 or out.shape[0] - pos < length or first < 0 or text.shape[0] - first < length:
        return -1
    for i in range(length):
        out[pos + i] = text[first + i]
    return pos + length


@cython.cfunc
@cython.nogil
@cython.boundscheck(False)
@cython.exceptval(-2, check=False)
def _put_number(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    number: cython.longlong,
    op: cython.int,
    digits: cython.const[cython.uchar][::1],
) -> cython.Py_ssize_t:
    """Write a number; returns where it ends. The caller knows that there is room for the widest."""
    value: cython.ulonglong = cython.cast(cython.ulonglong, number)
    width: cython.Py_ssize_t = 1
    i: cython.Py_ssize_t
    rest: cython.ulonglong
    if not cython.compiled and number < 0:
        value = number + 2**64
    if op >= _HEX:
        rest = value >> 4
        while rest:
            width += 1
            rest >>= 4
        if op == _HEX_16:
            width = 16
        case: cython.Py_ssize_t = 16 if op == _HEX_UPPER else 0
        for i in range(width):
            out[pos + width - 1 - i] = digits[case + cython.cast(cython.Py_ssize_t, (value >> (4 * i)) & 15)]
        return pos + width
    if op == _DECIMAL and number < 0:
        out[pos] = ord("-")
        pos += 1
        value = cython.cast(cython.ulonglong, -number)
    rest = value // _TEN
    while rest:
        width += 1
        rest //= _TEN
    for i in range(width):
        out[pos + width - 1 - i] = digits[cython.cast(cython.Py_ssize_t, value % _TEN)]
        value //= _TEN
    return pos + width
