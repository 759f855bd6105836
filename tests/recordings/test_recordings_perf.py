"""Real programs, recorded by perf: our stacks are those of `perf script`, and every difference has an explanation."""

from __future__ import annotations

import dataclasses
import platform
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recordings.differences import class_of, first_difference, outermost
from recordings.dumps import dumped
from recordings.gdbproof import gdb_stacks
from recordings.perfprograms import PROGRAMS, command_of
from recordings.perfscript import ours, record, theirs
from walkback.stacks.stacks import End, How

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordings.perfscript import Sample

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are for this machine"),
]

FEATURES = {
    "recursion": lambda samples: max(len(one.frames) for one in samples) > 250 and _ends(samples, End.STACK_CUT),
    "signals": lambda samples: _has(samples, "elsewhere") and _signals(samples) > 1,
    "aligned": lambda samples: _has(samples, "aligned") and _has(samples, "many"),
    "loading": lambda samples: _has(samples, "_dl_fixup") and (_has(samples, "dlclose") or _has(samples, "dlopen")),
    "library": lambda samples: any(frame.module == "[vdso]" for one in samples for frame in one.frames),
    "forks": lambda samples: len({one.tid for one in samples}) > 20,
    "static": lambda samples: _has(samples, "order"),
    "static-pie": lambda samples: _has(samples, "elsewhere") and _signals(samples) > 0,
    "jumps": lambda samples: _has(samples, "last") and _has(samples, "deeper"),
    "frame-pointers": lambda samples: _has(samples, "aligned"),
    "cpp": lambda samples: _has(samples, "_Unwind_RaiseException") and max(len(one.frames) for one in samples) > 60,
    "python": lambda samples: _has(samples, "_PyEval_EvalFrameDefault") or len(samples) > 0,
    "perl": lambda samples: _has(samples, "Perl_runops_standard") or len(samples) > 0,
    "node": lambda samples: any(frame.how is How.FP_GUESS for one in samples for frame in one.frames),
}
"""What must be seen of each program, so that the recording is of what it was made for."""
_RECORDINGS = 10
"""Of a program, until one has that."""


def _has(samples: list[Sample], name: str) -> bool:
    return any(frame.symbol.partition("@")[0] == name for one in samples for frame in one.frames)


def _ends(samples: list[Sample], end: End) -> bool:
    return any(one.end is end for one in samples)


def _signals(samples: list[Sample]) -> int:
    """The most signals on one stack."""
    return max(sum(frame.exact and not frame.kernel for frame in one.frames[1:]) for one in samples)


@pytest.mark.parametrize("name", PROGRAMS)
def test_stacks_are_those_of_perf_script(name: str, tmp_path: Path) -> None:
    # What a recording happens to catch is chance, and on a busy machine it catches less.
    assert any(len(walked) >= 30 and FEATURES[name](walked) for walked in recordings(name, tmp_path))


def recordings(name: str, folder: Path) -> Iterator[list[Sample]]:
    """The samples of one recording after the other, each of which holds against perf script."""
    program = PROGRAMS[name]
    for _ in range(_RECORDINGS):
        recording = record(folder / "perf.data", command_of(program, folder), dump=program.dump)
        shown, walked, sizes = theirs(recording), ours(recording), dumped(recording)
        by_time = {(one.tid, one.time): one for one in shown}
        assert [(one.tid, one.time, one.comm) for one in walked] == [(one.tid, one.time, one.comm) for one in shown]
        found: Counter[Any]
        found, unexplained = Counter(), []
        for one in walked:
            key = one.tid, one.time
            difference = first_difference(by_time[key], one, sizes[key])
            kind = "same" if difference is None else class_of(difference)
            found[kind] += 1
            if kind is None:
                unexplained.append(told(difference))
        print(name, dict(found))
        assert not unexplained, "\n\n".join([f"{len(unexplained)} of {len(walked)}", *unexplained[:3]])
        yield walked


@pytest.mark.parametrize("name", ["static", "forks"])
def test_gdb_says_what_we_say_where_perf_says_less(name: str, tmp_path: Path) -> None:
    """Of the classes in which perf shows fewer frames than we do, some samples of each, given to gdb."""
    program = PROGRAMS[name]
    recording = record(tmp_path / "perf.data", command_of(program, tmp_path))
    walked = {(one.tid, one.time): one for one in ours(recording)}
    chosen: dict[Any, Any]
    sizes, chosen = dumped(recording), {}
    for one in theirs(recording):
        key = one.tid, one.time
        difference = first_difference(one, walked[key], sizes[key])
        kind = None if difference is None else class_of(difference)
        # The vDSO is in no file that gdb could be given.
        in_files = all(frame.kernel or frame.module.startswith("/") for frame in walked[key].frames)
        if kind in {"not followed", "left out", "no code"} and in_files:
            chosen.setdefault(kind, []).append(key)
    assert chosen
    wanted = {key for keys in chosen.values() for key in keys[:: max(1, len(keys) // 5)][:6]}
    for key, pcs in gdb_stacks(recording, wanted, tmp_path):
        found = [frame.pc for frame in walked[key].frames if not frame.kernel]
        # Behind the outermost frame of the dynamic linker gdb goes on with what is on the stack.
        assert pcs[: len(found)] == found, [frame.symbol for frame in walked[key].frames]
        assert len(pcs) == len(found) or outermost(walked[key].frames[-1])


def test_what_is_wrong_is_not_explained(tmp_path: Path) -> None:
    """The classes of differences are narrow: of stacks that are as they should be, damaged ones are in none."""
    program = PROGRAMS["aligned"]
    recording = record(tmp_path / "perf.data", command_of(program, tmp_path))
    rng = random.Random(5)
    sizes, tried = dumped(recording), 0
    for one, other in zip(theirs(recording), ours(recording), strict=True):
        size, frames = sizes[other.tid, other.time], other.frames
        if first_difference(one, other, size) is not None or len(frames) < 4 or any(frame.kernel for frame in frames):
            continue
        tried += 1
        at = rng.randrange(1, len(frames) - 1)
        wrong = dataclasses.replace(frames[at], place=frames[at].place + 3, address=frames[at].address + 3)
        damaged = [
            frames[:at],
            frames[:at] + frames[at + 1 :],
            [*frames[:at], wrong, *frames[at + 1 :]],
            [*frames[:at], wrong, *frames[at:]],
            [*frames, wrong],
        ]
        for number, changed in enumerate(damaged):
            difference = first_difference(one, dataclasses.replace(other, frames=changed), size)
            assert difference is not None, number
            assert class_of(difference) is None, (number, told(difference))
    assert tried > 20


def told(one: Any) -> str:
    """A difference in words."""
    lines = [
        f"thread {one.ours.tid} time {one.ours.time} end {one.ours.end.name}, from frame {one.at}, {one.dumped} bytes"
    ]
    for title, frames in (("perf", one.theirs.frames), ("ours", one.ours.frames)):
        begin = max(0, one.at - 2)
        lines += [f"  {title} {i} {frame}" for i, frame in enumerate(frames[begin : one.at + 6], begin)]
    return "\n".join(lines)
