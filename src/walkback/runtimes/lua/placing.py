"""Where the functions of a state belong among the native frames of its thread.

The calls that one evaluator makes are a part; each part belongs to one frame of the evaluator, and both are counted
from the inside. After a coroutine was resumed one evaluator goes on with what several had begun, so that parts are left
over: they belong to the outermost one.
"""

from __future__ import annotations

from walkback.runtimes.chains import Part, RuntimeFrame, RuntimeFrames, Walked
from walkback.runtimes.lua.calls import Call


def add_parts(
    calls: list[Call],
    evaluators: list[int],
    bound: int,
    walked: Walked,
    registers: tuple[int, ...],
    parts: list[Part],
    known: RuntimeFrames,
    *,
    is_innermost: bool,
) -> bool:
    """Add the parts of a state, and say whether they fit its evaluators.

    `evaluators` are the numbers of their frames, innermost first; below `bound` the state has its frames on the stack.
    Of the innermost state an evaluator may be about to begin, or about to return.
    """
    groups = _groups(calls)
    if is_innermost and len(groups) == len(evaluators) + 1 and len(groups[0]) == 1 and groups[0][0].place < 0:
        groups = groups[1:]
    elif is_innermost and len(evaluators) == len(groups) + 1:
        evaluators = evaluators[1:]
    if len(evaluators) > len(groups):
        return False
    is_cut = not walked.sp or walked.sp[-1] < bound
    if not evaluators and not is_cut:
        # A coroutine that goes on has no evaluator at first.
        return is_innermost or not groups
    placed: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        place = number if is_cut else min(number, len(evaluators) - 1)
        frame = evaluators[place] if place < len(evaluators) else None
        its = registers if frame == 0 and not number else ()
        frames = [known.add(_frame(call, () if inner else its)) for inner, call in enumerate(group)]
        placed.setdefault(bound if frame is None else walked.sp[frame], []).extend(frames)
    parts += (Part(at, frames) for at, frames in placed.items())
    return True


def _groups(calls: list[Call]) -> list[list[Call]]:
    """The functions of Lua that each evaluator runs."""
    groups: list[list[Call]] = [[]]
    for call in calls:
        if call.function is not None:
            groups[-1].append(call)
            if call.is_first:
                groups.append([])
    return [group for group in groups if group]


def _frame(call: Call, registers: tuple[int, ...]) -> RuntimeFrame:
    """A function at its line; where the thread is in its evaluator a register says more than what was kept."""
    function, place = call.function, call.place
    assert function is not None
    now = {function.place(one) for one in registers if function.has(one)}
    if len(now) == 1:
        place = now.pop()
    return RuntimeFrame(call.name or function.symbol, function.file, function.line(max(place, 0)))
