"""The public names of the library, as Markdown: signatures from the source, and what it says of each."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import walkback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAME = re.compile(r"(?<![\w.'\"])(?:[A-Z]\w*|bytes)(?![\w'\"])")
"""A class in an annotation; `bytes` is the name of attributes as well."""
EXAMPLE = re.compile(r"^(?:>>> .*\n?(?:(?:\.\.\. |\S).*\n?)*)+", re.MULTILINE)


class Raw(str):
    """Text that stands in a signature as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Member(NamedTuple):
    """An attribute or a method of a class: how it is described, and what is said of it."""

    kind: str
    head: str
    options: list[str]
    text: str


def namespaces() -> list[str]:
    """The public packages, `walkback` first."""
    package: Any = walkback
    return ["walkback", *(f"walkback.{name}" for name in package.__all__ if isinstance(_value(name), ModuleType))]


def names(package: str) -> dict[str, Any]:
    """What a public package has, without packages and the version."""
    found = {name: getattr(import_module(package), name) for name in import_module(package).__all__}
    return {name: value for name, value in found.items() if not isinstance(value, ModuleType | str)}


@cache
def homes() -> dict[str, str]:
    """Where each public class is, by its name."""
    homes = {"bytes": "~builtins.bytes"}
    for package in namespaces():
        for name, value in names(package).items():
            if isinstance(value, type):
                homes.setdefault(name, f"~{package}.{name}")
    return homes


def library(package: str) -> str:
    """All names of a public package."""
    about = inspect.cleandoc(import_module(package).__doc__ or "").partition("\n\n")[0]
    parts = [f"{about}\n\n:::{{py:module}} {package}\n:::"]
    parts += [_described(package, name, value) for name, value in sorted(names(package).items())]
    return "\n\n".join(parts)


def _value(name: str) -> Any:
    return getattr(walkback, name)


def _described(package: str, name: str, value: Any) -> str:
    if isinstance(value, type):
        kind = "py:exception" if issubclass(value, Exception) else "py:class"
        has_values = issubclass(value, enum.Enum | Exception)
        return _block(
            kind, name + ("" if has_values else signature(value)), [], _markdown(value.__doc__), _members(value)
        )
    if callable(value):
        return _block("py:function", f"{name}{signature(value)}", [], _markdown(value.__doc__))
    return _block("py:data", name, [], fields_of(_home(package, name)).get(name, ("", ""))[1])


def _block(kind: str, head: str, options: list[str], text: str, members: Iterable[Member] = ()) -> str:
    """A directive; those of members are in it."""
    inner = [_block(f"py:{one.kind}", one.head, [*one.options, ":no-contents-entry:"], one.text) for one in members]
    fence = "::::" if inner else ":::"
    return "\n".join(
        [f"{fence}{{{kind}}} {head}", *options, "", *filter(None, ["\n\n".join(filter(None, [text, *inner]))]), fence]
    )


def signature(value: Any) -> str:
    """The parameters and the result, with types."""
    try:
        found = inspect.signature(value)
    except ValueError:
        return "()"
    parameters = [
        one.replace(annotation=_annotation(one.annotation), default=_default(one.default))
        for one in found.parameters.values()
        if one.name not in {"self", "cls"}
    ]
    result = found.empty if isinstance(value, type) else _annotation(found.return_annotation)
    return str(found.replace(parameters=parameters, return_annotation=result))


def _annotation(annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return Raw(NAME.sub(lambda found: homes().get(found[0], found[0]), text))


def _default(default: Any) -> Any:
    if default is inspect.Parameter.empty or not repr(default).startswith("<"):
        return default
    return Raw("...")


def _members(value: type) -> Iterator[Member]:
    """Of a class and of those that it is made from, as far as they are of walkback."""
    seen = set[str]()
    for one in value.__mro__:
        if not one.__module__.startswith("walkback."):
            continue
        fields = fields_of(one)
        for name in [*fields, *vars(one)]:
            if not name.startswith("_") and name not in seen and (member := _member(one, name, fields)) is not None:
                seen.add(name)
                yield member


def _member(owner: type, name: str, fields: dict[str, tuple[str, str]]) -> Member | None:
    """A field, a property or a method; nothing for what a class has besides."""
    found = vars(owner).get(name)
    if isinstance(found, owner) and isinstance(found, enum.Enum):
        return Member("attribute", name, [f":value: {found.value!r}"], fields.get(name, ("", ""))[1])
    if isinstance(found, property) or hasattr(found, "attrname"):
        function = getattr(found, "fget", None) or getattr(found, "func", None)
        result = _annotation(inspect.signature(function).return_annotation) if function else ""
        return Member("property", name, [f":type: {result}"], _markdown(getattr(function, "__doc__", "")))
    if isinstance(found, classmethod | staticmethod):
        options = [":classmethod:" if isinstance(found, classmethod) else ":staticmethod:"]
        return Member("method", name + signature(found.__func__), options, _markdown(found.__func__.__doc__))
    if inspect.isroutine(found):
        return Member("method", name + signature(found), [], _markdown(found.__doc__))
    if name in fields:
        kind, text = fields[name]
        return Member("attribute", name, [f":type: {_annotation(kind)}"] if kind else [], text)
    return None


def fields_of(one: Any) -> dict[str, tuple[str, str]]:
    """The type and the text of each name that a class or a module defines: the text is a string behind it."""
    body = ast.parse(textwrap.dedent(_source(one))).body
    if len(body) == 1 and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    found = {}
    for line, following in zip(body, [*body[1:], None], strict=True):
        for target in _targets(line):
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                kind = ast.unparse(line.annotation) if isinstance(line, ast.AnnAssign) else ""
                found[target.id] = (kind, _markdown(_string(following)))
    return found


def _targets(line: ast.stmt) -> list[ast.expr]:
    if isinstance(line, ast.AnnAssign):
        return [line.target]
    return line.targets if isinstance(line, ast.Assign) else []


def _source(one: Any) -> str:
    """The text of a class or a module; nothing of what has none."""
    try:
        return inspect.getsource(one)
    except (OSError, TypeError):
        return ""


def _home(package: str, name: str) -> ModuleType:
    """The module that defines a public name."""
    listed = (Path(import_module(package).__path__[0]) / "__init__.pyi").read_text()
    (found,) = re.findall(rf"^from (\S+) import {name} as", listed, re.MULTILINE)
    return import_module(found)


def _string(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""


def _markdown(text: str | None) -> str:
    """A docstring, with its examples fenced."""
    text = inspect.cleandoc(text or "")
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
