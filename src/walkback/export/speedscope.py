"""The file format of speedscope, with "sampled" profiles.

With a timeline there is a profile for each thread, its samples in the order of time; without one for each comm.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from walkback.arrays import I64, U64
from walkback.export.names import json_text, numbered
from walkback.export.profile import Profile
from walkback.export.threads import Thread, threads

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
    yield ",".join([_frame(*function) for function in functions])  # type: ignore[misc]  # numbered() takes keys of any kind
    yield ']},"profiles":['
    texts = _stacks(profile, function_of)
    for number, one in enumerate(_series(profile)):
        yield "," if number else ""
        yield from _profile(*one, texts, "nanoseconds" if profile.unit == "nanoseconds" else "none")
    yield "]}\n"


def _frame(name: str, file: str) -> str:
    return f'{{"name":{json_text(name)},"file":{json_text(file)}}}' if file else f'{{"name":{json_text(name)}}}'


def _stacks(profile: Profile, function_of: I64) -> list[str]:
    """The text of each stack: numbers of functions, outermost first."""
    words = [str(number) for number in function_of[profile.stack_frames][::-1].tolist()]
    whole = len(words)
    return [
        f"[{','.join(words[whole - end : whole - begin])}]" for begin, end in pairwise(profile.stack_first.tolist())
    ]


def _series(profile: Profile) -> Iterator[tuple[str, I64, U64]]:
    """Name, stacks and weights of each profile."""
    if profile.timeline is not None:
        for thread in threads(profile.timeline):
            yield _thread_name(profile, thread), thread.stack, thread.weight
        return
    texts, comm_number = numbered(profile.comms)
    comm = comm_number[profile.comm]
    for number, text in enumerate(texts):
        rows = np.flatnonzero(comm == number)
        if len(rows):
            yield str(text), profile.stack[rows], profile.weight[rows]


def _thread_name(profile: Profile, thread: Thread) -> str:
    return f"{profile.comms[thread.comm]} ({thread.pid}/{thread.tid})"


def _profile(name: str, stacks: I64, weights: U64, texts: list[str], unit: str) -> Iterator[str]:
    yield f'{{"type":"sampled","name":{json_text(name)},"unit":"{unit}","startValue":0,'
    yield f'"endValue":{int(weights.sum())},"samples":['
    for at in range(0, len(stacks), _PIECE):
        yield "," if at else ""
        yield ",".join([texts[stack] for stack in stacks[at : at + _PIECE].tolist()])
    yield '],"weights":['
    yield ",".join(map(str, weights.tolist()))
    yield "]}"
