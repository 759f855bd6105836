"""The keys of JSON objects, as Markdown: from the classes that are written, with what these say of each."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_origin, is_typeddict

from reference.library import fields_of
from reference.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = {"str": "string", "int": "number", "float": "number", "bool": "boolean", "None": "null"}
"""What JSON calls them."""
LISTS = {"list", "tuple", "Sequence"}


class Kind(NamedTuple):
    """What a value is, in the words of JSON."""

    word: str
    """Also `list`, `map` (an object whose keys are not fixed), or a string that it always is, in backticks."""
    parts: tuple[Kind, ...] = ()
    """What the values of a list or of a map are."""

    @property
    def singular(self) -> str:
        """For one."""
        return {"map": "object"}.get(self.word, self.word) + self._of

    @property
    def plural(self) -> str:
        """For several."""
        return {"map": "objects", "null": "null"}.get(self.word, f"{self.word}s") + self._of

    @property
    def _of(self) -> str:
        return f" of {' or '.join(part.plural for part in self.parts)}" if self.parts else ""


class Key(NamedTuple):
    """A key of an object."""

    name: str
    kinds: tuple[Kind, ...]
    """What its value can be."""
    optional: bool
    meaning: str

    @property
    def text(self) -> str:
        """What its value is, for a table."""
        return " or ".join(kind.singular for kind in self.kinds) + (", optional" if self.optional else "")


def keys(names: str) -> str:
    """A table of the keys that an object has from these classes, with those that mean the same in one row."""
    rows: list[tuple[str, str, str]] = []
    for one in described(names):
        said = one.text, one.meaning
        before = f"{rows.pop()[0]}, " if rows and rows[-1][1:] == said else ""
        rows.append((f"{before}`{one.name}`", *said))
    return table("Key", "Type", "Meaning", rows=rows)


def described(names: str) -> list[Key]:
    """The keys that an object has from these classes, each by its module in `walkback` and its name."""
    return [key for name in names.split() for one in _with_bases(named(name)) for key in _keys(one)]


def named(name: str) -> Any:
    module, _, own = name.rpartition(".")
    return getattr(import_module(f"walkback.{module}"), own)


def _with_bases(one: Any) -> Iterator[Any]:
    """A class behind those that it extends: before Python 3.12, a TypedDict has these in its source alone."""
    (definition,) = ast.parse(inspect.getsource(one)).body
    for base in definition.bases if isinstance(definition, ast.ClassDef) else ():
        found = getattr(inspect.getmodule(one), ast.unparse(base), None)
        if is_typeddict(found):
            yield from _with_bases(found)
    yield one


def _keys(one: Any) -> Iterator[Key]:
    """Those of a TypedDict, or of what `asdict` takes; one without a meaning is an error."""
    for name, (annotation, text) in fields_of(one).items():
        if not text:
            raise ValueError(f"{one.__qualname__}.{name} has no meaning")
        node, optional = ast.parse(annotation, mode="eval").body, False
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "NotRequired":
            node, optional = node.slice, True
        meaning = re.sub(r"\bNone\b", "null", " ".join(text.split()))
        yield Key(name, tuple(_kinds(node, one)), optional, meaning)


def _kinds(node: ast.expr, owner: type) -> Iterator[Kind]:
    """What a value can be, by its annotation."""
    if isinstance(node, ast.BinOp):
        yield from _kinds(node.left, owner)
        yield from _kinds(node.right, owner)
    elif isinstance(node, ast.Subscript):
        yield from _composed(ast.unparse(node.value), node.slice, owner)
    else:
        name = ast.unparse(node)
        found = getattr(inspect.getmodule(owner), name, None)
        is_word = isinstance(found, type) and issubclass(found, enum.StrEnum)
        yield Kind("string" if is_word or get_origin(found) is Literal else WORDS.get(name, "object"))


def _composed(outer: str, node: ast.expr, owner: type) -> Iterator[Kind]:
    inner = node.elts if isinstance(node, ast.Tuple) else [node]
    if outer == "Literal":
        yield from (Kind(f"`{ast.literal_eval(one)}`") for one in inner)
        return
    if ast.unparse(inner[-1]) == "Any":
        yield Kind("list" if outer in LISTS else "object")
        return
    values = inner if outer in LISTS else inner[1:]
    parts = (kind for one in values if ast.unparse(one) != "..." for kind in _kinds(one, owner))
    yield Kind("list" if outer in LISTS else "map", tuple(dict.fromkeys(parts)))
