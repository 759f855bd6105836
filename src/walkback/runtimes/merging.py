"""Stacks in which the functions that an evaluator runs stand in its place.

A part of a chain says an address on the stack, and each frame where it begins there: so the frame that has the address
is that of the part's evaluator, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from walkback.runtimes.chains import Chain
from walkback.stacks.stacks import End, Stacks

_DEEPEST = 1 << 26
"""How far behind the last known frame the stack may go on."""
_NATIVE = -1


class _Row(NamedTuple):
    """A frame of the merged stacks."""

    source: int
    """The frame that it stands for, or that of its evaluator."""
    number: int = _NATIVE
    """Of the frame of the chain."""
    how: int = 0


def merged(
    stacks: Stacks,
    chains: Sequence[Sequence[Chain]],
    is_handler: Callable[[int, int], bool],
    is_trampoline: Callable[[int], bool],
    *,
    evaluators: bool = False,
) -> Stacks:
    """The stacks with the chains of each; with `evaluators` the frames of evaluators stay behind those that they run.

    `is_handler` says of a frame, by module and address, whether it belongs to an evaluator that it was called by, and
    `is_trampoline`, by module, whether it only calls the evaluator for one of the functions. The frames of chains have
    their numbers in the place of addresses.
    """
    if not any(chains):
        return stacks
    rows: list[_Row] = []
    first = [0]
    end, at = stacks.end.copy(), stacks.at.copy()
    for number, ours in enumerate(chains):
        begin, last = (int(stacks.first[number + i]) for i in (0, 1))
        rows += _merged(stacks, begin, last, ours, is_handler, is_trampoline, evaluators=evaluators)
        first.append(len(rows))
        torn = next(((one.torn, one.has_more) for one in ours if one.torn is not None), None)
        if torn is not None and end[number] == End.COMPLETE:
            at[number], has_more = torn
            end[number] = End.LIMIT if has_more else End.TORN
    source, kept, how = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    native = kept == _NATIVE
    return Stacks(
        first=np.array(first, np.int64),
        pc=stacks.pc[source],
        kind=stacks.kind[source],
        how=np.where(native, stacks.how[source], how).astype(np.uint8),
        module=np.where(native, stacks.module[source], np.int32(-1)),
        address=np.where(native, stacks.address[source], kept.astype(np.uint64)),
        sp=stacks.sp[source],
        end=end,
        at=at,
    )


def _merged(
    stacks: Stacks,
    begin: int,
    last: int,
    chains: Sequence[Chain],
    is_handler: Callable[[int, int], bool],
    is_trampoline: Callable[[int], bool],
    *,
    evaluators: bool,
) -> list[_Row]:
    """One stack, whose frames are those from `begin` up to `last`."""
    placed = _placed(stacks.sp[begin:last].tolist(), chains)
    rows: list[_Row] = []
    for frame in range(begin, last):
        ours = placed.get(frame - begin)
        if ours is None:
            has_callee = not evaluators and frame - 1 - begin in placed
            if not (has_callee and stacks.module[frame] >= 0 and is_trampoline(int(stacks.module[frame]))):
                rows.append(_Row(frame))
            continue
        while not evaluators and rows and rows[-1].number == _NATIVE and rows[-1].source >= begin:
            inner = rows[-1].source
            if stacks.module[inner] < 0 or not is_handler(int(stacks.module[inner]), int(stacks.address[inner])):
                break
            rows.pop()
        rows += (_Row(frame, number, how) for number, how in ours)
        if evaluators:
            rows.append(_Row(frame))
    # The stack could not be followed so far.
    if last > begin:
        rows += (_Row(last - 1, number, how) for number, how in placed.get(last - begin, ()))
    return rows


def _placed(sp: list[int], chains: Sequence[Chain]) -> dict[int, list[tuple[int, int]]]:
    """For each frame that is an evaluator's the frames that it runs, and their `How`; behind the last those beyond."""
    placed: dict[int, list[tuple[int, int]]] = {}
    parts = sorted((part.at, chain.how, part.frames) for chain in chains for part in chain.parts if part.frames)
    for at, how, frames in parts:
        place = next((i for i in range(len(sp) - 1) if sp[i] and sp[i] <= at < sp[i + 1]), None)
        if place is None and sp and sp[-1] and 0 <= at - sp[-1] < _DEEPEST:
            place = len(sp)
        if place is not None:
            placed.setdefault(place, []).extend((number, how) for number in frames)
    return placed
