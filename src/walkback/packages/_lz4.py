"""A block of LZ4 to what it holds (compiled)."""

import cython


def expand(data: cython.const[cython.uchar][::1], most: cython.Py_ssize_t) -> bytes | None:
    """What a block holds, at most `most` bytes; None if the block is damaged.

    A block is a row of sequences. Each begins with a byte whose halves are two lengths, of bytes that stand behind it
    and of a repetition, and goes on in further bytes where a half is 15.
    """
    held = bytearray(most)
    out: cython.uchar[::1] = held
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(data)
    size: cython.Py_ssize_t = 0
    lengths: cython.int
    length: cython.Py_ssize_t
    back: cython.Py_ssize_t
    number: cython.Py_ssize_t
    while at < end:
        lengths = data[at]
        length, at = _length(data, at + 1, end, lengths >> 4)
        if at < 0 or length > end - at or length > most - size:
            return None
        for number in range(length):
            out[size + number] = data[at + number]
        size += length
        at += length
        if at == end:  # the last sequence repeats nothing
            return bytes(held[:size])
        if end - at < 2:
            return None
        back = data[at] | data[at + 1] << 8
        length, at = _length(data, at + 2, end, lengths & 15)
        length += 4
        if at < 0 or not 0 < back <= size or length > most - size:
            return None
        for number in range(length):  # byte by byte, because what is repeated may not be there yet
            out[size] = out[size - back]
            size += 1
    return None


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _length(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, length: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """A length that begins with half a byte, and the place behind it, -1 if it is cut off."""
    byte: cython.int = 255
    if length < 15:
        return (length, at)
    while byte == 255:
        if at >= end:
            return (0, -1)
        byte = data[at]
        at += 1
        length += byte
    return (length, at)
