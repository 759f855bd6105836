"""`--store` of the verbs that walk: what they append, and what comes through a pipe."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from capture.targets import THREADS, compiled, started
from cli.commands import WALKBACK, run
from cli.stored import FOLDED, objects, text
from cli.walked import BUILD_ID
from recorded import core, hello
from walkback.cbf.encoding import encode as encode_backtrace
from walkback.cbf.layout import FrameCode

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.whole
def test_unwind_into_a_store(tmp_path: Path, recorded: Path) -> None:
    store = tmp_path / "store"
    done = run("unwind", recorded, "--store", store, "--label", "run=1")
    assert (done.returncode, done.stdout) == (0, b"")
    assert f"walkback: {store}: 6 samples, 3 stacks, in 1 hour" in done.stderr.decode().splitlines()
    both = run("unwind", recorded, "--store", store, "--format", "json", "--label", "run=2")
    assert len(both.stdout.splitlines()) == 6
    for number in ("1", "2"):
        assert text(store, "flame", "--format", "folded", "--label", f"run={number}") == FOLDED


def test_labels_are_for_a_store(recorded: Path) -> None:
    assert run("unwind", recorded, "--label", "run=1").returncode == 2
    assert run("stack", "1", "--label", "run=1").returncode == 2
    assert run("unwind", recorded, "--compare", "fp", "--store", "x").returncode == 2


def test_a_recording_that_cannot_be_read_leaves_no_samples(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(b"PERFILE2" + bytes(20))
    assert run("unwind", tmp_path / "perf.data", "--store", tmp_path / "store").returncode == 3
    assert not (tmp_path / "store").exists() or objects(tmp_path / "store")[0]["samples"] == 0


def test_a_core_file_into_a_store(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(core(hello(tmp_path, f"-Wl,{BUILD_ID}")))
    assert run("stack", tmp_path / "core", "--store", tmp_path / "store").returncode == 0
    assert text(tmp_path / "store", "flame", "--format", "folded") == "hello;_start;main;compute 1\n"


@pytest.mark.whole
def test_looks_at_a_process_into_a_store(tmp_path: Path) -> None:
    with started(compiled(tmp_path, THREADS, "-pthread")) as process:
        begin = time.time_ns()
        done = run("stack", str(process.pid), "--repeat", "3", "--store", tmp_path / "store", "--label", "by=hand")
        assert done.returncode == 0, done.stderr
    query = "SELECT tid, count(*) AS n, epoch_ns(min(time)) AS first FROM samples GROUP BY tid"
    threads = objects(tmp_path / "store", "sql", query)
    assert {one["n"] for one in threads} == {3}
    assert len(threads) == 5
    assert all(begin <= one["first"] <= time.time_ns() for one in threads)


@pytest.mark.whole
def test_everything_that_comes_through_a_pipe_is_appended(tmp_path: Path, recorded: Path) -> None:
    lines = "".join(f"p;a;b{number} 1\n" for number in range(5000)).encode()
    blob = encode_backtrace([(FrameCode.PC, 0x1000), (FrameCode.RA, 0x2001)]) * 30_000
    for number, (data, samples) in enumerate(((lines, 5000), (blob, 30_000), (b"p;a", 0), (b"", 0))):
        for place in ("-", "/dev/stdin"):
            store = tmp_path / f"store{number}{place[-1]}"
            done = subprocess.run(
                [WALKBACK, "store", store, "append", place], input=data, capture_output=True, check=False
            )
            assert done.returncode == {b"p;a": 3, b"": 1}.get(data, 0), done.stderr
            assert objects(store)[0]["samples"] == samples
    with (tmp_path / "perf.data").open("rb") as file:
        subprocess.run(
            [WALKBACK, "store", tmp_path / "file", "append", "-"], stdin=file, check=True, capture_output=True
        )
    assert objects(tmp_path / "file")[0]["samples"] == 6
