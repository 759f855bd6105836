"""`dataclass` as in the standard library, in a fifth of the time.

A command imports some ninety dataclasses. The standard library compiles up to six methods of each, which takes a sixth
of the time that many a command needs. Here only `__init__` is compiled, and the other methods are closures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):  # noqa: A002 - as it is called there
        """A class with methods made from its fields; these options are as in the standard library."""

        def made(cls):
            found = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
            fields = dataclasses.fields(found)
            _add(found, _initializer(found, fields, frozen))
            if repr:
                _add(found, _representation(fields))
            if eq:
                _add(found, _equality([one.name for one in fields if one.compare]))
                if frozen:
                    _add(found, _hashing([one.name for one in fields if one.compare]))
                elif "__hash__" not in cls.__dict__:
                    found.__hash__ = None
            if frozen:
                _add(found, _refusal("__setattr__", "assign to"), _refusal("__delattr__", "delete"))
                if slots:  # values are set in spite of the refusal
                    _add(found, *_pickling([one.name for one in fields]))
            return found

        return made if cls is None else made(cls)


class _Default:
    """Shown in signatures for a value that is made."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Default()


def _add(cls: type, *methods: Callable[..., Any]) -> None:
    """Methods that a class does not have of its own."""
    for method in methods:
        if method.__name__ not in cls.__dict__:
            method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
            setattr(cls, method.__name__, method)


def _initializer(cls: type, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., Any]:
    """`__init__`, which is compiled: it is called most."""
    parameters, lines = ["self"], []
    names: dict[str, Any] = {"_made": _MADE, "_set": object.__setattr__}
    for one in fields:
        value = one.name
        if one.default_factory is not dataclasses.MISSING:
            names[f"_make_{one.name}"] = one.default_factory
            parameter = f"{one.name}=_made"
            value = f"_make_{one.name}()"
            if one.init:
                value += f" if {one.name} is _made else {one.name}"
        elif one.default is not dataclasses.MISSING:
            names[f"_default_{one.name}"] = one.default
            parameter = f"{one.name}=_default_{one.name}"
            value = one.name if one.init else f"_default_{one.name}"
        else:
            parameter = one.name
        if one.init:
            parameters.append(parameter)
        lines.append(f"_set(self, {one.name!r}, {value})" if frozen else f"self.{one.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), names)  # noqa: S102 - of fields' names
    method: Callable[..., Any] = names["__init__"]
    method.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return method


def _representation(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., Any]:
    names = [one.name for one in fields if one.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807 - it becomes one
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gets the values of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _equality(names: list[str]) -> Callable[..., Any]:
    values = _values(names)

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807 - it becomes one
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hashing(names: list[str]) -> Callable[..., Any]:
    values = _values(names)

    def __hash__(self: Any) -> int:  # noqa: N807 - it becomes one
        return hash(values(self))

    return __hash__


def _refusal(name: str, what: str) -> Callable[..., Any]:
    def refuse(_self: Any, field: str, *_value: Any) -> None:
        message = f"cannot {what} field {field!r}"
        raise dataclasses.FrozenInstanceError(message)

    refuse.__name__ = name
    return refuse


def _pickling(names: list[str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def __getstate__(self: Any) -> list[Any]:  # noqa: N807 - it becomes one
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807 - it becomes one
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __getstate__, __setstate__
