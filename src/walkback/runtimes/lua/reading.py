"""The states of Lua that a thread runs, while it stands still.

Nothing in a process says which state a thread runs. But what calls a state has it on its stack or in a register, and a
state says where on the stack its innermost protected call is. So a word that leads to a state is believed if that state
is whole and its protected calls are on the very stack that the word is from; a coroutine has some only while it runs.
A state that is called without protection is believed if it is the only one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import distinct
from walkback.runtimes.chains import Chain, Looked, Part, RuntimeFrames, Standing, Walked
from walkback.runtimes.lua import layout
from walkback.runtimes.lua.calls import Call, Calls
from walkback.runtimes.lua.placing import add_parts
from walkback.runtimes.memory import TargetMemory, readable
from walkback.stacks.stacks import How

_LOWEST, _HIGHEST = 1 << 16, 1 << 52
"""No object is below, or above."""
_MOST_WORDS = 1 << 12
"""Words of a stack that may be states."""
_MOST_JUMPS = 1 << 10


class _State(NamedTuple):
    """A state that a thread runs."""

    address: int
    bound: int
    """All its frames are below this address on the stack."""
    calls: list[Call]
    torn: int | None
    is_protected: bool


class _Followed(NamedTuple):
    """What was read of one thread."""

    evaluator: range
    states: list[_State]
    """Innermost first."""
    registers: tuple[int, ...]

    def chain(self, known: RuntimeFrames, walked: Walked) -> Chain:
        """With names and lines, in their places on the stack."""
        parts: list[Part] = []
        torn = next((one.torn for one in self.states if one.torn is not None), None)
        below = 0
        frames = [number for number, address in enumerate(walked.lookup) if address in self.evaluator]
        for number, state in enumerate(self.states):
            its = [frame for frame in frames if below < walked.sp[frame] <= state.bound]
            is_fit = add_parts(
                *(state.calls, its, state.bound, walked, self.registers, parts, known), is_innermost=not number
            )
            if not is_fit and state.is_protected:
                torn = torn or state.address
            below = state.bound
        return Chain(How.LUA, parts, torn)


class LuaRuntime:
    """One Lua in one process."""

    is_foreseeable = False
    """Its states are found by what the stack of a thread has."""

    def __init__(self, known: layout.Layout, evaluator: range, byteorder: ByteOrder, *, limit: int = 1024) -> None:
        """`evaluator` is its code; at most `limit` calls of a state are followed."""
        self._layout, self._evaluator = known, evaluator
        self._calls = Calls(byteorder, limit)
        self._order = "<" if byteorder == "little" else ">"
        self._head = struct.Struct(f"{self._order}{layout.STATE}{known.state_jump - layout.STATE_SIZE}xQ")

    def prepare(self, _: TargetMemory) -> None:
        """Nothing: states are found by the stacks of threads."""

    def is_entering(self, _: int) -> bool:
        """Never: where an evaluator has not begun yet is seen when its frames are counted."""
        return False

    def look(
        self, _: int, memory: TargetMemory, standing: Callable[[], Standing] | None, __: TargetMemory | None = None
    ) -> Looked | None:
        """What a thread that stands still runs; None for one that runs no Lua."""
        if standing is None:
            return None
        here = standing()
        states = [
            _State(state, bound, *self._calls.follow(newest, state + self._layout.state_base, memory), is_protected)
            for bound, state, newest, is_protected in sorted(self._running(here, memory))
        ]
        # A state that is being made, or was thrown away, is none.
        states = [one for one in states if one.is_protected or one.torn is None]
        self._calls.forget()
        return _Followed(self._evaluator, states, here.registers) if states else None

    def _running(self, here: Standing, memory: TargetMemory) -> Iterator[tuple[int, int, int, bool]]:
        """The states that the thread runs: below which address it has their frames, where each is, its newest call.

        The last of each is whether it is protected.
        """
        alone: list[tuple[int, int, int, bool]] = []
        for address, head in readable(self._words(here), self._head.size, memory):
            kind, status, shared, newest, jump = self._head.unpack(head)
            inside = here.start <= jump < here.end
            if kind != layout.THREAD or (jump and not inside) or not self._is_whole(address, shared, memory):
                continue
            if inside:
                bound = self._outermost(jump, here, memory)
                if bound is not None:
                    yield bound, address, newest, True
            elif not status and newest and newest != address + self._layout.state_base:
                alone.append((here.end, address, newest, False))
        if len(alone) == 1:
            yield alone[0]

    def _words(self, here: Standing) -> list[int]:
        """What of a thread's registers and stack may be the address of a state."""
        skipped = -here.start % 8
        count = max(len(here.stack) - skipped, 0) // 8
        stack = np.frombuffer(here.stack, f"{self._order}u8", count, skipped if count else 0)
        words = np.concatenate([np.array(here.registers, np.uint64), stack.astype(np.uint64)])
        words = words[(words >= _LOWEST) & (words < _HIGHEST) & (words & np.uint64(7) == 0)]
        found: list[int] = distinct(words[(words < here.start) | (words >= here.end)])[:_MOST_WORDS].tolist()
        return found

    def _is_whole(self, state: int, shared: int, memory: TargetMemory) -> bool:
        """Whether a state has something in common with the first one, as both say."""
        first = self._word(shared + layout.GLOBAL_FIRST, memory)
        if first == state:
            return True
        head = memory.read(first, self._head.size) if first else b""
        if len(head) < self._head.size:
            return False
        kind, _, theirs, *_ = self._head.unpack(head)
        return bool(kind == layout.THREAD and theirs == shared)

    def _outermost(self, jump: int, here: Standing, memory: TargetMemory) -> int | None:
        """The outermost protected call of a state; None if they are not one further out than the other."""
        for _ in range(_MOST_JUMPS):
            outer = self._word(jump + layout.JUMP_PREVIOUS, memory)
            if not outer:
                return jump
            if not jump < outer < here.end:
                return None
            jump = outer
        return None

    def _word(self, address: int, memory: TargetMemory) -> int:
        contents = memory.read(address, 8)
        return int(struct.unpack(f"{self._order}Q", contents)[0]) if len(contents) == 8 else 0
