"""The pages of verbs list every key of the JSON that these print, and no other."""

from __future__ import annotations

import json

import pytest

from cli.documented import undocumented
from cli.inprocess import run
from test_docs import folder  # noqa: F401

CALLS = {
    "add": ["hello -o added"],
    "cbf": ["show hello.cbf", "decode hello.cbf", "decode hello.cbf --images hello.cif"],
    "check": ["damaged.so", "a.out --for glibc", "signal.so --for linux"],
    "cif": ["show hello.cif", "decode hello.cif"],
    "compare": ["a.out hello", "hello --source cfi --other-source code --verify"],
    "convert": ["a.out -o converted --version 2", "signal.so -o first --version 1 --leave-out"],
    "derive": ["hello -o section"],
    "find": ["a.out main 0x1025"],
    "fix": ["a.out -o fixed"],
    "link": ["a.out signal.so -o linked"],
    "report": ["surveyed --figure versions"],
    "show": ["a.out", "one.o", "damaged.so", "hello --source cfi", "hello-go --source go", "module.ko --source orc"],
    "size": ["hello", "hello libhello.a"],
    "split": ["one.o -o split.o"],
    "stack": ["core.hello"],
    "store": [
        "made append perf.data",
        "made",
        "made top",
        "made top --by process",
        "made diff process=hello process=hello",
        "made through main",
        "made compact",
        "made names --update",
        "made check",
    ],
    "survey": ["hello a.out -o measured"],
    "unwind": ["perf.data", "perf.data --compare sframe,cfi,fp"],
    "verify": ["hello", "hello --explain main", "hello --frame-pointers", "hello --frame-pointers --weight perf.data"],
}
BEFORE = {
    "report": ["survey hello -o surveyed"],
    "cbf": ["stack core.hello --format cbf -o hello.cbf", "cif encode core.hello -o hello.cif"],
    "cif": ["cif encode core.hello -o hello.cif"],
}
"""Commands whose files the others read."""
BESIDE = {"add": "derive", "stack": "unwind"}
"""Whose page has the keys too."""


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.usefixtures("folder")
def test_every_object_is_documented(verb: str) -> None:
    for before in BEFORE.get(verb, ()):
        run(*before.split())
    for call in CALLS[verb]:
        printed = [json.loads(line) for line in run(verb, *call.split(), "--json").stdout.splitlines()]
        assert printed or "check" in call
        assert undocumented(printed, verb, BESIDE.get(verb, verb)) == [], call
