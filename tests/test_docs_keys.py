"""The pages of verbs name every key of the JSON that these print."""

from __future__ import annotations

import json
import re

import pytest

from cli.inprocess import objects, page, run
from test_docs import folder  # noqa: F401

CALLS = {
    "check": ["damaged.so", "a.out --for glibc", "signal.so --for linux"],
    "compare": ["a.out hello", "hello --source cfi --other-source code --verify"],
    "convert": ["a.out -o converted --version 2", "signal.so -o first --version 1 --leave-out"],
    "derive": ["hello -o section"],
    "find": ["a.out main 0x1025"],
    "fix": ["a.out -o fixed"],
    "link": ["a.out signal.so -o linked"],
    "show": ["a.out", "one.o", "damaged.so", "hello --source cfi", "hello-go --source go", "module.ko --source orc"],
    "size": ["hello", "hello libhello.a"],
    "split": ["one.o -o split.o"],
    "stack": ["core.hello"],
    "survey": ["hello a.out -o measured"],
    "unwind": ["perf.data", "perf.data --compare sframe,cfi,fp"],
    "verify": ["hello", "hello --explain main", "hello --frame-pointers", "hello --frame-pointers --weight perf.data"],
}
COUNTED = {"described", "ends", "hows", "outcomes", "rules", "unlisted", "versions"}
"""Keys of objects whose own keys are words that are counted, or registers."""


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.usefixtures("folder")
def test_every_key_is_documented(verb: str) -> None:
    printed = [line for call in CALLS[verb] for line in run(verb, *call.split(), "--json").stdout.splitlines()]
    assert printed
    found = [one for line in printed for one in objects(json.loads(line))]
    words = {key for one in found for name in COUNTED & one.keys() if isinstance(one[name], dict) for key in one[name]}
    keys = {key for one in found for key in one}
    assert keys - words - set(re.findall(r"`(\w+)`", page(verb))) == set()
