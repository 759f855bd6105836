"""A cluster of Dask makes the same survey as this machine alone, also when workers are lost."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from surveys.surveyed import DIES, _Faulty, elf, ended, objects, tables, write
from waiting import PATIENCE
from walkback import UnreadableError
from walkback.surveys.run import survey
from walkback.workers.executors import DaskWorkers
from workers.cluster import Cluster

pytest.importorskip("distributed")

pytestmark = pytest.mark.whole


class FaultyDask(DaskWorkers):
    def executor(self) -> Executor:
        return _Faulty(super().executor())


def test_two_workers_make_the_survey_that_this_machine_makes(
    cluster: Cluster, files: Path, whole: Path, tmp_path: Path
) -> None:
    status, out, err = ended(files, "-o", tmp_path / "survey", "--dask", cluster.address)
    assert "73 files examined\n" in out, err
    assert status == 1
    assert len(err.splitlines()) == 2  # the damaged ones
    assert tables(tmp_path / "survey") == tables(whole)


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(
    cluster: Cluster, files: Path, whole: Path, tmp_path: Path
) -> None:
    left = write(tmp_path / "left", {"1": b""})
    killer = elf(500, DIES + os.fsencode(left))
    both = [write(tmp_path / "more", {"killer.so": killer}), files]
    survey(both, tmp_path / "survey", workers=FaultyDask(cluster.address))
    assert list(left.iterdir()) == []
    survey(both, tmp_path / "local", jobs=2)
    assert tables(tmp_path / "survey") == tables(tmp_path / "local")


def test_a_file_during_which_each_worker_dies_is_told_and_is_all_that_is_lost(
    cluster: Cluster, files: Path, whole: Path, tmp_path: Path
) -> None:
    both = [write(tmp_path / "more", {"killer.so": elf(500, DIES)}), files]
    survey(both, tmp_path / "survey", workers=FaultyDask(cluster.address))
    found, expected = tables(tmp_path / "survey"), tables(whole)
    troubles = [row for row in objects(tmp_path / "survey", "troubles") if row["path"].endswith("killer.so")]
    assert [row["what"] for row in troubles] == ["died"]
    assert [row for row in found.pop("troubles") if row[2] != "died"] == expected.pop("troubles")
    assert found == expected


def test_a_relative_path_counts_from_where_the_command_runs(cluster: Cluster, files: Path, tmp_path: Path) -> None:
    status, _, err = ended("lib", "-o", tmp_path / "survey", "--dask", cluster.address, cwd=files)
    assert (status, err) == (0, "")
    assert {row["path"] for row in objects(tmp_path / "survey", "places")} == {
        f"lib/{number}.so" for number in range(40)
    }


@pytest.mark.whole
def test_a_scheduler_that_ends_is_told_and_what_was_done_is_kept(files: Path, tmp_path: Path) -> None:
    own = Cluster(write(tmp_path / "own", {"x": b""}), 1)
    try:
        more = write(tmp_path / "more", {f"{number}.so": elf(number) for number in range(1000, 3000)})
        seen = []

        def end(progress: Any) -> None:
            seen.append(progress.files)
            if progress.files > 200:
                own.scheduler.kill()

        with pytest.raises(UnreadableError, match="no workers any more"):
            survey([more], tmp_path / "survey", workers=DaskWorkers(own.address), progress=end)
        kept = len(tables(tmp_path / "survey")["units"])
        assert kept == seen[-1] < 2000
    finally:
        own.close()
    assert survey([more], tmp_path / "survey", jobs=2).done == 2000 - kept


WAITING = """
import importlib
module = importlib.import_module("walkback.cli.workers")
module._PATIENCE = 0.5
from walkback.cli import main
main()
"""


@pytest.mark.whole
def test_without_a_worker_it_is_told_and_goes_on_when_one_comes(files: Path, tmp_path: Path) -> None:
    own = Cluster(write(tmp_path / "own", {"x": b""}), 0)
    args = ["survey", files / "lib", "-o", tmp_path / "survey", "--dask", own.address]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr.readline() == f"walkback: waiting for a worker of {own.address}\n"
        assert process.poll() is None
        own.add(1)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        own.close()
    assert (process.returncode, err) == (0, "")
    assert "40 files examined\n" in out


@pytest.mark.whole
def test_a_worker_of_another_version_is_told_and_no_file_suffers(files: Path, whole: Path, tmp_path: Path) -> None:
    told = {"walkback-9.9.dist-info/METADATA": b"Metadata-Version: 2.1\nName: walkback\nVersion: 9.9\n"}
    own = Cluster(write(tmp_path / "own", {"x": b""}), 1, first=write(tmp_path / "first", told))
    try:
        status, out, err = ended(files, "-o", tmp_path / "survey", "--dask", own.address)
    finally:
        own.close()
    assert (status, out) == (3, "")
    assert "a worker has walkback 9.9, " in err
    assert err.count("\n") == 1
    assert tables(tmp_path / "survey")["troubles"] == []
    survey([files], tmp_path / "survey", jobs=2)
    assert tables(tmp_path / "survey") == tables(whole)


IN_VAIN = """
import sys
from walkback import UnreadableError
from walkback.workers.executors import DaskWorkers
try:
    DaskWorkers(sys.argv[1], timeout=0.5)
except UnreadableError as error:
    print(error)
"""


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://", "127.0.0.1:x", ""])
def test_a_scheduler_that_is_not_there_is_told(address: str) -> None:
    # Each in a process of its own: what Dask leaves of one that failed can hinder the next.
    out = subprocess.run([sys.executable, "-c", IN_VAIN, address], capture_output=True, text=True, check=True).stdout
    assert "no scheduler of Dask answers: " in out


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(64)])
def test_what_answers_and_is_no_scheduler_is_named_at_once(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        command = [sys.executable, "-c", IN_VAIN, f"tcp://127.0.0.1:{server.getsockname()[1]}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.startswith("tcp://127.0.0.1:")
    assert "no scheduler of Dask answers: " in done.stdout
    assert done.stderr == ""


@pytest.mark.whole
def test_without_dask_it_is_told_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnreadableError, match=r"pip install 'walkback\[dask\]'"):
        DaskWorkers("tcp://127.0.0.1:9")
