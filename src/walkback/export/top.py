"""Tables of where the weight is: the hottest functions, their callers, and the hottest places.

`self` is the weight of the stacks in which a function is innermost, `total` of those that it is in. A function that
calls itself counts once a stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

import numpy as np

from walkback.arrays import I64, U64, Numbers
from walkback.export.distinct import Distinct, leading
from walkback.export.functions import Functions
from walkback.export.names import base_name, clean, numbered
from walkback.export.profile import Profile
from walkback.text import counted, printable

_WIDEST_NAME = 80
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
class Hot:
    """A function, and what it weighs."""

    name: str
    module: str
    """As frames name their module."""
    own: int
    """Of the stacks in which it is innermost."""
    total: int
    """Of those that it is in; once a stack, even if it calls itself."""


def hottest(profile: Profile, limit: int | None = None) -> list[Hot]:
    """The functions of a profile, those with the most weight of their own first."""
    functions = _functions(profile)
    names = cast("list[tuple[str, str]]", functions.names)
    weights = weigh(functions.first, functions.stacks, functions.stack_weight, len(names))
    chosen = [number for number in weights.hottest(len(names) if limit is None else limit) if weights.total[number]]
    return [Hot(*names[number], int(weights.own[number]), int(weights.total[number])) for number in chosen]


def _functions(profile: Profile) -> Functions:
    frames = profile.frames
    return Functions.of(profile, list(zip(frames.labels(), frames.module, strict=True)))


def weigh(first: I64, stacks: Numbers, weight: U64, kinds: int) -> Weights:
    """The weights of things numbered below `kinds` that stacks are made of, innermost first."""
    sizes = np.diff(first)
    own, total = np.zeros((2, kinds), np.uint64)
    there = sizes > 0
    np.add.at(own, stacks[first[:-1][there]], weight[there])
    marks = leading(first, stacks, kinds)
    np.add.at(total, stacks[marks], np.repeat(weight, sizes)[marks])
    return Weights(own, total)


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
    functions = _functions(profile)
    names = [function_text(*cast("tuple[str, str]", name)) for name in functions.names]
    weights = weigh(functions.first, functions.stacks, functions.stack_weight, len(names))
    hottest = weights.hottest(limit)
    lines += ["", *_table("function", [names[number] for number in hottest], weights, hottest, whole)]
    lines += _callers(functions, names, hottest, whole, limit)
    return lines + _places(profile, whole, limit)


def _callers(functions: Functions, names: Sequence[str], hottest: list[int], whole: int, limit: int) -> list[str]:
    """Who calls the hottest functions."""
    # Pairs of a function and its caller; the last of each stack has none.
    stacks, last = functions.stacks, functions.first[1:][np.diff(functions.first) > 0] - 1
    called = np.ones(len(stacks), np.bool_)
    called[last] = False
    places = np.flatnonzero(called)
    wanted = np.zeros(len(names), np.bool_)
    wanted[hottest] = True
    places = places[wanted[stacks[places]]]
    pairs = Distinct()
    numbers = pairs.add_records(np.stack((stacks[places], stacks[places + 1]), axis=1))
    first = np.searchsorted(places, functions.first).astype(np.int64)
    innermost = np.searchsorted(places, functions.first[:-1])
    weight = functions.stack_weight
    own, total = np.zeros((2, len(pairs)), np.uint64)
    marks = leading(first, numbers, len(pairs))
    np.add.at(total, numbers[marks], np.repeat(weight, np.diff(first))[marks])
    there = innermost < len(places)
    there[there] = places[innermost[there]] == functions.first[:-1][there]
    np.add.at(own, numbers[innermost[there]], weight[there])
    weights = Weights(own, total)
    chosen = weights.hottest(limit)
    table = pairs.table.tolist()
    words = [f"{names[table[number][0]]}  <-  {names[table[number][1]]}" for number in chosen]
    return ["", *_table("function  <-  its caller", words, weights, chosen, whole)] if chosen else []


def _places(profile: Profile, whole: int, limit: int) -> list[str]:
    """The hottest frames: one for each address."""
    frames = profile.frames
    weight = np.zeros(len(profile.stack_first) - 1, np.uint64)
    np.add.at(weight, profile.stack, profile.weight)
    # Code in no file is told apart by its name.
    names = [None if module else symbol for module, symbol in zip(frames.module, frames.symbol, strict=True)]
    places, place_of_frame = numbered(list(zip(frames.module, frames.address.tolist(), names, strict=True)))
    example = np.zeros(len(places), np.int64)
    example[place_of_frame[::-1]] = np.arange(len(frames))[::-1]
    stacks = place_of_frame[profile.stack_frames]
    weights = weigh(profile.stack_first, stacks, weight, len(places))
    chosen = weights.hottest(limit)
    return ["", *_table("place", [_place(profile, int(example[number])) for number in chosen], weights, chosen, whole)]


def _place(profile: Profile, number: int) -> str:
    frames = profile.frames
    symbol = frames.symbol[number]
    if symbol and not frames.module[number] and not frames.address[number]:
        text = _short(symbol)
    elif symbol and frames.offset is not None:
        text = f"{_short(symbol)}+{int(frames.offset[number]):#x}"
    else:
        text = f"{_short(frames.label(number))} {int(frames.address[number]):#x}"
    if frames.file is not None and frames.line is not None and frames.file[number]:
        text += f"  {printable(clean(frames.file[number] or ''))}:{frames.line[number]}"
    elif frames.module[number]:
        text += f"  {printable(clean(base_name(frames.module[number])))}"
    return text


def function_text(label: str, module: str) -> str:
    """A function with its file, for a line of a table."""
    base = base_name(module)
    return f"{_short(label)}  {printable(clean(base))}" if base and label.strip("[]") != base else _short(label)


def _short(name: str) -> str:
    """A name that leaves room on its line for others."""
    name = printable(clean(name))
    return name if len(name) <= _WIDEST_NAME else name[: _WIDEST_NAME - 3] + "..."


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
