"""Files during which a worker dies, or the work fails, are told of; all others are as in any survey."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sframefiles import linked, small
from surveys.killed import children
from surveys.surveyed import (
    DIES,
    FAILS,
    SHRINKS,
    FaultyWorkers,
    StarvedWorkers,
    consistent,
    elf,
    objects,
    tables,
    write,
)
from waiting import PATIENCE
from walkback.surveys.run import survey
from walkback.workers.executors import LocalWorkers

Tables = dict[str, list[tuple[Any, ...]]]
pytestmark = pytest.mark.whole


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(60)})


@pytest.fixture
def expected(files: Path, tmp_path: Path) -> Tables:
    survey([files], tmp_path / "expected", jobs=2)
    return tables(tmp_path / "expected")


def without(found: Tables, *names: str) -> Tables:
    """Rows that are not of these files."""
    kept = {row[0] for row in found["places"] if Path(row[1]).name not in names}
    by_path = {"units": 0, "places": 1, "troubles": 0}
    return {
        table: [
            row for row in rows if (Path(row[by_path[table]]).name not in names if table in by_path else row[0] in kept)
        ]
        for table, rows in found.items()
    }


@pytest.mark.whole
def test_a_file_during_which_each_worker_dies_is_told_and_is_all_that_is_lost(
    files: Path, expected: Tables, tmp_path: Path
) -> None:
    write(files, {"killer.so": elf(100, DIES)})
    done = survey([files], tmp_path / "survey", workers=FaultyWorkers(2))
    assert done.done == 61
    found = tables(tmp_path / "survey")
    assert without(found, "killer.so") == expected
    [trouble] = objects(tmp_path / "survey", "troubles")
    assert (trouble["path"], trouble["what"]) == (str(files / "killer.so"), "died")
    # It does not count as examined, so it is tried again.
    assert survey([files], tmp_path / "survey", workers=LocalWorkers(2)).done == 1
    assert objects(tmp_path / "survey", "troubles") == []
    assert len(tables(tmp_path / "survey")["files"]) == 61


@pytest.mark.whole
def test_a_worker_that_dies_once_costs_nothing(files: Path, expected: Tables, tmp_path: Path) -> None:
    for times in (1, 2):
        left = tmp_path / f"left{times}"
        write(left, {str(number): b"" for number in range(times)})
        write(files, {"killer.so": elf(100, DIES + os.fsencode(left))})
        survey([files], tmp_path / f"survey{times}", workers=FaultyWorkers(2))
        assert list(left.iterdir()) == []
        found = tables(tmp_path / f"survey{times}")
        assert without(found, "killer.so") == expected
        assert len(found["files"]) == 61
        assert found["troubles"] == []


@pytest.mark.whole
def test_several_files_during_which_workers_die_are_each_told(files: Path, expected: Tables, tmp_path: Path) -> None:
    killers = {f"killer{number}.so": elf(100 + number, DIES) for number in range(3)}
    write(files, killers)
    survey([files], tmp_path / "survey", workers=FaultyWorkers(2))
    assert without(tables(tmp_path / "survey"), *killers) == expected
    assert [Path(row["path"]).name for row in objects(tmp_path / "survey", "troubles")] == sorted(killers)


def test_a_file_that_shrinks_while_it_is_read_is_told(files: Path, expected: Tables, tmp_path: Path) -> None:
    write(files, {"shrinking.so": elf(100, SHRINKS) + os.urandom(1 << 20)})
    survey([files], tmp_path / "survey", workers=FaultyWorkers(2))
    found = tables(tmp_path / "survey")
    assert without(found, "shrinking.so") == expected
    # The first worker dies of a bus error; the next finds the file as it is then, and that is cut off.
    assert (files / "shrinking.so").stat().st_size == 8192
    assert str(files / "shrinking.so") in {row[0] for row in (*found["units"], *found["troubles"])}


@pytest.mark.whole
def test_a_fault_of_ours_is_told_and_is_not_the_end(files: Path, expected: Tables, tmp_path: Path) -> None:
    write(files, {"faulty.so": elf(100, FAILS)})
    survey([files], tmp_path / "survey", workers=FaultyWorkers(2))
    assert without(tables(tmp_path / "survey"), "faulty.so") == expected
    [trouble] = objects(tmp_path / "survey", "troubles")
    assert (trouble["what"], trouble["message"]) == ("internal", "LookupError: a fault of ours")


def large_frames() -> bytes:
    """An ELF file with a section that is 60 MB when it is decompressed."""
    stored = zlib.compress(bytes(60 << 20))
    built = linked(small().bytes())
    built.section(".zdebug_frame", b"ZLIB" + (60 << 20).to_bytes(8, "big") + stored)
    return bytes(built.build())


def compressed_large_file() -> bytes:
    """An ELF file, compressed, that is too large to be decompressed in memory."""
    packer = zlib.compressobj(1, wbits=31)
    start = packer.compress(elf(7) + os.urandom(3 << 20))
    return start + b"".join(packer.compress(bytes(1 << 20)) for _ in range(260)) + packer.flush()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("limit", "make", "message"),
    [
        (resource.RLIMIT_AS, large_frames, "there is not enough memory for this file"),
        (resource.RLIMIT_AS, lambda: gzip.compress(elf(7) + bytes(100 << 20)), "takes more memory than there is"),
        (resource.RLIMIT_FSIZE, compressed_large_file, "File too large"),
    ],
)
def test_what_the_machine_lacked_is_told_and_tried_again_in_the_next_run(
    limit: int, make: Callable[[], bytes], message: str, tmp_path: Path
) -> None:
    """Nothing of it stays: the rows are of the files, and of no machine."""
    folder = write(tmp_path / "files", {"a.so": elf(1), "large": make()})
    survey([folder], tmp_path / "survey", workers=StarvedWorkers(limit))
    told = {(Path(row["path"]).name, row["what"], row["message"]) for row in objects(tmp_path / "survey", "troubles")}
    assert ("large", "unreadable", message) in told
    consistent(tmp_path / "survey")
    assert survey([folder], tmp_path / "survey", jobs=1).done == len(told)
    survey([folder], tmp_path / "fresh", jobs=1)
    assert tables(tmp_path / "survey") == tables(tmp_path / "fresh")
    assert len(tables(tmp_path / "fresh")["units"]) == 2


@pytest.mark.whole
@pytest.mark.parametrize("delay", [0, 0.1, 0.3, 0.6, 1])
def test_workers_killed_from_outside_are_replaced(files: Path, expected: Tables, delay: float, tmp_path: Path) -> None:
    """Whichever it is, and whatever it is doing."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.01):
            workers = [pid for pid in children(os.getpid()) if _is_worker(pid)]
            if workers:
                over.wait(delay)
                with suppress(ProcessLookupError):
                    os.kill(workers[0], signal.SIGKILL)
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        survey([files], tmp_path / "survey", workers=FaultyWorkers(2))
    finally:
        over.set()
        thread.join()
    assert tables(tmp_path / "survey") == expected


def _is_worker(pid: int) -> bool:
    """Processes under the server that forks them, which is a child of this one."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return parent != os.getpid() and b"forkserver" in Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return False


def test_after_an_error_no_process_is_left(files: Path, tmp_path: Path) -> None:
    def fail(_: Any) -> None:
        if any(map(_is_worker, children(os.getpid()))):
            raise LookupError

    with pytest.raises(LookupError):
        survey([files], tmp_path / "survey", jobs=2, progress=fail)
    time.sleep(0.2)
    assert not any(map(_is_worker, children(os.getpid())))


def test_a_script_that_starts_itself_again_is_told_so(files: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    arguments = f"[{str(files)!r}], {str(tmp_path / 'survey')!r}"
    script.write_text(f"from walkback.surveys.run import survey; survey({arguments})")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert 'under if __name__ == "__main__":' in done.stderr.splitlines()[-1]
    assert tables(tmp_path / "survey")["troubles"] == []
