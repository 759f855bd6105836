"""Our `dataclass` beside that of the standard library: the same classes, made by either, behave alike."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pytest

from walkback.base.dataclass import dataclass


def _classes(decorator: Any) -> SimpleNamespace:
    """One of each kind that the package has."""

    @decorator
    class Plain:
        one: int
        two: str = "two"
        many: list[int] = field(default_factory=list)

    @decorator(frozen=True, slots=True)
    class Frozen:
        one: int
        two: tuple[int, ...] = ()
        hidden: int = field(default=3, repr=False)
        extra: int = field(default=4, compare=False)

    @decorator(slots=True)
    class Slots:
        one: int
        made: dict[str, int] = field(default_factory=dict, init=False)
        fixed: int = field(default=7, init=False)

        def __post_init__(self) -> None:
            self.fixed += self.one

    @decorator(frozen=True)
    class Cached:
        one: int

        @cached_property
        def twice(self) -> int:
            return 2 * self.one

    @decorator(frozen=True, slots=True, repr=False, eq=False)
    class Bare:
        one: int

    @decorator(frozen=True, slots=True)
    class Own:
        one: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self)

        def __hash__(self) -> int:
            return 5

    @decorator(slots=True)
    class Base:
        one: int

    @decorator(slots=True)
    class Derived(Base):
        two: int = 2

    @decorator(frozen=True)
    class Empty:
        pass

    return SimpleNamespace(**{name: one for name, one in locals().items() if isinstance(one, type)})


STANDARD, OURS = _classes(dataclasses.dataclass), _classes(dataclass)
Kind = SimpleNamespace


def _outcome(work: Callable[[Kind], object], kind: Kind) -> str:
    """What comes of some work, or the error."""
    try:
        return repr(work(kind))
    except (TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "work",
    [
        *(lambda kind, name=name: inspect.signature(getattr(kind, name)) for name in vars(STANDARD)),
        *(lambda kind, name=name: getattr(kind, name).__match_args__ for name in vars(STANDARD)),
        *(lambda kind, name=name: [one.name for one in dataclasses.fields(getattr(kind, name))] for name in vars(OURS)),
        *(lambda kind, name=name: hasattr(getattr(kind, name), "__slots__") for name in vars(STANDARD)),
        *(lambda kind, name=name: getattr(kind, name).__hash__ is None for name in vars(STANDARD)),
        lambda kind: kind.Plain(1),
        lambda kind: kind.Plain(1, many=[2]),
        lambda kind: kind.Plain(1).many is kind.Plain(1).many,
        lambda kind: kind.Plain(),
        lambda kind: kind.Plain(1, 2, [3], 4),
        lambda kind: kind.Plain(1) == kind.Plain(1),
        lambda kind: kind.Plain(1) == kind.Plain(2),
        lambda kind: kind.Plain(1) == 1,
        lambda kind: hash(kind.Plain(1)),
        lambda kind: kind.Frozen(1, (2,)),
        lambda kind: kind.Frozen(1, extra=5) == kind.Frozen(1, extra=6),
        lambda kind: hash(kind.Frozen(1, extra=5)) == hash(kind.Frozen(1, extra=6)),
        lambda kind: hash(kind.Frozen(1, (2,))) == hash((1, (2,), 3)),
        lambda kind: {kind.Frozen(1): "a"}[kind.Frozen(1)],
        lambda kind: setattr(kind.Frozen(1), "one", 2),
        lambda kind: delattr(kind.Frozen(1), "one"),
        lambda kind: dataclasses.replace(kind.Frozen(1), two=(5,)),
        lambda kind: dataclasses.asdict(kind.Frozen(1)),
        lambda kind: copy.copy(kind.Frozen(1, (2,))),
        lambda kind: copy.deepcopy(kind.Frozen(1, (2,))),
        lambda kind: kind.Slots(1),
        lambda kind: setattr(kind.Slots(1), "other", 2),
        lambda kind: kind.Slots(1, 2),
        lambda kind: dataclasses.replace(kind.Slots(1), one=2),
        lambda kind: kind.Cached(4).twice,
        lambda kind: setattr(kind.Cached(4), "one", 2),
        lambda kind: hash(kind.Cached(4)) == hash((4,)),
        lambda kind: repr(kind.Bare(1)).endswith(">"),
        lambda kind: kind.Bare(1) == kind.Bare(1),
        lambda kind: kind.Own(1),
        lambda kind: (kind.Own(1) == kind.Own(2), hash(kind.Own(1))),
        lambda kind: kind.Derived(1),
        lambda kind: kind.Derived(1) == kind.Base(1),
        lambda kind: kind.Derived(1, 3) == kind.Derived(1, 3),
        lambda kind: (kind.Empty(), kind.Empty() == kind.Empty(), hash(kind.Empty()) == hash(())),
    ],
)
def test_a_class_is_like_that_of_the_standard_library(work: Callable[[Kind], object]) -> None:
    assert _outcome(work, OURS) == _outcome(work, STANDARD)


def test_what_has_itself_is_shown_with_an_end() -> None:
    one = OURS.Plain(1)
    one.many.append(one)
    assert repr(one) == f"{OURS.Plain.__qualname__}(one=1, two='two', many=[...])"


@dataclass(frozen=True, slots=True)
class Packed:
    """A class that a module has, as pickles want it."""

    one: int
    two: str = "two"


def test_an_instance_goes_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(Packed(3))) == Packed(3)
