"""Tables of where the weight is: the hottest functions, their callers, and the hottest places.

`self` is the weight of the stacks in which a function is innermost, `total` of those that it is in. A function that
calls itself counts once a stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from walkback.base.arrays import I64, U64, Numbers, marked, numbered, sums
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError
from walkback.base.text import base_name, clean, counted, printable
from walkback.stacks.distinct import Distinct
from walkback.stacks.functions import FunctionStacks, functions_of, once_a_stack
from walkback.stacks.profile import Profile

_WIDEST_NAME = 80
_END = 30
"""Letters of a longer name that are kept at its end."""
_SHARE_WIDTH = 6


@dataclass(frozen=True, slots=True)
class Weights:
    """What each of some things weighs."""

    own: U64
    total: U64

    def hottest(self, limit: int) -> list[int]:
        """Those with the most weight of their own; where that is equal the most in all, then the first."""
        order = np.lexsort((np.arange(len(self.own)), np.invert(self.total), np.invert(self.own)))
        found: list[int] = order[:limit].tolist()
        return found


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A function, and what it weighs."""

    name: str
    """The function."""
    module: str
    """Its file."""
    own: int
    """The weight of the stacks in which it is innermost."""
    total: int
    """The weight of those that it is in; once a stack, even if it calls itself."""


def hottest(profile: Profile, limit: int | None = None) -> list[HotFunction]:
    """The functions of a profile, those with the most weight of their own first.

    >>> walkback.stacks.hottest(walkback.unwind("perf.data"), 1)
    [HotFunction(name='compute', module='.../hello', own=5, total=5)]
    """
    if limit is not None and limit < 0:
        raise ArgumentError(f"a limit is zero or more, and not {limit}")
    functions = functions_of(profile)
    names = functions.names
    weights = weigh(functions.first, functions.stacks, functions.stack_weight, len(names))
    chosen = [number for number in weights.hottest(len(names) if limit is None else limit) if weights.total[number]]
    return [HotFunction(*names[number], int(weights.own[number]), int(weights.total[number])) for number in chosen]


def weigh(first: I64, stacks: Numbers, weight: U64, kinds: int) -> Weights:
    """The weights of things numbered below `kinds` that stacks are made of, innermost first."""
    some = np.diff(first) > 0
    own = sums(stacks[first[:-1][some]], weight[some], kinds)
    return Weights(own, once_a_stack(first, stacks, weight, kinds))


def write(profile: Profile, out: BinaryIO, *, limit: int = 30) -> None:
    """Write the tables as aligned text; each has at most `limit` lines."""
    whole = int(profile.weight.sum())
    out.writelines(line.encode("utf-8", "replace") + b"\n" for line in _lines(profile, whole, limit))


def _lines(profile: Profile, whole: int, limit: int) -> list[str]:
    samples, lost = int(profile.count.sum()), int(profile.count[profile.incomplete].sum())
    about = counted(samples, "sample")
    if profile.unit != "samples":
        about += f", {whole} {printable(profile.unit)}"
    if lost:
        about += f", {lost} with incomplete stacks ({_share(lost, samples)} %)"
    lines = [f"{printable(profile.title)}: {about}" if profile.title else about]
    functions = functions_of(profile)
    names = [function_text(*name) for name in functions.names]
    weights = weigh(functions.first, functions.stacks, functions.stack_weight, len(names))
    hottest = weights.hottest(limit)
    lines += ["", *_table("function", [names[number] for number in hottest], weights, hottest, whole)]
    lines += _callers(functions, names, hottest, whole, limit)
    return lines + _places(profile, whole, limit)


