"""What a request asks: parameters with the names that the options of `walkback store` have."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError
from walkback.base.text import printable
from walkback.store.moments import moment

Kind = Literal["store", "timeline", "stacks"]
KINDS: tuple[Kind, ...] = ("store", "timeline", "stacks")

_MOST_PARAMETERS = 100
_SIDE = ("since", "until", "host", "process", "label")
_BEFORE = "before-"
_COMPARE = "compare"
_NAMES = {
    "store": frozenset[str](),
    "timeline": frozenset(_SIDE),
    "stacks": frozenset((*_SIDE, *(_BEFORE + name for name in _SIDE), _COMPARE)),
}


@dataclass(frozen=True, slots=True)
class Side:
    """Which samples."""

    since: int | None = None
    """In nanoseconds since 1970."""
    until: int | None = None
    host: tuple[str, ...] = ()
    process: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    """Names and values, as they were given."""

    def words(self) -> dict[str, Any]:
        """The same as `Store.select` takes it."""
        labels: dict[str, list[str]] = {}
        for name, value in self.labels:
            labels.setdefault(name, []).append(value)
        own = {"since": self.since, "until": self.until, "host": self.host, "process": self.process}
        return own | {"labels": labels}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and about which samples."""

    kind: Kind
    side: Side = Side()
    before: Side | None = None
    """What `side` is compared with."""


def question(kind: Kind, query: str) -> Question:
    """What the query of an address asks; one that makes no sense raises ArgumentError."""
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except UnicodeDecodeError:
        raise ArgumentError("the query is not UTF-8") from None
    except ValueError:
        message = f"the query is not up to {_MOST_PARAMETERS} parameters, as since=2h&process=hello"
        raise ArgumentError(message) from None
    for name, value in pairs:
        if name not in _NAMES[kind]:
            raise ArgumentError(f"{kind} has no parameter {printable(name)!r}")
        if any(unicodedata.category(letter) == "Cc" for letter in value):
            raise ArgumentError(f"{name} has a control character in it")
    compares = any(name == _COMPARE or name.startswith(_BEFORE) for name, _ in pairs)
    return Question(kind, _side(pairs, ""), _side(pairs, _BEFORE) if compares else None)


def _side(pairs: Sequence[tuple[str, str]], prefix: str) -> Side:
    found: dict[str, list[str]] = {name: [] for name in _SIDE}
    for name, value in pairs:
        if name.startswith(prefix) and name.removeprefix(prefix) in found:
            found[name.removeprefix(prefix)].append(value)
    times = {name: _moment(prefix + name, found[name]) for name in ("since", "until")}
    labels = tuple(_label(prefix, value) for value in found["label"])
    return Side(**times, host=tuple(found["host"]), process=tuple(found["process"]), labels=labels)


def _moment(name: str, values: list[str]) -> int | None:
    if not values:
        return None
    if len(values) > 1:
        raise ArgumentError(f"{name} is there {len(values)} times")
    try:
        return moment(values[0])
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None


def _label(prefix: str, value: str) -> tuple[str, str]:
    name, sign, its = value.partition("=")
    if not name or not sign:
        raise ArgumentError(f"{prefix}label: {printable(value)!r} is not NAME=VALUE; example: version=1.2")
    return name, its
