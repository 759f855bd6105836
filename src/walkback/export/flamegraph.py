"""A flame graph as one HTML file, which needs nothing else and no network.

The prefix tree of all stacks is in it once, a level after the other; the scripts beside this module draw what is seen
of it. Each name is in it once too, as JSON in which nothing can end a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, BinaryIO

import numpy as np

from walkback.base.arrays import I64, Numbers, distinct, numbered
from walkback.base.dataclass import dataclass
from walkback.base.text import base_name, clean, printable
from walkback.pages.page import plain_data, write_page
from walkback.stacks.changes import whole_functions
from walkback.stacks.functions import FunctionStacks
from walkback.stacks.profile import NamedFrames, Profile
from walkback.stacks.tree import PrefixTree

_FUNCTION, _KERNEL, _NAMELESS, _INCOMPLETE, _PROGRAM, _INLINED = range(6)
"""What a name is of; the script colours by it."""
_ROOT = "all"
_REST = "[many that weigh little]"


def write(profile: Profile, out: BinaryIO) -> None:
    """Write a page; stacks that are not complete end in a frame that says so."""
    _write_page(profile.title, flame_graph(profile), out)


def write_difference(before: Profile, after: Profile, out: BinaryIO, *, title: str = "", clones: bool = False) -> None:
    """Write a page with two profiles: widths are those of one, colours show what has more and less of the whole.

    >>> import io
    >>> profile, page = walkback.unwind("perf.data"), io.BytesIO()
    >>> walkback.export.write_difference(profile, profile, page, title="Twice the same")
    >>> page.getvalue()[:15]
    b'<!DOCTYPE html>'
    """
    _write_page(title, flame_graph_of_difference(before, after, clones=clones), out)


@dataclass(frozen=True, slots=True)
class FlameGraph:
    """What a page shows."""

    about: str
    data: dict[str, Any]
    """What `flamegraph.js` draws, for `plain_data`: `FlameData` in `types.d.ts`."""

    @property
    def is_whole(self) -> bool:
        """Whether every frame has a place of its own in it."""
        return _REST not in self.data["names"]


def flame_graph(profile: Profile, *, most: int | None = None) -> FlameGraph:
    """The graph of a profile; if it has more than `most` frames, those that weigh least are drawn together."""
    marked = profile.marked()
    return FlameGraph(_about(profile), _data(marked, _names(profile, marked, inlined=True), most=most))


def flame_graph_of_difference(
    before: Profile, after: Profile, *, clones: bool = False, most: int | None = None
) -> FlameGraph:
    """The graph of two profiles."""
    sides = [before, after] if clones else [whole_functions(before), whole_functions(after)]
    marked = [profile.marked() for profile in sides]
    names = [name for one, its in zip(sides, marked, strict=True) for name in _names(one, its)]
    joined = _same_comm(_joined(*marked), before, after)
    old = joined.weight.copy()
    old[len(before.weight) :] = 0
    data = _data(replace(joined, weight=joined.weight - old), names, replace(joined, weight=old), most)
    return FlameGraph(f"before: {_about(before)}; after: {_about(after)}", data)


def _write_page(title: str, graph: FlameGraph, out: BinaryIO) -> None:
    write_page(
        out,
        __package__,
        "flamegraph.html",
        title=printable(clean(title)) or "Flame graph",
        styles=["export/flamegraph.css"],
        script="export/flamegraph_page.js",
        data={"ABOUT": escape(graph.about), "DATA": plain_data(graph.data)},
    )


def _about(profile: Profile) -> str:
    samples, lost = int(profile.count.sum()), int(profile.count[profile.incomplete].sum())
    words = [f"{samples:,} sample{'' if samples == 1 else 's'}"]
    if profile.unit == "nanoseconds":
        words.append(_duration(int(profile.weight.sum())))
    elif profile.unit != "samples":
        words.append(f"{int(profile.weight.sum()):,} {clean(profile.unit)}")
    stacks = len(distinct(profile.stack))
    words.append(f"{stacks:,} distinct stack{'' if stacks == 1 else 's'}")
    if lost:
        words.append(f"{lost:,} incomplete ({100 * lost / samples:.2f} %)")
    return " \u00b7 ".join(words)


def _duration(nanoseconds: int) -> str:
    for size, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "\u00b5s")):
        if nanoseconds >= size:
            return f"{nanoseconds / size:,.3f} {unit}"
    return f"{nanoseconds} ns"


def _joined(one: Profile, other: Profile) -> Profile:
    """The rows of two profiles, one after the other; frames and stacks that are equal stay apart."""
    frames = NamedFrames(
        [*one.frames.symbol, *other.frames.symbol],
        [*one.frames.module, *other.frames.module],
        np.concatenate((one.frames.address, other.frames.address)),
        np.concatenate((one.frames.kernel, other.frames.kernel)),
    )
    return Profile(
        frames,
        np.concatenate((one.stack_first, other.stack_first[1:] + len(one.stack_frames))),
        np.concatenate((one.stack_frames, other.stack_frames + len(one.frames))),
        [*one.comms, *other.comms],
        np.concatenate((one.comm, other.comm + len(one.comms))),
        np.concatenate((one.stack, other.stack + len(one.stack_first) - 1)),
        np.concatenate((one.end, other.end)),
        np.concatenate((one.weight, other.weight)),
        np.concatenate((one.count, other.count)),
        unit=one.unit if one.unit == other.unit else "weight",
    )


def _same_comm(joined: Profile, before: Profile, after: Profile) -> Profile:
    """If one comm is compared with another, both are one: else everything would be gone and something else there."""
    (old, new) = (distinct(profile.comm).tolist() for profile in (before, after))
    if len(old) != 1 or len(new) != 1 or before.comms[old[0]] == after.comms[new[0]]:
        return joined
    return replace(
        joined,
        comms=[f"{before.comms[old[0]]} \u2192 {after.comms[new[0]]}"],
        comm=np.zeros(len(joined.comm), np.int64),
    )


def _data(
    profile: Profile,
    frame_names: Sequence[tuple[str, str, int]],
    before: Profile | None = None,
    most: int | None = None,
) -> dict[str, Any]:
    """The names, and the tree; `before` is the same profile with other weights."""
    functions = FunctionStacks.of(profile, frame_names)
    names = [(_ROOT, "", _FUNCTION), *functions.names]
    names += [(clean(str(comm)) or "[unknown]", "", _PROGRAM) for comm in functions.comms]
    # Names count from 1, and comms after all names.
    tree = PrefixTree.of(functions.first, functions.stacks + 1)
    tree = tree.divided(functions.stack, functions.comm, len(functions.comms), 1 + len(functions.names))
    # What is merged by name does not depend on weights, so the rows of both sides are the same.
    was = None if before is None else FunctionStacks.of(before, frame_names).weight
    if most is not None and len(tree) > most:
        names.append((_REST, "", _NAMELESS))
        tree = tree.heaviest(functions.weight if was is None else functions.weight + was, most, len(names) - 1)
    by_text = sorted(range(len(names)), key=lambda number: names[number][:2])
    rank = np.empty(len(names), np.int64)
    rank[by_text] = np.arange(len(names))
    order = _in_order(tree, rank)
    modules, module_of = numbered([module for _, module, _ in names])
    data: dict[str, Any] = {
        "unit": clean(profile.unit),
        "names": [name for name, _, _ in names],
        "modules": modules,
        "module": module_of,
        "kind": [kind for _, _, kind in names],
        "first": _after_0(tree.depth_first + 1),
        "children": np.bincount(tree.parent + 1, minlength=len(tree) + 1)[_after_0(order + 1)],
        "name": _after_0(tree.frame[order]),
        "own": _after_0(tree.self_weight(functions.weight)[order]),
    }
    if was is not None:
        data["before"] = _after_0(tree.self_weight(was)[order])
    return data


def _after_0(column: Numbers) -> Numbers:
    """A column of the nodes as one of the root, too."""
    return np.concatenate((np.zeros(1, column.dtype), column))


def _names(profile: Profile, marked: Profile, *, inlined: bool = False) -> list[tuple[str, str, int]]:
    """Name, module and kind of each frame of a marked profile; the last ones are markers.

    Calls that are inlined are of a kind of their own if that is asked for: another build may inline others.
    """
    frames, real = marked.frames, len(profile.frames)
    is_inlined = profile.frames.is_inlined if inlined else np.zeros(real, np.bool_)
    found = []
    modules = {module: clean(base_name(module)) for module in set(frames.module)}
    for number, (label, kernel) in enumerate(zip(frames.labels(), frames.kernel.tolist(), strict=True)):
        if number >= real:
            kind = _INCOMPLETE
        elif not frames.symbol[number]:
            kind = _NAMELESS
        elif is_inlined[number]:
            kind = _INLINED
        else:
            kind = _KERNEL if kernel else _FUNCTION
        found.append((clean(label), modules[frames.module[number]], kind))
    return found


def _in_order(tree: PrefixTree, rank: I64) -> I64:
    """The nodes level by level, the children of one parent by the rank of their names."""
    place = np.zeros(len(tree), np.int64)
    order = np.empty(len(tree), np.int64)
    for begin, end in zip(tree.depth_first[:-1].tolist(), tree.depth_first[1:].tolist(), strict=True):
        parent = tree.parent[begin:end]
        parent_place = np.where(parent >= 0, place[parent], 0)
        order[begin:end] = begin + np.argsort(parent_place * len(rank) + rank[tree.frame[begin:end]])
        place[order[begin:end]] = np.arange(begin, end)
    return order
