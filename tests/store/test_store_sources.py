"""Recordings, processes, profiles, folded stacks and backtraces, as a store keeps them."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recorded
from perfbuilder import CALLCHAIN, CONTEXT_KERNEL, CONTEXT_USER, IP, KERNEL, TID, TIME, Attr, Builder
from profiles import MODULES, NASTY, Recording
from store import plainreader
from store.made import HOUR, NOON
from walkback.base.errors import UnreadableError
from walkback.capture.frames import SIGNAL_HANDLER
from walkback.capture.stacks import Stopper
from walkback.capture.unwinding import Collector, Unwinding, unwind
from walkback.cbf.backtraces import Backtraces
from walkback.cif.imagemap import Image, ImageMap
from walkback.export import folded as folded_export
from walkback.store.store import Store

BUILD_ID = "ab" * 20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    return recorded.hello(tmp_path, f"-Wl,--build-id=0x{BUILD_ID}")


def stacks_of(store: Store) -> Counter[tuple[tuple[str | None, int, str | None], ...]]:
    """How often each stack is there."""
    return Counter(sample[1] for sample in plainreader.samples(store.path).elements())


# Recordings


def hello_stacks(
    program: Path,
) -> tuple[tuple[tuple[str, int, None], ...], tuple[tuple[str, int, None], ...]]:
    names = recorded.symbols(program)
    compute, main, start = names["compute"] + 4, names["main"] + 5, names["_start"] + 4
    whole = tuple((BUILD_ID, address, None) for address in (compute, main, start))
    begun = ((BUILD_ID, names["main"], None), whole[2])
    return whole, begun


def test_a_recording_is_kept_by_build_id_and_offset_without_names(store: Store, hello: Path, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded.recording(hello, times=3))
    with store.append(labels={"version": "1"}) as new:
        new.recording(path)
    whole, begun = hello_stacks(hello)
    found = plainreader.samples(store.path)
    assert stacks_of(store) == {whole: 12, begun: 3, whole[:1]: 3}
    sources = {sample[4:] for sample in found}
    assert sources == {("elsewhere", "hello", 100, 100, "cpu-clock", (("version", "1"),))}
    assert {sample[2] for sample in found} == {1}
    # The end of each stack is kept: one in six was cut.
    assert Counter(sample[3] for sample in found.elements()) == {0: 15, 3: 3}


def test_samples_weigh_their_periods_where_that_is_wanted(store: Store, hello: Path, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded.recording(hello))
    with store.append() as new:
        new.recording(path, by_period=True)
    assert sorted(sample[2] for sample in plainreader.samples(store.path)) == [1000, 2000, 3000, 4000, 5000, 6000]


def test_the_last_sample_was_when_the_file_was_written(store: Store, hello: Path, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded.recording(hello))
    os.utime(path, ns=(0, NOON + 7))
    with store.append() as new:
        new.recording(path)
    times = sorted(sample[0] for sample in plainreader.samples(store.path))
    assert times == [NOON + 7 - 1_000_000 * back for back in range(5, -1, -1)]
    assert new.notes == ["times are counted back from when the file was written; perf record -k mono keeps them"]


def test_a_recording_that_knows_its_clock_tells_the_time_itself(store: Store, tmp_path: Path) -> None:
    made = Builder(attrs=[Attr(IP | TID | TIME | CALLCHAIN)])
    made.features[29] = struct.pack("<IIQQ", 1, 1, NOON, 5000)
    made.sample(ip=1, pid=3, tid=3, time=5400, chain=[CONTEXT_USER, 1])
    path = tmp_path / "perf.data"
    path.write_bytes(made.file())
    with store.append() as new:
        new.recording(path)
    assert [sample[0] for sample in plainreader.samples(store.path)] == [NOON + 400]
    assert new.notes == []
    with store.append() as new:
        new.recording(path, start=NOON + HOUR)
    assert sorted(sample[0] for sample in plainreader.samples(store.path)) == [NOON + 400, NOON + HOUR]


def test_where_code_was_loaded_does_not_matter(store: Store, tmp_path: Path) -> None:
    """The same program and kernel, at other addresses: the frames are the same."""
    for number, (base, kernel) in enumerate(
        ((0x5555_0000_0000, 0xFFFF_8000_0000_0000), (0x7000_0000, 0xFFFF_F000_0000_0000))
    ):
        made = Builder(attrs=[Attr(IP | TID | TIME | CALLCHAIN)])
        made.mmap(-1, kernel, 1 << 20, kernel, "[kernel.kallsyms]_text", misc=KERNEL)
        made.comm(9, 9, "prog")
        made.mmap2(9, base, 1 << 20, 0, "/usr/bin/prog", build_id=bytes.fromhex(BUILD_ID))
        chain = [CONTEXT_KERNEL, kernel + 0x40, kernel + 0x50, CONTEXT_USER, base + 0x10, base + 0x21]
        made.sample(ip=kernel + 0x40, pid=9, tid=9, time=10 + number, chain=chain, misc=KERNEL)
        path = tmp_path / f"{number}.data"
        path.write_bytes(made.file())
        with store.append() as new:
            new.recording(path, start=NOON)
    store.compact()
    (block,) = store.blocks()
    assert (block.counts.samples, block.counts.stacks) == (2, 1)
    (frames,) = stacks_of(store)
    assert [frame[1] for frame in frames if frame[0] == BUILD_ID] == [0x10, 0x20]
    assert [frame[1] for frame in frames if frame[0] == "[kernel.kallsyms]"] == [0x40, 0x50]


def test_code_made_at_run_time_is_kept_by_name_and_place_in_it(store: Store, tmp_path: Path) -> None:
    pid = os.getpid()
    perf_map = Path(f"/tmp/perf-{pid}.map")
    try:
        for number, start in enumerate((0x10000, 0x900000)):
            perf_map.write_text(f"{start:x} 100 Frob::tick()\n")
            made = Builder(attrs=[Attr(IP | TID | TIME | CALLCHAIN)])
            made.sample(ip=start + 8, pid=pid, tid=pid, time=10, chain=[CONTEXT_USER, start + 8, 0x5000])
            path = tmp_path / f"{number}.data"
            path.write_bytes(made.file())
            with store.append() as new:
                new.recording(path, start=NOON)
    finally:
        perf_map.unlink(missing_ok=True)
    assert stacks_of(store) == {((None, 8, "Frob::tick()"), (None, 0x4FFF, None)): 2}


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not there")
def real(path: str) -> str:
    """One file has several names where /bin is a link."""
    return os.path.realpath(path) if path.startswith("/") else path


def looked_up(frames: Any, number: int) -> int:
    """Nothing called the code that handlers return to: it is looked up where it begins, not one byte before."""
    is_return = frames.symbol[number] in {SIGNAL_HANDLER, "__restore_rt"}
    return int(frames.address[number]) + is_return


@pytest.mark.whole
def test_every_sample_of_a_real_recording_is_there_at_its_time(store: Store, tmp_path: Path) -> None:
    """Against the frames that `unwind` itself gives."""
    path = tmp_path / "perf.data"
    work = "import json\nfor _ in range(4000): json.loads(json.dumps(list(range(300))))"
    record: list[str | Path] = [
        "perf",
        "record",
        "-k",
        "mono",
        "-F",
        "999",
        "--call-graph",
        "dwarf,16384",
        "-o",
        path,
        "--",
    ]
    begin = time.time_ns()
    done = subprocess.run([*record, sys.executable, "-c", work], capture_output=True, text=True, check=False)
    end = time.time_ns()
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[-200:]}")
    expected = []
    for batch in Unwinding(path, inline=False):
        frames = batch.frames
        for number in range(len(batch)):
            frame = batch.frame[batch.first[number] : batch.first[number + 1]].tolist()
            told = [(real(frames.module[one]), bool(frames.kernel[one]) or looked_up(frames, one)) for one in frame]
            expected.append((int(batch.time[number]), batch.comms[batch.comm[number]], told))
    assert len(expected) > 50
    with store.append() as new:
        new.recording(path)
    assert new.notes == []
    found = []
    for block in plainreader.live_blocks(store.path):
        paths = {one["build_id"] or one["path"]: one["path"] for one in plainreader.table(block, "modules")}
        for sample in plainreader.block_samples(block):
            told = [(real(paths.get(file, "")), address) for file, address, _ in sample[1]]
            # Addresses of the kernel count from its beginning.
            told = [(file, file.startswith("[kernel") or address) for file, address in told]
            found.append((sample[0], sample[5], told))
    expected.sort(key=lambda sample: sample[0])
    assert [sample[1:] for sample in found] == [sample[1:] for sample in expected]
    shift = found[0][0] - expected[0][0]
    assert all(mine[0] - its[0] == shift for mine, its in zip(found, expected, strict=True))
    assert begin <= found[0][0] <= found[-1][0] <= end


# Processes


def test_the_threads_of_a_live_process_are_samples_of_now(store: Store) -> None:
    target = subprocess.Popen(["sleep", "60"])
    try:
        stopper = Stopper(target.pid, inline=False)
        with store.append(host="here") as new:
            taken = new.captured(stopper)
            for _ in range(3):
                taken.add(stopper.shoot().batch())
    finally:
        target.kill()
        target.wait()
    found = plainreader.samples(store.path)
    assert sum(found.values()) == 3
    assert {sample[4:] for sample in found} == {("here", "sleep", target.pid, target.pid, "stopped", ())}
    for sample in found:
        assert abs(sample[0] - time.time_ns()) < 60 * 10**9
        assert any(len(file or "") == 40 for file, _, _ in sample[1])


# Profiles


def test_a_profile_is_kept_row_by_row(store: Store) -> None:
    made = Recording(
        ["spin", "main", None],
        ["", "/bin/x", "/bin/y"],
        [("a", [0, 1]), ("b", [2, 1]), ("a", [0, 1])],
        weights=[1, 2, 3],
    )
    with store.append(host="h") as new:
        new.profile(made.profile(), start=NOON)
    rows = {(sample[1], sample[2], sample[5]) for sample in plainreader.samples(store.path)}
    spin, main, unknown = ((None, 0, "spin"), ("/bin/x", 1, "main"), ("/bin/y", 2, None))
    known = {(tuple((file, name) for file, _, name in stack), weight, comm) for stack, weight, comm in rows}
    assert known == {
        (((None, "spin"), ("/bin/x", "main")), 4, "a"),
        ((("/bin/y", None), ("/bin/x", "main")), 2, "b"),
    }
    assert (spin[2], main[2], unknown[2]) == ("spin", "main", None)


def test_a_profile_with_its_samples_is_kept_sample_by_sample(store: Store, hello: Path, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded.recording(hello))
    unwinding = Unwinding(path, inline=False)
    collector = Collector(unwinding, threads=True, times=True)
    for batch in unwinding:
        collector.add(batch)
    with store.append() as new:
        new.profile(collector.profile(), start=NOON)
    found = plainreader.samples(store.path)
    assert sorted(sample[0] for sample in found) == [NOON + 1_000_000 * number for number in range(6)]
    assert {sample[5:8] for sample in found} == {("hello", 100, 100)}


def test_names_and_paths_that_are_no_text_are_spelled_out(store: Store) -> None:
    symbols = [*NASTY, *NASTY]
    modules = [MODULES[number % len(MODULES)] for number in range(len(symbols))]
    made = Recording(symbols, modules, [("\udcffcomm", [number]) for number in range(len(symbols))])
    with store.append(host="\udc80", labels={"\udc81": "\udc82"}) as new:
        new.profile(made.profile(), start=NOON)
    store.compact(every=True)
    assert store.check() == []
    found = plainreader.samples(store.path)
    assert {sample[4:6] for sample in found} == {("\\udc80", "\\udcffcomm")}
    assert {sample[9] for sample in found} == {(("\\udc81", "\\udc82"),)}
    names = {frame[2] for sample in found for frame in sample[1]}
    assert {"bytes \\udcff\\udc80", "line\nend", "x" * 5000, "\u2028"} <= names


# Folded stacks


def test_folded_stacks_come_back_line_by_line(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("web;main;handle;parse 12\nweb;main 3\ndb;main;handle 5\n\nidle 1\n")
    os.utime(path, ns=(0, NOON))
    with store.append() as new:
        new.folded(path)
    main, handle, parse = ((None, 0, name) for name in ("main", "handle", "parse"))
    found = {(sample[5], sample[1], sample[2]) for sample in plainreader.samples(store.path)}
    assert found == {
        ("web", (parse, handle, main), 12),
        ("web", (main,), 3),
        ("db", (handle, main), 5),
        ("idle", (), 1),
    }
    assert {sample[0] for sample in plainreader.samples(store.path)} == {NOON}


def test_a_frame_without_a_name_is_not_left_out(store: Store) -> None:
    with store.append() as new:
        new.folded([b"web;main;;spin 1\n"], start=NOON)
    (sample,) = plainreader.samples(store.path)
    assert [frame[2] for frame in sample[1]] == ["spin", None, "main"]


def test_folded_stacks_without_a_process(store: Store) -> None:
    with store.append() as new:
        new.folded([b"main;a b c 2\n", b"main 1"], start=NOON, with_process=False)
    found = {(sample[5], sample[1], sample[2]) for sample in plainreader.samples(store.path)}
    main = (None, 0, "main")
    assert found == {(None, ((None, 0, "a b c"), main), 2), (None, (main,), 1)}


@pytest.mark.parametrize("line", [b"main", b"main;x y", b" 5", b"main -5", b"main 1" + b"0" * 30, b"main 1.5"])
def test_a_line_that_is_no_folded_stack_is_told(store: Store, line: bytes) -> None:
    with pytest.raises(UnreadableError, match="line 2 does not end in a blank and a number"), store.append() as new:
        new.folded([b"main 1\n", line + b"\n"])
    assert store.blocks() == ()


def test_what_walkback_folds_is_kept_and_folds_to_the_same(store: Store, hello: Path, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded.recording(hello))
    with (tmp_path / "out.folded").open("wb") as out:
        folded_export.write(unwind(path), out)
    with store.append() as new:
        new.folded(tmp_path / "out.folded")
    lines = [
        f"{sample[5]};{';'.join(frame[2] for frame in reversed(sample[1]))} {sample[2]}\n"
        for sample in plainreader.samples(store.path)
    ]
    assert "".join(sorted(lines)) == (tmp_path / "out.folded").read_text()


# Backtraces


def test_backtraces_are_kept_by_build_id_and_offset(store: Store) -> None:
    images = ImageMap(64, None, [Image("/usr/bin/prog", bytes.fromhex(BUILD_ID), 0x40000, 0x50000)])
    kinds, values = [1, 2, 4, 2, 1], [0x40010, 0x40021, 5, 0x90001, 0x40010]
    backtraces = Backtraces(
        np.array([0, 4, 5]),
        np.array(kinds, np.uint8),
        np.array(values, np.uint64),
        np.array([1, 2, 1, 1, 1], np.uint64),
        np.array([False, True]),
        np.array([64, 64], np.uint8),
    )
    with store.append() as new:
        new.backtraces(backtraces, images, times=NOON, process="prog", pid=5)
    pc, ra = (BUILD_ID, 0x10, None), (BUILD_ID, 0x20, None)
    found = {(sample[1], sample[3], sample[5], sample[6]) for sample in plainreader.samples(store.path)}
    assert found == {
        ((pc, ra, ra, (None, 0, "[omitted]"), (None, 0x90000, None)), 0, "prog", 5),
        ((pc,), 6, "prog", 5),
    }
