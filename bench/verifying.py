"""The measure of proving: a whole library, against the tools that print its code and its table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import walkback
from frames import largest
from measure import READELF, WALKBACK, Figure, alternate, process

_PROVE = '"$0" verify --limit 0 "$@" || test $? = 1'
"""A library with a wrong rule is no failure."""
_MEGABYTES = 300


def verifying(rounds: int) -> Iterator[Figure]:
    """The whole process of `walkback verify`, against `objdump -d` and `readelf --debug-dump=frames-interp`."""
    path = largest()
    prove = ("/bin/sh", "-c", _PROVE, WALKBACK, path)
    by_one = (*prove, "--jobs", "1")
    print_code = (shutil.which("objdump") or "objdump", "-d", "--no-show-raw-insn", path)
    print_table = (*READELF, "--debug-dump=frames-interp", path)
    together, ours, code, table = alternate(
        rounds, *(lambda one=one: process(one)[0] for one in (prove, by_one, print_code, print_table))
    )
    name, peer = f"verify {path.name}", "objdump -d, then readelf frames-interp"
    functions = sum(one.functions for one in walkback.verify(path))
    yield Figure(name, together, code + table, "s", peer, 1 / 4)
    yield Figure(f"{name}, one processor", ours, code + table, "s", peer, 1 / 4)
    yield Figure(f"{name}, a function", ours * 1e6 / functions, (code + table) * 1e6 / functions, "us", peer, 1 / 4)
    yield Figure(f"{name}, memory", process(prove)[1], process(print_code)[1], "MB", "objdump -d", 1, _MEGABYTES)
