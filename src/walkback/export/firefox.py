"""The processed profile format of the Firefox Profiler, with tables that all threads share.

It is the one of its formats that has weights and needs no further processing. Profiles of this and of older versions
are brought up to date by the profiler when it loads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from walkback.arrays import I64, U64, Numbers
from walkback.export.names import base_name, clean, numbered
from walkback.export.profile import Mapping, Profile
from walkback.export.threads import threads
from walkback.export.tree import Tree

_VERSION = 62
"""Of the processed profile format."""
_GECKO_VERSION = 24
_LIBRARY = 1
"""The type of resource that a library is."""
_USER, _KERNEL = 0, 1
_CATEGORIES = [
    {"name": "User", "color": "yellow", "subcategories": ["Other"]},
    {"name": "Kernel", "color": "orange", "subcategories": ["Other"]},
]
_MILLISECOND = 1e6
"""In nanoseconds."""


@dataclass(frozen=True, slots=True)
class _Series:
    """What one thread's table of samples is made of."""

    name: str
    pid: str
    tid: str
    main: bool
    time: list[float]
    """In milliseconds."""
    stack: I64
    weight: U64


class _Strings:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(clean(text), len(self.numbers))


def write(profile: Profile, out: BinaryIO) -> None:
    """Write a profile; without a timeline there is a thread for each comm, and time means nothing."""
    out.writelines(piece.encode() for piece in _pieces(profile))


def _pieces(profile: Profile) -> Iterator[str]:
    modules = [module for module in dict.fromkeys(profile.frames.module) if module]
    tree = Tree.of(profile.stack_first, profile.stack_frames)
    series = _series(profile)
    yield f'{{"meta":{_json(_meta(profile, series))},"libs":{_json(_libs(profile, modules))},'
    yield '"pages":[],"counters":[],"profilerOverhead":[],"shared":'
    yield _json(_shared(profile, modules, tree))
    yield ',"threads":['
    for number, one in enumerate(series):
        yield "," if number else ""
        yield _json(_thread(one, tree, nanoseconds=profile.unit == "nanoseconds"))
    yield "]}\n"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _meta(profile: Profile, series: Sequence[_Series]) -> dict[str, Any]:
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _VERSION,
        "product": clean(profile.title) or "walkback",
        "importedFrom": "walkback",
        "interval": _interval(series),
        "startTime": profile.start / _MILLISECOND,
        "processType": 0,
        "categories": _CATEGORIES,
        "markerSchema": [],
        "extensions": {"length": 0, "id": [], "name": [], "baseURL": []},
        "debug": False,
        "symbolicated": True,
        "sourceCodeIsNotOnSearchfox": True,
        "usesOnlyOneStackType": True,
        "pausedRanges": [],
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
    }


def _interval(series: Sequence[_Series]) -> float:
    """The usual time between two samples of a thread, in milliseconds."""
    steps = np.concatenate([np.zeros(0), *(np.diff(one.time) for one in series)])
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 1.0


def _libs(profile: Profile, modules: Sequence[str]) -> list[dict[str, Any]]:
    known = {one.file: one for one in profile.mappings}
    libs = []
    for module in modules:
        build_id = known.get(module, Mapping(module)).build_id
        path, name = clean(module), clean(base_name(module))
        libs.append(
            {
                "arch": None,
                "name": name,
                "path": path,
                "debugName": name,
                "debugPath": path,
                "breakpadId": _breakpad_id(build_id),
                "codeId": build_id.hex() if build_id else None,
            }
        )
    return libs


def _breakpad_id(build_id: bytes | None) -> str:
    """The first 16 bytes of a build ID as a GUID in hexadecimal, its numbers little-endian, and the age 0."""
    if not build_id:
        return ""
    padded = build_id[:16].ljust(16, b"\0")
    return (padded[3::-1] + padded[5:3:-1] + padded[7:5:-1] + padded[8:]).hex().upper() + "0"


