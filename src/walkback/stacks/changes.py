"""What is different between two profiles: the share of each function before and after.

Shares, not weights, are compared: two hours have different numbers of samples, and two machines different loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.base.text import base_name, counted, printable
from walkback.stacks.profile import Profile
from walkback.stacks.top import HotFunction, function_text, hottest
from walkback.symbols.demangle import without_clone


@dataclass(frozen=True, slots=True)
class Change:
    """A function, and what it weighs before and after."""

    name: str
    """The function."""
    module: str
    """The name of its file, without folders."""
    own_before: int
    """The weight before of the stacks in which it is innermost."""
    own_after: int
    """The same after."""
    total_before: int
    """The weight before of the stacks that it is in."""
    total_after: int
    """The same after."""


@dataclass(frozen=True, slots=True, repr=False)
class Difference(OneLine):
    """Two profiles, function by function."""

    before: int
    """The weight of everything."""
    after: int
    functions: Sequence[Change]
    """Those whose own share changed most come first."""

    def own_change(self, one: Change) -> float:
        """By how much the share that is a function's own is larger after than before; from -1 to 1."""
        return _share(one.own_after, self.after) - _share(one.own_before, self.before)

    def total_change(self, one: Change) -> float:
        """The same of the share of the stacks that it is in."""
        return _share(one.total_after, self.after) - _share(one.total_before, self.before)


def difference(before: Profile, after: Profile, *, clones: bool = False) -> Difference:
    """What changed from one profile to another.

    Functions are the same if their names and the names of their files are: a new version is often in another folder.
    What compilers split off or copied (`run.cold`, `run.constprop.0`) is one with its function, unless `clones` are to
    be kept apart.

    >>> profile = walkback.unwind("perf.data")
    >>> difference = walkback.stacks.difference(profile, profile)
    >>> difference.before == difference.after
    True
    """
    sides = [before, after] if clones else [whole_functions(before), whole_functions(after)]
    old, new = ({(one.name, one.module): one for one in hottest(_by_file_name(side))} for side in sides)
    changes = []
    for name, module in dict.fromkeys((*new, *old)):
        none = HotFunction(name, module, 0, 0)
        was, its = old.get((name, module), none), new.get((name, module), none)
        changes.append(Change(name, module, was.own, its.own, was.total, its.total))
    found = Difference(int(before.weight.sum()), int(after.weight.sum()), changes)
    changes.sort(key=lambda one: (_size(found.own_change(one)), _size(found.total_change(one)), one.name, one.module))
    return found


def whole_functions(profile: Profile) -> Profile:
    """The same with the name of their function for the parts and copies that compilers make."""
    names = {symbol: symbol and without_clone(symbol) for symbol in set(profile.frames.symbol)}
    return replace(profile, frames=replace(profile.frames, symbol=[names[one] for one in profile.frames.symbol]))


def _by_file_name(profile: Profile) -> Profile:
    modules = {module: base_name(module) for module in set(profile.frames.module)}
    return replace(profile, frames=replace(profile.frames, module=[modules[one] for one in profile.frames.module]))


def _size(change: float) -> float:
    """What sorts large changes first; rounded, so that a gain and a loss of the same share are equal."""
    return -round(abs(change), 12)


def table(found: Difference, unit: str = "samples", limit: int = 30) -> list[str]:
    """The lines of a table of the functions that changed most."""
    noun = printable(unit)
    words = [
        counted(weight, "sample") if noun == "samples" else f"{weight} {noun}" for weight in (found.before, found.after)
    ]
    lines = [f"before: {words[0]}; after: {words[1]}", ""]
    head = f"{'before':>7} {'after':>7} {'change':>7}"
    lines += [f"{'self %':>23}   {'total %':>23}", f"{head}   {head}  function"]
    for one in found.functions[:limit]:
        own = _cells(one.own_before, found.before, one.own_after, found.after)
        total = _cells(one.total_before, found.before, one.total_after, found.after)
        lines.append(f"{own}   {total}  {function_text(one.name, one.module)}")
    return lines


def _cells(before: int, whole_before: int, after: int, whole_after: int) -> str:
    old, new = 100 * _share(before, whole_before), 100 * _share(after, whole_after)
    return f"{old:7.2f} {new:7.2f} {new - old:+7.2f}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
