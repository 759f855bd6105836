"""The processed profile format of the Firefox Profiler, with tables that all threads share.

It is the one of its formats that has weights and needs no further processing. Profiles of this and of older versions
are brought up to date by the profiler when it loads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from walkback.base.arrays import I64, Numbers, numbered
from walkback.base.text import base_name, clean
from walkback.export.tables import Series, StringTable, series_of
from walkback.stacks.profile import CodeMapping, NamedFrames, Profile
from walkback.stacks.tree import PrefixTree

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


def write(profile: Profile, out: BinaryIO) -> None:
    """Write a profile; without a timeline there is a thread for each comm, and time means nothing."""
    out.writelines(piece.encode() for piece in _pieces(profile))


def _pieces(profile: Profile) -> Iterator[str]:
    modules = [module for module in dict.fromkeys(profile.frames.module) if module]
    tree = PrefixTree.of(profile.stack_first, profile.stack_frames)
    series = list(series_of(profile))
    times = _times(series)
    yield f'{{"meta":{_json(_meta(profile, times))},"libs":{_json(_libs(profile, modules))},'
    yield '"pages":[],"counters":[],"profilerOverhead":[],"shared":'
    yield _json(_shared(profile, modules, tree))
    yield ',"threads":['
    for number, (one, time) in enumerate(zip(series, times, strict=True)):
        yield "," if number else ""
        yield _json(_thread(one, time, tree, nanoseconds=profile.unit == "nanoseconds"))
    yield "]}\n"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _meta(profile: Profile, times: Sequence[list[float]]) -> dict[str, Any]:
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _VERSION,
        "product": clean(profile.title) or "walkback",
        "importedFrom": "walkback",
        "interval": _interval(times),
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


def _interval(times: Sequence[list[float]]) -> float:
    """The usual time between two samples of a thread, in milliseconds."""
    steps = np.concatenate([np.zeros(0), *map(np.diff, times)])
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 1.0


def _libs(profile: Profile, modules: Sequence[str]) -> list[dict[str, Any]]:
    known = {one.file: one for one in profile.mappings}
    libs = []
    for module in modules:
        build_id = known.get(module, CodeMapping(module)).build_id
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


def _shared(profile: Profile, modules: Sequence[str], tree: PrefixTree) -> dict[str, Any]:
    """The tables of frames, functions, modules and stacks."""
    frames, strings = profile.frames, StringTable()
    count = len(frames)
    number_of = {module: number for number, module in enumerate(modules)}
    files = frames.file or [None] * count
    functions, function_of = numbered(list(zip(frames.labels(), frames.module, files, strict=True)))
    sources = [file for file in dict.fromkeys(files) if file]
    source_of = {file: number for number, file in enumerate(sources)}
    addresses = [address if address < 2**53 else -1 for address in frames.address.tolist()]
    symbols, symbol_of = _native_symbols(frames, number_of)
    tables = {
        "frameTable": {
            "length": count,
            "address": addresses,
            "inlineDepth": (np.arange(count) - _around(frames)).tolist(),
            "category": [_KERNEL if kernel else _USER for kernel in frames.kernel.tolist()],
            "subcategory": [0] * count,
            "func": function_of.tolist(),
            "nativeSymbol": symbol_of,
            "innerWindowID": [0] * count,
            "line": [line or None for line in frames.line or [0] * count],
            "column": [None] * count,
        },
        "funcTable": {
            "length": len(functions),
            "name": [strings[name] for name, _, _ in functions],
            "isJS": [False] * len(functions),
            "relevantForJS": [False] * len(functions),
            "resource": [number_of.get(module, -1) for _, module, _ in functions],
            "source": [source_of[file] if file else None for _, _, file in functions],
            "lineNumber": [None] * len(functions),
            "columnNumber": [None] * len(functions),
        },
        "resourceTable": {
            "length": len(modules),
            "lib": list(range(len(modules))),
            "name": [strings[base_name(module)] for module in modules],
            "host": [None] * len(modules),
            "type": [_LIBRARY] * len(modules),
        },
        "nativeSymbols": {
            "length": len(symbols),
            "libIndex": [library for library, _, _ in symbols],
            "address": [address for _, address, _ in symbols],
            "name": [strings[name] for _, _, name in symbols],
            "functionSize": [None] * len(symbols),
        },
        "sources": {
            "length": len(sources),
            "id": [None] * len(sources),
            "filename": [strings[file] for file in sources],
            "startLine": [1] * len(sources),
            "startColumn": [1] * len(sources),
            "sourceMapURL": [None] * len(sources),
        },
        "stackTable": {"length": len(tree), "frame": tree.frame.tolist(), "prefix": _or_none(tree.parent)},
    }
    return {**tables, "stringArray": list(strings.numbers)}


def _around(frames: NamedFrames) -> I64:
    """The frame that each is inlined in; those calls follow it, from the outermost to the innermost."""
    number = np.arange(len(frames))
    return number if frames.inlined is None else np.maximum.accumulate(np.where(frames.inlined, 0, number))


def _native_symbols(
    frames: NamedFrames, number_of: dict[str, int]
) -> tuple[list[tuple[int, int, str]], list[int | None]]:
    """The functions in files that frames are of, also by inlined calls: file, address and name; and that of each frame.

    The viewer marks what is inlined only where it knows in which.
    """
    offset = np.zeros(len(frames), np.uint64) if frames.offset is None else frames.offset
    starts = (frames.address - offset).tolist()
    numbers: dict[tuple[int, int, str], int] = {}
    found: list[int | None] = []
    for frame in _around(frames).tolist():
        symbol, library = frames.symbol[frame], number_of.get(frames.module[frame])
        if symbol is None or library is None or starts[frame] >= 2**53:
            found.append(None)
        else:
            found.append(numbers.setdefault((library, starts[frame], clean(symbol)), len(numbers)))
    return list(numbers), found


def _or_none(numbers: Numbers) -> list[int | None]:
    return [number if number >= 0 else None for number in numbers.tolist()]


def _times(series: Sequence[Series]) -> list[list[float]]:
    """The times of the samples of each series, in milliseconds from the first; without a timeline they mean nothing."""
    begin = min((int(one.time.min()) for one in series if one.time is not None and len(one.time)), default=0)
    times: list[list[float]] = []
    for one in series:
        since = np.arange(len(one.stack)) * _MILLISECOND if one.time is None else one.time - np.uint64(begin)
        times.append((since / _MILLISECOND).tolist())
    return times


def _thread(one: Series, time: list[float], tree: PrefixTree, *, nanoseconds: bool) -> dict[str, Any]:
    name = clean(one.comm)
    return {
        "name": name,
        "processName": name,
        "processType": "default",
        "isMainThread": one.pid == one.tid,
        "pid": str(one.pid),
        "tid": str(one.tid),
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": time[0] if time else 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "showMarkersInTimeline": False,
        "samples": {
            "length": len(one.stack),
            "stack": _or_none(tree.node[one.stack]),
            "time": time,
            "weight": (one.weight / _MILLISECOND if nanoseconds else one.weight).tolist(),
            "weightType": "tracing-ms" if nanoseconds else "samples",
        },
        "markers": {"length": 0, "category": [], "data": [], "name": [], "phase": [], "startTime": [], "endTime": []},
    }
