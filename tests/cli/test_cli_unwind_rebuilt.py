"""`walkback unwind`: programs that were built anew since the recording."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from capture.targets import THREADS, compiled, started
from cli.walked import CUT, FOLDED, complaints, unwind
from perfdata.running import perf
from recorded import hello, recording

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("own_cache")]


WAITING = '#include <unistd.h>\nint main() { write(1, "ready\\n", 6); for (;;) pause(); }'
OLD, NEW = "11" * 20, "22" * 20


@pytest.fixture
def rebuilt(tmp_path: Path) -> Path:
    """A recording of a program that was built anew since; the old build is kept as `old`."""
    program = hello(tmp_path, f"-Wl,--build-id=0x{OLD}")
    path = tmp_path / "perf.data"
    path.write_bytes(recording(program, build_id=bytes.fromhex(OLD)))
    program.rename(tmp_path / "old")
    hello(tmp_path, f"-Wl,--build-id=0x{NEW}")
    return path


def test_a_program_that_was_rebuilt_since_is_told_once_and_with_advice(rebuilt: Path) -> None:
    for args in ([], ["--compare", "cfi"]):
        done = unwind(rebuilt, *args)
        assert done.returncode == 1
        (line,) = [line for line in complaints(done) if "was recorded" in line]
        assert line.startswith(
            f"{rebuilt}: {rebuilt.with_name('hello')}: the file there has the build ID {NEW}, and {OLD}"
        )
        assert line.count("hello") == 1
        assert "--sysroot" in line
        assert "--buildid-dir" in line


def test_the_file_of_a_process_with_another_root_is_found_there(tmp_path: Path) -> None:
    """As in a container. The path is in no file system but that of the process."""
    program = hello(tmp_path, f"-Wl,--build-id=0x{OLD}")
    inside = tmp_path / "root" / "only" / "there"
    inside.mkdir(parents=True)
    waiting = compiled(
        tmp_path, '#include <unistd.h>\nint main() { write(1, "ready\\n", 6); for (;;) pause(); }', "-static"
    )
    waiting.rename(inside.parent.parent / "waiting")
    program.rename(inside / "hello")
    enter = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody change the root")
    with started(*enter, "chroot", tmp_path / "root", "/waiting") as process:
        data = recording(inside / "hello", build_id=bytes.fromhex(OLD), path="/only/there/hello", pid=process.pid)
        (tmp_path / "perf.data").write_bytes(data)
        done = unwind("-v", tmp_path / "perf.data")
        assert done.stdout.decode().splitlines() == FOLDED
        found = f"/only/there/hello: /proc/{process.pid}/root/only/there/hello (looked in /only/there/hello)"
        assert found in complaints(done)


@pytest.mark.parametrize("layout", [f"{OLD[2:]}/elf", OLD[2:]], ids=["folder", "file"])
def test_a_program_that_was_rebuilt_since_is_found_in_perfs_cache(layout: str, rebuilt: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / ".build-id" / OLD[:2] / layout
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "old")
    done = unwind("--buildid-dir", tmp_path / "cache", rebuilt)
    assert (done.returncode, done.stdout.decode().splitlines()) == (0, FOLDED)
    assert complaints(done)[0] == f"{rebuilt}: {CUT}"
    # The usual place comes from the environment, and a file found there must have the recorded build ID.
    assert unwind(rebuilt, env={"PERF_BUILDID_DIR": str(tmp_path / "cache")}).stdout == done.stdout
    place.unlink()
    place.symlink_to(tmp_path / "hello")
    assert unwind("--buildid-dir", tmp_path / "cache", rebuilt).returncode == 1


def test_a_file_without_recorded_build_id_that_has_changed_since_is_doubted(recorded: Path, tmp_path: Path) -> None:
    program = tmp_path / "hello"
    doubt = f"{recorded}: recorded without build IDs, and changed since, so that names may be wrong: {program}"
    assert doubt not in complaints(unwind(recorded))
    before = program.stat().st_ctime_ns - 1
    os.utime(recorded, ns=(before, before))
    for args in ([], ["--compare", "cfi"]):
        assert doubt in complaints(unwind(recorded, *args))
    assert unwind(recorded).stdout.decode().splitlines() == FOLDED
    # A package brings files with older times; perf links files into its cache, which changes nothing in them.
    os.utime(program, ns=(before - 10**9, before - 10**9))
    assert doubt in complaints(unwind(recorded))
    (tmp_path / "linked").hardlink_to(program)
    assert doubt not in complaints(unwind(recorded))
    (tmp_path / "linked").unlink()
    # Files that somebody has fetched are younger, and the right ones all the same.
    assert doubt not in complaints(unwind("--sysroot", "/", recorded))


def test_a_damaged_file_in_perfs_cache_is_named(rebuilt: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / ".build-id" / OLD[:2] / OLD[2:] / "elf"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"damaged")
    lines = complaints(unwind("--buildid-dir", tmp_path / "cache", rebuilt))
    assert any(f"{place}: this is not an ELF file" in line for line in lines)


# perf


@pytest.mark.peers
def test_a_real_recording_of_a_program_that_was_rebuilt_since(tmp_path: Path) -> None:
    program, path, cache = compiled(tmp_path, THREADS), tmp_path / "perf.data", tmp_path / "cache"
    limited = ("timeout", "--foreground", "-s", "TERM", "1", program)
    way = ("-q", "-e", "cpu-clock", "-F", "99", "--call-graph", "dwarf,4096")
    done = perf("--buildid-dir", cache, "record", *way, "-o", path, "--", *limited)
    if not path.exists():
        pytest.skip(f"perf cannot record so here: {done.stderr.decode()[-200:]}")
    compiled(tmp_path, THREADS, "-O3", "-DREBUILT")
    script = unwind("--format", "perf-script", "--buildid-dir", cache, path).stdout.decode()
    theirs = perf("--buildid-dir", cache, "script", "-i", path).stdout.decode()
    assert script.count("busy+0x") == theirs.count("busy+0x") > 10
