"""Whether what a verb prints as JSON is what its page says: each object is one of those whose keys the page lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cli.inprocess import PAGES
from reference.keys import Key, Kind, described

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK = re.compile(r"^```\{keys\} (.*)\n```$", re.MULTILINE)
WORDS = {bool: "boolean", dict: "object", float: "number", int: "number", str: "string", type(None): "null"}


def undocumented(printed: Iterable[Any], *verbs: str) -> list[Any]:
    """The objects, at any depth, that are none of the pages of these verbs."""
    texts = [(PAGES / f"{verb}.md").read_text() for verb in verbs]
    known = [{key.name: key for key in described(names)} for text in texts for names in BLOCK.findall(text)]
    return [one for value in printed for one in _unknown(value, known)]


def _unknown(value: Any, known: list[dict[str, Key]]) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from _unknown(one, known)
    elif isinstance(value, dict):
        keys = next((one for one in known if _is_one(value, one)), None)
        if keys is None:
            yield value
            return
        for name, part in value.items():
            is_map = isinstance(part, dict) and any(kind.word == "map" for kind in keys[name].kinds)
            yield from _unknown(list(part.values()) if is_map else part, known)


def _is_one(value: dict[str, Any], keys: dict[str, Key]) -> bool:
    required = {name for name, key in keys.items() if not key.optional}
    return required <= value.keys() <= keys.keys() and all(
        _fits(part, keys[name].kinds) for name, part in value.items()
    )


def _fits(value: Any, kinds: Iterable[Kind]) -> bool:
    return any(_is(value, kind) for kind in kinds)


def _is(value: Any, kind: Kind) -> bool:
    if kind.word == "list":
        return isinstance(value, list) and (not kind.parts or all(_fits(one, kind.parts) for one in value))
    if kind.word == "map":
        return isinstance(value, dict) and all(_fits(one, kind.parts) for one in value.values())
    return kind.word in {WORDS.get(type(value)), f"`{value}`"}
