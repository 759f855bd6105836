"""The file format of speedscope, with "sampled" profiles.

With a timeline there is a profile for each thread, its samples in the order of time; without one for each comm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from walkback.base.arrays import I64, U64, numbered
from walkback.base.text import json_text
from walkback.export.tables import outermost_first, series_of
from walkback.stacks.profile import Profile

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_PIECE = 1 << 12
"""Stacks that are written at once."""


def write(profile: Profile, out: BinaryIO) -> None:
    """Write a profile."""
    out.writelines(piece.encode() for piece in _pieces(profile))


def _pieces(profile: Profile) -> Iterator[str]:
    frames = profile.frames
    files = frames.file or [None] * len(frames)
    where = [file or module for file, module in zip(files, frames.module, strict=True)]
    functions, function_of = numbered(list(zip(frames.labels(), where, strict=True)))
    yield f'{{"$schema":{json_text(_SCHEMA)},"exporter":"walkback","name":{json_text(profile.title or "walkback")}'
    yield ',"activeProfileIndex":0,"shared":{"frames":['
    yield ",".join([_frame(*function) for function in functions])
    yield ']},"profiles":['
    texts = _stacks(profile, function_of)
    unit = "nanoseconds" if profile.unit == "nanoseconds" else "none"
    for number, one in enumerate(series_of(profile)):
        yield "," if number else ""
        name = one.comm if one.time is None else f"{one.comm} ({one.pid}/{one.tid})"
        yield from _profile(name, one.stack, one.weight, texts, unit)
    yield "]}\n"


def _frame(name: str, file: str) -> str:
    return f'{{"name":{json_text(name)},"file":{json_text(file)}}}' if file else f'{{"name":{json_text(name)}}}'


def _stacks(profile: Profile, function_of: I64) -> list[str]:
    """The text of each stack: numbers of functions, outermost first."""
    words = [str(number) for number in function_of[profile.stack_frames].tolist()]
    return [f"[{','.join(stack)}]" for stack in outermost_first(profile.stack_first, words)]


def _profile(name: str, stacks: I64, weights: U64, texts: list[str], unit: str) -> Iterator[str]:
    yield f'{{"type":"sampled","name":{json_text(name)},"unit":"{unit}","startValue":0,'
    yield f'"endValue":{int(weights.sum())},"samples":['
    for at in range(0, len(stacks), _PIECE):
        yield "," if at else ""
        yield ",".join([texts[stack] for stack in stacks[at : at + _PIECE].tolist()])
    yield '],"weights":['
    yield ",".join(map(str, weights.tolist()))
    yield "]}"