def _callers(
    functions: FunctionStacks[tuple[str, str]], names: Sequence[str], hottest: list[int], whole: int, limit: int
) -> list[str]:
    """Who calls the hottest functions."""
    stacks, places = functions.stacks, functions.callees
    places = places[marked(np.array(hottest, np.int64), len(names))[stacks[places]]]
    pairs = Distinct()
    numbers = pairs.add_records(np.stack((stacks[places], stacks[places + 1]), axis=1))
    first = np.searchsorted(places, functions.first).astype(np.int64)
    weight = functions.stack_weight
    innermost = np.isin(places, functions.first[:-1])
    of_stack = np.repeat(weight, np.diff(first))
    own = sums(numbers[innermost], of_stack[innermost], len(pairs))
    weights = Weights(own, once_a_stack(first, numbers, weight, len(pairs)))
    chosen = weights.hottest(limit)
    table = pairs.table.tolist()
    words = [f"{names[table[number][0]]}  <-  {names[table[number][1]]}" for number in chosen]
    return ["", *_table("function  <-  its caller", words, weights, chosen, whole)] if chosen else []


def _places(profile: Profile, whole: int, limit: int) -> list[str]:
    """The hottest frames: one for each address."""
    frames = profile.frames
    weight = sums(profile.stack, profile.weight, len(profile.stack_first) - 1)
    # Code in no file is distinguished by its name.
    names = [None if module else symbol for module, symbol in zip(frames.module, frames.symbol, strict=True)]
    places, place_of_frame = numbered(list(zip(frames.module, frames.address.tolist(), names, strict=True)))
    example = np.zeros(len(places), np.int64)
    example[place_of_frame[::-1]] = np.arange(len(frames))[::-1]
    stacks = place_of_frame[profile.stack_frames]
    weights = weigh(profile.stack_first, stacks, weight, len(places))
    chosen = weights.hottest(limit)
    return ["", *_table("place", [_place(profile, int(example[number])) for number in chosen], weights, chosen, whole)]


def _place(profile: Profile, number: int) -> str:
    """A frame of code by its function, and the line and the innermost of the calls that are inlined there."""
    frames = profile.frames
    innermost = number
    while innermost + 1 < len(frames) and frames.is_inlined[innermost + 1]:
        innermost += 1
    symbol = frames.symbol[number]
    if symbol and not frames.module[number] and not frames.address[number]:
        text = _short(symbol)
    elif symbol and frames.offset is not None:
        text = f"{_short(symbol)}+{int(frames.offset[number]):#x}"
    else:
        text = f"{_short(frames.label(number))} {int(frames.address[number]):#x}"
    if innermost != number:
        text = f"{_short(frames.label(innermost))}, inlined in {text}"
    if frames.file is not None and frames.line is not None and frames.file[innermost]:
        text += f"  {printable(clean(frames.file[innermost] or ''))}:{frames.line[innermost]}"
    elif frames.module[number]:
        text += f"  {printable(clean(base_name(frames.module[number])))}"
    return text


def function_text(label: str, module: str) -> str:
    """A function with its file, for a line of a table."""
    base = base_name(module)
    return f"{_short(label)}  {printable(clean(base))}" if base and label.strip("[]") != base else _short(label)


def _short(name: str) -> str:
    """A name that leaves room on its line for others: both ends, as the method is the last word of many."""
    name = printable(clean(name))
    return name if len(name) <= _WIDEST_NAME else f"{name[: _WIDEST_NAME - _END - 3]}...{name[-_END:]}"


def _table(title: str, names: list[str], weights: Weights, chosen: list[int], whole: int) -> list[str]:
    width = max(len(str(whole)), 5)
    share = f"{'%':>{_SHARE_WIDTH}}"
    lines = [f"{'self':>{width}} {share}  {'total':>{width}} {share}  {title}"]
    for name, number in zip(names, chosen, strict=True):
        cells = [
            f"{value:>{width}} {_share(value, whole):>{_SHARE_WIDTH}}"
            for value in (int(weights.own[number]), int(weights.total[number]))
        ]
        lines.append(f"{cells[0]}  {cells[1]}  {name}")
    return lines


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "-"