def _shared(profile: Profile, modules: Sequence[str], tree: Tree) -> dict[str, Any]:
    """The tables of frames, functions, modules and stacks."""
    frames, strings = profile.frames, _Strings()
    count = len(frames)
    number_of = {module: number for number, module in enumerate(modules)}
    files = frames.file or [None] * count
    functions, function_of = numbered(list(zip(frames.labels(), frames.module, files, strict=True)))
    rows: list[tuple[str, str, str | None]] = functions  # type: ignore[assignment]  # numbered() takes keys of any kind
    sources = [file for file in dict.fromkeys(files) if file]
    source_of = {file: number for number, file in enumerate(sources)}
    addresses = [address if address < 2**53 else -1 for address in frames.address.tolist()]
    tables = {
        "frameTable": {
            "length": count,
            "address": addresses,
            "inlineDepth": [0] * count,
            "category": [_KERNEL if kernel else _USER for kernel in frames.kernel.tolist()],
            "subcategory": [0] * count,
            "func": function_of.tolist(),
            "nativeSymbol": [None] * count,
            "innerWindowID": [0] * count,
            "line": [line or None for line in frames.line or [0] * count],
            "column": [None] * count,
        },
        "funcTable": {
            "length": len(rows),
            "name": [strings[name] for name, _, _ in rows],
            "isJS": [False] * len(rows),
            "relevantForJS": [False] * len(rows),
            "resource": [number_of.get(module, -1) for _, module, _ in rows],
            "source": [source_of[file] if file else None for _, _, file in rows],
            "lineNumber": [None] * len(rows),
            "columnNumber": [None] * len(rows),
        },
        "resourceTable": {
            "length": len(modules),
            "lib": list(range(len(modules))),
            "name": [strings[base_name(module)] for module in modules],
            "host": [None] * len(modules),
            "type": [_LIBRARY] * len(modules),
        },
        "nativeSymbols": {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []},
        "sources": {
            "length": len(sources),
            "id": [None] * len(sources),
            "filename": [strings[file] for file in sources],
            "startLine": [1] * len(sources),
            "startColumn": [1] * len(sources),
            "sourceMapURL": [None] * len(sources),
        },
        "stackTable": {
            "length": len(tree),
            "frame": tree.frame.tolist(),
            "prefix": _or_none(tree.parent),
        },
    }
    return {**tables, "stringArray": list(strings.numbers)}


def _or_none(numbers: Numbers) -> list[int | None]:
    return [number if number >= 0 else None for number in numbers.tolist()]


def _series(profile: Profile) -> list[_Series]:
    if profile.timeline is not None:
        return _threads(profile)
    found = []
    texts, comm_number = numbered(profile.comms)
    comm = comm_number[profile.comm]
    for number, text in enumerate(texts):
        rows = np.flatnonzero(comm == number)
        if len(rows):
            time = np.arange(len(rows), dtype=np.float64).tolist()
            name = clean(str(text))
            found.append(_Series(name, str(number), str(number), True, time, profile.stack[rows], profile.weight[rows]))
    return found


def _threads(profile: Profile) -> list[_Series]:
    assert profile.timeline is not None
    begin = int(profile.timeline.time.min()) if len(profile.timeline) else 0
    found = []
    for one in threads(profile.timeline):
        time = ((one.time - np.uint64(begin)) / _MILLISECOND).tolist()
        name = clean(profile.comms[one.comm])
        found.append(_Series(name, str(one.pid), str(one.tid), one.pid == one.tid, time, one.stack, one.weight))
    return found


def _thread(one: _Series, tree: Tree, *, nanoseconds: bool) -> dict[str, Any]:
    return {
        "name": one.name,
        "processName": one.name,
        "processType": "default",
        "isMainThread": one.main,
        "pid": one.pid,
        "tid": one.tid,
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": one.time[0] if one.time else 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "showMarkersInTimeline": False,
        "samples": {
            "length": len(one.stack),
            "stack": _or_none(tree.node[one.stack]),
            "time": one.time,
            "weight": (one.weight / _MILLISECOND if nanoseconds else one.weight).tolist(),
            "weightType": "tracing-ms" if nanoseconds else "samples",
        },
        "markers": {
            "length": 0,
            "category": [],
            "data": [],
            "name": [],
            "phase": [],
            "startTime": [],
            "endTime": [],
        },
    }
