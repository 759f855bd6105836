"""Coroutines that wait for each other: objects, each with a frame of its own, and in it the next one.

All that are equally far from their tasks are read at once, and each once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, U64, Bools, distinct
from walkback.runtimes.bulk import Objects, read_objects
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.objecttypes import ObjectTypes, are_objects
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.tasklayout import COROUTINES, OWNED_BY_GENERATOR, STATES, WRAPPERS, TaskLayout

_CHUNK = 256
"""Bytes of a coroutine that are read at once; most have all of theirs there."""
_MOST_VALUES = 1 << 20
"""Bytes that the values of a frame have at most."""
_OBJECT = np.uint64(2**64 - 8)
"""A mask: the lowest bits of the address of an object may be used otherwise."""

_AT_ONCE = 1 << 12
"""How many objects become one array."""
_NOTHING, _COROUTINE, _WRAPPER, _OTHER = range(4)

NO_COROUTINE, BROKEN = 100, 101
"""States of other objects, which lead to coroutines or end the chain, and of what is no object."""


class Coroutine(NamedTuple):
    """What one object has of a chain."""

    state: int
    code: int
    instruction: int
    copy: int
    awaited: int
    """The object that it awaits; 0 for none."""
    is_torn: bool
    """Whether it awaits an object that cannot be seen."""


class _Level(NamedTuple):
    """The objects that are equally far from their tasks, a column for each field of `Coroutine`."""

    address: list[int]
    state: I64
    code: U64
    instruction: U64
    copy: U64
    awaited: U64
    is_torn: Bools


class ReadCoroutines:
    """What was read, by address."""

    def __init__(self, levels: list[_Level]) -> None:
        self._levels = levels
        self._found: dict[int, Coroutine] | None = None

    def __len__(self) -> int:
        return sum(len(level.address) for level in self._levels)

    def find(self, address: int) -> Coroutine | None:
        """The object at an address; None if it was not read."""
        if self._found is None:
            self._found = {}
            for level in self._levels:
                columns = (column.tolist() for column in level[1:])
                self._found.update(zip(level.address, map(Coroutine._make, zip(*columns, strict=True)), strict=True))
        return self._found.get(address)

    def codes(self) -> set[tuple[int, int]]:
        """The code objects, each with the number of the copy of its instructions."""
        pairs = {pair for level in self._levels for pair in zip(level.code.tolist(), level.copy.tolist(), strict=True)}
        return {pair for pair in pairs if pair[0]}


class Coroutines:
    """Reads the coroutines of one process."""

    def __init__(
        self, build: Build, layout: TaskLayout, types: ObjectTypes, byteorder: ByteOrder, deepest: int
    ) -> None:
        """At most `deepest` that await each other are followed."""
        self._frames, self._layout, self._types = build.layout, layout, types
        self._byteorder, self._deepest = byteorder, deepest
        self._states = STATES[build.version]
        frames = build.layout
        ends = (frames.frame_code, frames.frame_instruction, frames.frame_owner, layout.frame_stack, frames.frame_copy)
        self._end = layout.coroutine_frame + max(ends) + 8
        others = (layout.coroutine_state, layout.object_size, frames.object_type)
        self._chunk = max(_CHUNK, self._end, max(others) + 8)

    def read(self, addresses: Iterable[int], most: int, memory: TargetMemory) -> ReadCoroutines:
        """The objects at these addresses, and all that they await, up to `most`."""
        levels: list[_Level] = []
        seen: set[int] = set()
        following = list(dict.fromkeys(addresses))
        for _ in range(self._deepest):
            following = following[: most - len(seen)]
            if not following:
                break
            seen.update(following)
            new = [self._level(following[at : at + _AT_ONCE], memory) for at in range(0, len(following), _AT_ONCE)]
            levels += new
            awaited = distinct(np.concatenate([level.awaited for level in new])).tolist()
            following = [address for address in awaited if address and address not in seen]
        return ReadCoroutines(levels)

    def _level(self, addresses: list[int], memory: TargetMemory) -> _Level:
        frames, layout, states = self._frames, self._layout, self._states
        objects = read_objects(addresses, self._chunk, memory, self._byteorder)
        kinds = self._kinds(objects, memory)
        frame = layout.coroutine_frame
        state = objects.bytes(layout.coroutine_state).astype(np.int8).astype(np.int64)
        code, instruction, end = (
            objects.words(frame + place) for place in (frames.frame_code, frames.frame_instruction, layout.frame_stack)
        )
        copy = objects.words(frame + frames.frame_copy, 4) if frames.frame_copy else np.zeros_like(code)
        is_owned = objects.bytes(frame + frames.frame_owner) == OWNED_BY_GENERATOR
        has_ended = _are_any(state, states.ended)
        is_coroutine = (kinds == _COROUTINE) & (objects.sizes >= self._end) & (is_owned | has_ended)
        has_frame = is_coroutine & ~has_ended
        awaits = has_frame & _are_any(state, states.awaiting)
        awaited = self._awaited(np.array(addresses, np.uint64), end, awaits, objects, memory)
        wraps = kinds == _WRAPPER
        awaited[wraps] = objects.words(layout.object_size)[wraps] & _OBJECT
        awaited[~are_objects(awaited)] = 0
        state[~is_coroutine] = np.where(kinds[~is_coroutine] == _COROUTINE, BROKEN, NO_COROUTINE)
        state[kinds == _NOTHING] = BROKEN
        for column in (code, instruction, copy):
            column[~has_frame] = 0
        return _Level(addresses, state, code & _OBJECT, instruction, copy, awaited, awaits & (awaited == 0))

    def _awaited(self, addresses: U64, end: U64, awaits: Bools, objects: Objects, memory: TargetMemory) -> U64:
        """What coroutines await: one of the last values on the stack of each."""
        found = np.zeros(len(addresses), np.uint64)
        away = (end & _OBJECT) - np.uint64(8 * self._states.awaited) - addresses
        awaits = awaits & (away > 0) & (away < _MOST_VALUES)
        is_near = awaits & (away + np.uint64(8) <= objects.sizes.astype(np.uint64))
        rows = np.flatnonzero(is_near)
        columns = away[rows, None].astype(np.int64) + np.arange(8)
        words = objects.rows[rows[:, None], columns]
        found[rows] = np.ascontiguousarray(words).view(np.dtype("u8").newbyteorder(self._byteorder)).ravel()
        far = np.flatnonzero(awaits & ~is_near)
        if len(far):
            places = (addresses[far] + away[far]).tolist()
            found[far] = read_objects(places, 8, memory, self._byteorder).words(0)
        return found & _OBJECT

    def _kinds(self, objects: Objects, memory: TargetMemory) -> I64:
        """Which of these are coroutines, or lead to them."""
        its = objects.words(self._frames.object_type)
        types = distinct(its)
        kinds = np.array([self._kind(one, memory) for one in types.tolist()], np.int64)
        return kinds[np.searchsorted(types, its)]

    def _kind(self, address: int, memory: TargetMemory) -> int:
        if not address:
            return _NOTHING
        name = self._types.find(address, memory)[1]
        return _COROUTINE if name in COROUTINES else _WRAPPER if name in WRAPPERS else _OTHER


def _are_any(states: I64, wanted: tuple[int, ...]) -> Bools:
    """Which states are among a few."""
    found = np.zeros(len(states), np.bool_)
    for one in wanted:
        found |= states == one
    return found
