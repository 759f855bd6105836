"""Code that a real program makes, replaces, moves and dumps, as perf and gdb see it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jitdump.jittedprogram import prepared
from live.subjects import running
from peers import root
from recordings.perfscript import Sample, ours, perf, record, theirs
from walkback import stack
from walkback.capture import images
from walkback.stacks.stacks import End

if TYPE_CHECKING:
    from walkback.capture.stacks import ThreadStacks

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for this machine")

MADE = {"first", "second"}
MONOTONIC = ("-k", "mono")
TEMPORARY = Path("/tmp")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("jitted"))


def recorded(program: Path, folder: Path, *options: str) -> Path:
    return record(folder / "perf.data", (program, program.parent), *options)


def injected(recording: Path) -> Path:
    output = recording.with_suffix(".jitted")
    # Or each file that perf makes is copied to the user's own cache.
    command: list[str | Path] = [perf(), "--buildid-dir", recording.parent / "cache", "inject", "--jit"]
    subprocess.run([*command, "-i", recording, "-o", output], check=True)
    return output


def made(samples: list[Sample]) -> dict[tuple[int, int], list[str]]:
    """The names of made code in each sample."""
    return {(one.tid, one.time): [frame.symbol for frame in one.frames if frame.symbol in MADE] for one in samples}


def spinning(samples: list[Sample]) -> list[Sample]:
    return [one for one in samples if any(frame.symbol == "spin" for frame in one.frames)]


def order(samples: list[Sample]) -> list[str]:
    """What ran one after the other."""
    found = [name for names in made(sorted(spinning(samples), key=lambda one: one.time)).values() for name in names]
    return [name for name, _ in groupby(found)]


@pytest.mark.peers
def test_samples_have_the_names_that_held_then(program: Path, tmp_path: Path) -> None:
    recording = recorded(program, tmp_path, *MONOTONIC)
    samples = ours(recording)
    assert order(samples) == ["first", "second", "first", "second"]
    assert {one.end for one in spinning(samples)} == {End.COMPLETE}
    jitted = injected(recording)
    shown = theirs(jitted)
    assert made(shown) == made(samples) == made(ours(jitted))
    modules = {frame.module for one in ours(jitted) for frame in one.frames if frame.symbol in MADE}
    assert modules == {frame.module for one in shown for frame in one.frames if frame.symbol in MADE}
    assert {one.end for one in spinning(ours(jitted))} == {End.COMPLETE}


@pytest.mark.peers
def test_the_last_name_holds_where_clocks_differ(program: Path, tmp_path: Path) -> None:
    assert order(ours(recorded(program, tmp_path))) == ["first", "second"]


@pytest.mark.peers
def test_a_dump_that_is_gone_is_reported(program: Path, tmp_path: Path) -> None:
    from walkback.capture.unwinding import Unwinding

    recording = recorded(program, tmp_path, *MONOTONIC)
    for dump in program.parent.glob("jit-*.dump"):
        dump.unlink()
    unwinding = Unwinding(recording)
    assert sum(len(batch) for batch in unwinding)
    assert [line for line in unwinding.troubles if line.endswith(".dump: No such file or directory")]


def seen(shot: ThreadStacks) -> list[str]:
    labels = shot.labels(0)
    return labels[labels.index("stay") : labels.index("main") + 1]


def test_a_live_process_and_a_core_file_have_what_came_last(program: Path, tmp_path: Path) -> None:
    with running(program, program.parent, "wait") as process:
        shot = stack(process.pid)
        assert seen(shot) == ["stay", "second", "run", "main"]
        assert shot.stacks.end.tolist() == [End.COMPLETE]
        at = int(shot.frame[shot.labels(0).index("second")])
        frames = shot.frames
        assert (frames.file or [])[at] == "made.source"
        assert (frames.line or [])[at] == 21
        assert frames.module[at] == f"{program.parent}/jit-{process.pid}.dump"
        gdb = shutil.which("gdb")
        if gdb is None:
            pytest.skip("needs gdb")
        core = tmp_path / "core"
        command = [gdb, "-nx", "-batch", "-p", str(process.pid), "-ex", f"generate-core-file {core}"]
        subprocess.run(command, capture_output=True, check=True)
    assert seen(stack(core)) == ["stay", "second", "run", "main"]


@pytest.mark.whole
def test_a_dump_need_not_say_which_machine_it_is_from(program: Path, tmp_path: Path) -> None:
    def forget(dump: Path) -> None:  # as Python 3.13.0 does
        with dump.open("r+b") as file:
            file.seek(12)
            file.write(bytes(4))

    with running(program, program.parent, "wait") as process:
        forget(program.parent / f"jit-{process.pid}.dump")
        shot = stack(process.pid)
        assert seen(shot) == ["stay", "second", "run", "main"]
        assert shot.stacks.end.tolist() == [End.COMPLETE]
    recording = recorded(program, tmp_path, *MONOTONIC)
    for dump in program.parent.glob("jit-*.dump"):
        forget(dump)
    assert {one.end for one in spinning(ours(recording))} == {End.COMPLETE}


def test_image_maps_leave_out_what_is_in_no_file(program: Path) -> None:
    with running(program, program.parent, "wait") as process:
        found = images(process.pid)
    # The dump itself is mapped once, so that perf sees it.
    assert sum(".dump" in (one.path or "") for one in found.images.images) == 1
    assert str(program) in [one.path for one in found.images.images]
    assert [note for note in found.notes if note.endswith("with code that is in no file")]


def test_what_somebody_else_owns_is_not_believed(program: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    with running(program, program.parent, "wait") as process:
        os.chown(program.parent / f"jit-{process.pid}.dump", 1, -1)
        assert "second" not in stack(process.pid).labels(0)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["python3.13", "python3.14", "node"])
def test_real_compilers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = record(tmp_path / "perf.data", compiler(name, tmp_path, monkeypatch), *MONOTONIC)
    samples = ours(recording)
    try:
        compare(samples, recording)
    finally:
        # Python has its dump in the folder for temporary files, and perf puts what it makes of it beside it.
        for pid in {one.tid for one in samples}:
            for path in (*TEMPORARY.glob(f"jit-{pid}.dump"), *TEMPORARY.glob(f"jitted-{pid}-*.so")):
                path.unlink()


def compare(samples: list[Sample], recording: Path) -> None:
    """Hold samples against perf and against the recording that perf made of it."""
    jitted = injected(recording)
    found = of_dumps(samples)
    assert found == of_dumps(ours(jitted))
    depth: dict[bool, int] = {True: 0, False: 0}
    for key, names in of_dumps(theirs(jitted)).items():
        # perf ends some stacks sooner, where it has no table.
        assert names == found[key][: len(names)]
        depth[len(names) == len(found[key])] += 1
    assert depth[True] > depth[False]
    assert sum(name in frame for names in found.values() for frame in names for name in ("fib", "outer")) > len(found)


def of_dumps(samples: list[Sample]) -> dict[tuple[int, int], list[str]]:
    """The names in each sample that are from a dump, or from what perf made of one."""
    made = re.compile(r".*/(jit-\d+\.dump|jitted-\d+-\d+\.so)")
    return {
        (one.tid, one.time): [frame.symbol for frame in one.frames if made.fullmatch(frame.module)] for one in samples
    }


def compiler(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | Path]:
    """The command of a program whose code is made at run time."""
    if name == "node":
        found = shutil.which(name)
        if found is None:
            pytest.skip("needs node")
        script = folder / "fib.js"
        script.write_text(
            "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
            "function outer() { return fib(27); }\n"
            "for (let i = 0; i < 30; i++) outer();\n"
        )
        return [found, "--perf-prof", "--perf-prof-unwinding-info", script]
    script = folder / "fib.py"
    script.write_text(
        "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "def outer():\n    return fib(20)\n"
        "for i in range(60):\n    outer()\n"
    )
    usr = root(name) / "usr"
    monkeypatch.setenv("PYTHONHOME", str(usr))
    libraries = usr / "lib/x86_64-linux-gnu"
    loader = next(
        one for one in (usr / "lib64/ld-linux-x86-64.so.2", libraries / "ld-linux-x86-64.so.2") if one.exists()
    )
    return [loader, "--library-path", libraries, usr / "bin" / name, "-X", "perf_jit", script]
