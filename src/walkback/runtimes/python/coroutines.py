"""Coroutines that wait for each other: objects, each with a frame of its own, and in it the next one.

All that are equally far from their tasks are read at once, and each once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from walkback.runtimes.memory import TargetMemory, gathered
from walkback.runtimes.python.objecttypes import ObjectTypes, is_object
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.strings import word
from walkback.runtimes.python.tasklayout import (
    COROUTINES,
    OWNED_BY_GENERATOR,
    STATES,
    WRAPPERS,
    TaskLayout,
)

_CHUNK = 256
"""Bytes of a coroutine that are read at once; most have all of theirs there."""
_MOST_VALUES = 1 << 20
"""Bytes that the values of a frame have at most."""
_OBJECT = -8
"""A mask: the lowest bits of the address of an object may be used otherwise."""


class Coroutine(NamedTuple):
    """What one object has of a chain."""

    state: int | None
    """None where it is no coroutine, but leads to one or ends the chain."""
    code: int
    instruction: int
    copy: int
    awaited: int
    """The object that it awaits; 0 for none."""
    is_torn: bool = False
    """Whether it awaits an object, but which cannot be seen."""


_LAST = Coroutine(None, 0, 0, 0, 0)


class Coroutines:
    """Reads the coroutines of one process."""

    def __init__(self, build: Build, layout: TaskLayout, types: ObjectTypes, order: str) -> None:
        self._frames, self._layout, self._types, self._order = build.layout, layout, types, order
        self._states = STATES[build.version]
        frames = build.layout
        self._end = layout.coroutine_frame + max(
            frames.frame_code + 8,
            frames.frame_instruction + 8,
            frames.frame_owner + 1,
            layout.frame_stack + 8,
            frames.frame_copy + 4,
        )
        self._chunk = max(_CHUNK, self._end)

    def read(self, addresses: Iterable[int], most: int, memory: TargetMemory) -> dict[int, Coroutine | None]:
        """The objects at these addresses, and all that they await, up to `most`; None where one is broken."""
        found: dict[int, Coroutine | None] = {}
        level = list(dict.fromkeys(addresses))[:most]
        while level:
            elsewhere: dict[int, int] = {}
            for address, chunk in zip(level, gathered(level, self._chunk, memory), strict=True):
                found[address] = self._parsed(address, chunk, elsewhere, memory)
            for address, contents in zip(elsewhere, gathered(list(elsewhere.values()), 8, memory), strict=True):
                one = found[address]
                if one is not None:
                    awaited = self._checked(word(contents, 0, self._order))
                    found[address] = one._replace(awaited=awaited, is_torn=not awaited)
            following = (one.awaited for address in level if (one := found[address]) is not None and one.awaited)
            level = [address for address in dict.fromkeys(following) if address not in found][: most - len(found)]
        return found

    def _parsed(self, address: int, chunk: bytes, elsewhere: dict[int, int], memory: TargetMemory) -> Coroutine | None:
        """One object; what it awaits is `elsewhere` where the chunk does not have it."""
        frames, layout, order = self._frames, self._layout, self._order
        kind_at = word(chunk, frames.object_type, order)
        if not kind_at:
            return None
        kind = self._types.find(kind_at, memory)[1]
        if kind in WRAPPERS:
            return _LAST._replace(awaited=self._checked(word(chunk, layout.object_size, order)))
        if kind not in COROUTINES:
            return _LAST
        if len(chunk) < self._end:
            return None
        (state,) = struct.unpack_from("b", chunk, layout.coroutine_state)
        frame = layout.coroutine_frame
        if state in self._states.ended:
            return Coroutine(state, 0, 0, 0, 0)
        if chunk[frame + frames.frame_owner] != OWNED_BY_GENERATOR:
            return None
        code, instruction, end = (
            word(chunk, frame + place, order) or 0
            for place in (frames.frame_code, frames.frame_instruction, layout.frame_stack)
        )
        copy = struct.unpack_from(f"{order}I", chunk, frame + frames.frame_copy)[0] if frames.frame_copy else 0
        awaited, is_torn = 0, False
        if state in self._states.awaiting:
            place = (end & _OBJECT) - 8 * self._states.awaited
            is_near = 0 < place - address < _MOST_VALUES
            if is_near and place - address + 8 > len(chunk):
                elsewhere[address] = place
            elif is_near:
                awaited = self._checked(word(chunk, place - address, order))
            is_torn = not awaited
        return Coroutine(state, code & _OBJECT, instruction, copy, awaited, is_torn)

    @staticmethod
    def _checked(address: int | None) -> int:
        """The address of an object; 0 where none can be."""
        address = (address or 0) & _OBJECT
        return address if is_object(address) else 0
