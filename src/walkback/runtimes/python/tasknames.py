"""Names of tasks: text, or a number where nobody has asked for the name yet.

Their objects are copied while the threads stand still, and read afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.runtimes.bulk import Objects, read_objects
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.objecttypes import ObjectTypes
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.strings import Strings, word
from walkback.runtimes.python.tasklayout import DIGIT_BITS, IS_NUMBER, IS_STRING, SIZE_SHIFT, TaskLayout

_COPIED = 256
"""Bytes of each that are copied at once."""
_SURELY_COPIED = 48
"""A text of as many characters is then copied, whichever they are."""
_MOST_DIGITS = 3


class ReadNames:
    """The names that were copied."""

    def __init__(
        self, names: Names, addresses: list[int], objects: Objects, flags: dict[int, int], long: dict[int, str | None]
    ) -> None:
        self._names, self._objects, self._flags, self._long = names, objects, flags, long
        self._rows = {address: row for row, address in enumerate(addresses)}

    def find(self, address: int) -> str | None:
        """The name at an address; None if there is none."""
        if address in self._long:
            return self._long[address]
        row = self._rows.get(address)
        if row is None:
            return None
        head = self._objects.rows[row, : self._objects.sizes[row]].tobytes()
        return self._names.decoded(address, head, self._flags)


class _Nowhere:
    """No more memory."""

    def read(self, _address: int, _size: int) -> bytes:
        """Nothing."""
        return b""

    def gather(self, _addresses: object, _size: int) -> bytes:
        """Nothing."""
        return b""


class Names:
    """Reads the names of tasks of one process."""

    def __init__(
        self, build: Build, layout: TaskLayout, types: ObjectTypes, strings: Strings, byteorder: ByteOrder
    ) -> None:
        self._frames, self._layout, self._types, self._strings = build.layout, layout, types, strings
        self._byteorder = byteorder
        self._order = ">" if byteorder == "big" else "<"

    def read(self, addresses: Iterable[int], memory: TargetMemory) -> ReadNames:
        """Copy the names at these addresses."""
        several = [one for one in dict.fromkeys(addresses) if one]
        objects = read_objects(several, _COPIED, memory, self._byteorder)
        types = dict.fromkeys(objects.words(self._frames.object_type).tolist())
        flags = {one: self._types.find(one, memory)[0] for one in types if one}
        long: dict[int, str | None] = {}
        lengths = objects.words(self._frames.string_length)
        for row in np.flatnonzero(lengths > _SURELY_COPIED).tolist():
            head = objects.rows[row, : objects.sizes[row]].tobytes()
            long[several[row]] = self.decoded(several[row], head, flags, memory)
        return ReadNames(self, several, objects, flags, long)

    def decoded(
        self, address: int, head: bytes, flags: dict[int, int], memory: TargetMemory | None = None
    ) -> str | None:
        """The name that begins so."""
        its = flags.get(word(head, self._frames.object_type, self._order) or 0, 0)
        if its & IS_NUMBER:
            number = self._number(head)
            return f"Task-{number}" if number is not None else None
        return self._strings.read(address, memory or _Nowhere(), head) if its & IS_STRING else None

    def _number(self, head: bytes) -> int | None:
        tag = word(head, self._layout.number_tag, self._order)
        if tag is None or not 0 < tag >> SIZE_SHIFT <= _MOST_DIGITS:
            return None
        begin, count = self._layout.number_digits, tag >> SIZE_SHIFT
        digits: list[int] = np.frombuffer(
            head[begin : begin + 4 * count].ljust(4 * count, b"\0"), f"{self._order}u4"
        ).tolist()
        return sum(digit << DIGIT_BITS * place for place, digit in enumerate(digits))
