"""Folded stacks, the text of perf script, JSON lines and the tables."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from profiles import MODULES, NASTY, Recording, nasty, written
from walkback.export import folded, jsonlines, perfscript
from walkback.stacks import top
from walkback.stacks.stacks import END_WORDS, HOW_WORDS, End, How

pytestmark = pytest.mark.kernel


def harmless(name: str) -> bytes:
    control = {number: f"\\x{number:02x}" for number in (*range(32), 127)}
    text = name.translate(control).replace(";", ":")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").replace(b"?", "\ufffd".encode())


def test_folded() -> None:
    recording = Recording(
        ["leaf", "main", None, None, "sys"],
        ["/bin/p", "/bin/p", "/lib/l.so", "", "[kernel.kallsyms]"],
        [("p", [0, 1]), ("p", [0, 0, 1]), ("q", [2, 1]), ("p", [0, 1]), ("q", [4, 3]), ("q", [])],
        weights=[1, 10, 100, 1000, 5, 7],
        kernel=[False, False, False, False, True],
    )
    expected = b"p;main;leaf 1001\np;main;leaf;leaf 10\nq 7\nq;[unknown];sys 5\nq;main;[l.so] 100\n"
    assert written(folded.write, recording.profile()) == expected
    assert b"q;[unknown];sys_[k] 5\n" in written(folded.write, recording.profile(), kernel=True)


def test_folded_takes_frames_of_one_name_together() -> None:
    recording = Recording(["f", "f", "g"], ["/a", "/b", "/a"], [("c", [0, 2]), ("c", [1, 2]), ("c", [0, 1, 2])])
    assert written(folded.write, recording.profile()) == b"c;g;f 2\nc;g;f;f 1\n"


def test_folded_with_marks() -> None:
    recording = Recording(["f"], [""], [("c", [0]), ("c", [0])], ends=[End.COMPLETE, End.STACK_CUT])
    assert written(folded.write, recording.profile()) == b"c;f 2\n"
    assert written(folded.write, recording.profile().marked()) == b"c;[incomplete: stack-cut];f 1\nc;f 1\n"


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b;", ""]), st.lists(st.integers(0, 7), max_size=5), st.integers(1, 9)),
        max_size=20,
    )
)
def test_folded_sums_up_exactly(samples: list[tuple[str, list[int], int]]) -> None:
    symbols = ["f", "g", "f", "a;b", "a:b", "bytes \udcff", "\n", "h"]
    recording = Recording(symbols, [""] * 8, [(comm, stack) for comm, stack, _ in samples], [w for _, _, w in samples])
    expected: Counter[bytes] = Counter()
    for comm, stack, weight in samples:
        names = [harmless(comm) or b"[unknown]", *(harmless(symbols[frame]) for frame in reversed(stack))]
        expected[b";".join(names)] += weight
    lines = written(folded.write, recording.profile()).splitlines()
    assert lines == sorted(lines, key=lambda line: line.rpartition(b" ")[0])
    assert {line.rpartition(b" ")[0]: int(line.rpartition(b" ")[2]) for line in lines} == expected


def test_folded_with_nasty_names() -> None:
    for line in written(folded.write, nasty().profile().marked(), kernel=True).splitlines():
        stack, _, weight = line.rpartition(b" ")
        assert weight.isdigit()
        assert stack.count(b";") in {2, 3}


def test_perf_script() -> None:
    recording = Recording(
        ["leaf", None, "sys", None],
        ["/bin/p", "/bin/p", "[kernel.kallsyms]", ""],
        [("prog one", [2, 0, 1, 3]), ("p", [])],
        weights=[250000, 1],
        threads=[(7, 123456), (7, 8)],
        times=[12036_486381_999, 0],
        kernel=[False, False, True, False],
    )
    expected = (
        b"prog one 123456 12036.486381:     250000 cpu-clock: \n"
        b"\t            1020 sys+0x2 ([kernel.kallsyms])\n"
        b"\t            1000 leaf+0x0 (/bin/p)\n"
        b"\t            1010 [unknown] (/bin/p)\n"
        b"\t            1030 [unknown] ([unknown])\n"
        b"\n"
        b"p     8     0.000000:          1 cpu-clock: \n"
        b"\n"
    )
    assert written(perfscript.write, recording.batches()) == expected
    with_pids = written(perfscript.write, recording.batches(1), pids=True)
    assert with_pids.startswith(b"prog one     7/123456 12036.486381: ")


def test_perf_script_with_processors() -> None:
    batch = replace(Recording(["f"], [""], [("c", [0])]).batches()[0], cpu=np.array([3]), event=None)
    assert written(perfscript.write, [batch]).startswith(b"c    10 [003]     0.000000:          1 \n")


def test_perf_script_with_nasty_names() -> None:
    text = written(perfscript.write, nasty().batches(7))
    samples = text.split(b"\n\n")
    assert samples.pop() == b""
    assert len(samples) == 78
    for sample in samples:
        lines = sample.split(b"\n")
        assert len(lines) == 3
        assert all(line.startswith(b"\t") for line in lines[1:])


def test_json() -> None:
    recording = Recording(
        ["leaf", None],
        ["/bin/p", ""],
        [("p", [0, 1]), ("p", [])],
        ends=[End.COMPLETE, End.NO_REGISTERS],
        threads=[(7, 8), (-1, -1)],
        times=[2**63, 5],
        files=["a.c", None],
        lines=[3, 0],
    )
    first, second = map(json.loads, written(jsonlines.write, recording.batches()).splitlines())
    assert first == {
        "pid": 7,
        "tid": 8,
        "comm": "p",
        "time": 2**63,
        "event": "cpu-clock",
        "period": 1,
        "frames": [
            {
                "pc": 0x1001,
                "lookup": 0x1000,
                "symbol": "leaf",
                "module": "/bin/p",
                "file": "a.c",
                "line": 3,
                "how": "registers",
            },
            {"pc": 0x1011, "lookup": 0x1010, "symbol": None, "module": None, "how": "sframe"},
        ],
        "end": "complete",
    }
    assert (second["frames"], second["end"], second["pid"]) == ([], "no-registers", -1)


@pytest.mark.parametrize("size", [1, 5, 100])
def test_json_with_nasty_names(size: int) -> None:
    recording = nasty()
    text = written(jsonlines.write, recording.batches(size))
    text.decode("ascii")
    found = [json.loads(line) for line in text.splitlines()]
    assert len(found) == 78
    clean = {
        name: name if name is None else "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in name)
        for name in [*NASTY, *MODULES]
    }
    for number, (sample, (comm, stack)) in enumerate(zip(found, recording.samples, strict=True)):
        assert sample["comm"] == clean[comm]
        assert sample["end"] == END_WORDS[End(number % 12)]
        assert [frame["symbol"] for frame in sample["frames"]] == [clean[recording.symbols[one]] for one in stack]
        assert [frame["module"] for frame in sample["frames"]] == [
            clean[recording.modules[one]] or None for one in stack
        ]
        assert [frame["how"] for frame in sample["frames"]] == [HOW_WORDS[How(one % 8)] for one in stack]


def test_json_forgets_texts_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from walkback.export import streamed

    recording = Recording([f"f{i}" for i in range(50)], [""] * 50, [("c", [i % 50, 49 - i % 50]) for i in range(200)])
    expected = written(jsonlines.write, recording.batches(200))
    monkeypatch.setattr(streamed, "_MOST_TEXTS", 8)
    assert written(jsonlines.write, recording.batches(3)) == expected


def test_batches_without_samples_or_frames() -> None:
    full = Recording(["f"], [""], [("c", [0])]).batches()[0]
    nothing = np.zeros(0, np.uint64)
    names = ("pid", "tid", "time", "period", "comm", "end", "frame", "pc", "lookup", "how")
    columns: dict[str, Any] = dict.fromkeys(names, nothing)
    none = replace(full, **columns, event=nothing, first=np.zeros(1, np.int64))
    for one in (perfscript, jsonlines):
        assert written(one.write, [none, full, none]) == written(one.write, [full])


def test_nothing_at_all() -> None:
    empty = Recording([], [], [])
    assert written(folded.write, empty.profile().marked()) == b""
    assert written(perfscript.write, []) == written(jsonlines.write, []) == b""
    assert written(top.write, empty.profile()).startswith(b"0 samples\n")


def rows(text: str, title: str) -> dict[str, tuple[str, ...]]:
    """The cells of one table, by the last column."""
    part = text[text.index(f"  {title}\n") :].split("\n\n", maxsplit=1)[0].splitlines()[1:]
    return {line.split(None, 4)[4]: tuple(line.split()[:4]) for line in part}


def test_top() -> None:
    recording = Recording(
        ["leaf", "rec", "main", "leaf"],
        ["/bin/p"] * 3 + ["/lib/l.so"],
        [("p", [0, 1, 1, 1, 2]), ("p", [1, 1, 2]), ("q", [3, 2]), ("q", [])],
        weights=[4, 2, 1, 1],
        ends=[End.COMPLETE, End.COMPLETE, End.NO_TABLE, End.NO_REGISTERS],
    )
    text = written(top.write, recording.profile(title="it")).decode()
    assert text.startswith("it: 4 samples, 2 with incomplete stacks (50.00 %)\n")
    functions = rows(text, "function")
    assert functions["rec  p"] == ("2", "25.00", "6", "75.00")
    assert functions["leaf  p"] == ("4", "50.00", "4", "50.00")
    assert functions["leaf  l.so"] == ("1", "12.50", "1", "12.50")
    assert functions["main  p"] == ("0", "0.00", "7", "87.50")
    callers = rows(text, "function  <-  its caller")
    assert callers["rec  p  <-  rec  p"] == ("2", "25.00", "6", "75.00")
    assert callers["rec  p  <-  main  p"] == ("0", "0.00", "6", "75.00")
    assert callers["leaf  p  <-  rec  p"] == ("4", "50.00", "4", "50.00")
    assert rows(text, "place")["rec+0x1  p"] == ("2", "25.00", "6", "75.00")


def test_top_is_limited_and_says_what_it_counts() -> None:
    recording = Recording([f"f{i}" for i in range(9)], [""] * 9, [("c", [i]) for i in range(9)], weights=[10**9] * 9)
    text = written(top.write, recording.profile(unit="nanoseconds"), limit=2).decode()
    assert text.startswith("9 samples, 9000000000 nanoseconds\n")
    assert list(rows(text, "function")) == ["f0", "f1"]


def test_top_with_nasty_names() -> None:
    text = written(top.write, nasty().profile(title="odd\x1b[31m"), limit=1000).decode()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 300


def test_weights_beyond_floating_point() -> None:
    recording = Recording(["f"], [""], [("c", [0])] * 3, weights=[2**60, 2**60 + 1, 2])
    assert written(folded.write, recording.profile()) == b"c;f %d\n" % (2**61 + 3)
