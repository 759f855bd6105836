"""The descriptions of a store in a bucket, which are its only objects that count by being there.

segments/<id>.json                 that of an append
segments/turn-000000000001.json    that of a compaction or expiry, which also says what it found and left
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.segments.protocol import parse_description
from walkback.store import layout
from walkback.store.parts import Fetcher, Name, Segment, Source, parsed_segment, replaced_by

LARGEST: Final = 256 << 20
"""Bytes of a description: of millions of appends in a day."""
LAST_TURN: Final = 10**12 - 1
_TURN = re.compile(r"turn-([0-9]{12})\.json")


@dataclass(frozen=True, slots=True)
class Described:
    """What a description says."""

    name: str
    """What it is called."""
    segment: Segment
    turn: int
    """Its number; 0 for an append."""
    turns: Mapping[str, int]
    """The turns that existed when it was written: their numbers by their segments."""
    dead: frozenset[str]
    """The segments that existed and had nothing left."""
    partly: frozenset[str]
    """The appends that had something left, and not all."""

    def description(self, segment: str) -> str:
        """What the description of a segment is called."""
        return turn_name(self.turns[segment]) if segment in self.turns else f"{segment}.json"

    @property
    def alive(self) -> set[str]:
        """The names of the descriptions that must exist beside it, whether a list has them or not."""
        return {self.name, *map(self.description, (self.turns.keys() | self.partly) - self.dead)}


def newest_of(known: Iterable[Described]) -> Described | None:
    """The last turn."""
    return max((one for one in known if one.turn), key=lambda one: one.turn, default=None)


def parsed(contents: bytes, name: str, file: str, folder: Path, fetcher: Fetcher) -> Described:
    """What a description says; the files of its segment are below `folder` once they have been fetched."""

    def parse(described: dict[str, Any]) -> Described:
        number, turn = described["id"], turn_number(name)
        turns = {str(segment): int(its) for segment, its in described.get("turns", {}).items()}
        dead, partly = (frozenset(map(str, described.get(what, ()))) for what in ("dead", "partly"))
        if not layout.is_id(number) or name != (turn_name(turn) if turn else f"{number}.json"):
            raise ValueError(number)
        if not all(0 < its < turn for its in turns.values()):
            raise ValueError(turn)
        for one in (*turns, *dead, *partly):
            if not layout.is_id(one):
                raise ValueError(one)
        path = folder / f"{layout.SEGMENT}{number}"
        source = Source(fetcher, {path / str(relative): int(size) for relative, size in described["files"].items()})
        segment = parsed_segment(described, path, number, file, source)
        return Described(name, segment, turn, turns, dead, partly)

    return parse_description(contents, file, "segment", parse)


def encoded(described: Mapping[str, Any], number: str, files: Mapping[str, int]) -> bytes:
    """The contents of a description; `described` is that of a segment in a folder, and more."""
    contents = json.dumps({**described, "id": number, "files": files}).encode() + b"\n"
    if len(contents) > LARGEST:
        raise UnreadableError(f"the description of this would be {len(contents)} bytes, and {LARGEST} are the most")
    return contents


def said_by_turn(
    segments: Sequence[Segment], turns: Mapping[str, int], dead: frozenset[str], replaces: Iterable[Name]
) -> dict[str, Any]:
    """What a turn says of the segments that it found, when it replaces these parts; `dead` are those dead before."""
    replaced = replaced_by(segments).union(replaces)
    now_dead = dead | {segment.id for segment in segments if segment.parts.keys() <= replaced}
    partly = {segment.id for segment in segments if segment.parts.keys() & replaced} - now_dead - turns.keys()
    return {"turns": turns, "dead": sorted(now_dead), "partly": sorted(partly)}


def turn_number(name: str) -> int:
    """The number of the turn whose description has this name; 0 if it is none's."""
    found = _TURN.fullmatch(name)
    return int(found[1]) if found else 0


def turn_name(number: int) -> str:
    """What the description of a turn is called."""
    return f"turn-{number:012}.json"


def is_name(name: str) -> bool:
    """Whether a description can be called so."""
    return turn_number(name) > 0 or (name.endswith(".json") and layout.is_id(name.removesuffix(".json")))
