"""Stores and surveys in folders of somebody else, who has put there what nobody expects."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.commands import run, told
from sframefiles import linked, small, written

MARKERS = {"store": "walkback-store.json", "survey": "walkback-survey.json"}
DESCRIPTIONS = {"store": "segment=*/segment.json", "survey": "part=*/part.json"}
TABLES = {"store": "segment=*/hour=*/samples.parquet", "survey": "part=*/files.parquet"}
LOCKS = {"store": "lock", "survey": "readers"}
READ = {"store": ("store", "DIR", "top"), "survey": ("report", "DIR")}
KINDS = ("store", "survey")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and a survey."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "folded").write_text("main;leaf 3\n")
    assert run("store", folder / "store", "append", folder / "folded", "--time", "2026-11-21T14:00").returncode == 0
    assert run("survey", written(folder, linked(small().bytes())), "-o", folder / "survey").returncode == 0
    assert run("report", folder / "survey").returncode == 0  # which makes the lock of readers
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def read(kind: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return run(*(folder / kind if word == "DIR" else word for word in READ[kind]))


def replaced(path: Path, by: str) -> None:
    path.unlink()
    if by == "pipe":
        os.mkfifo(path)
    elif by == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(6 << 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [MARKERS, DESCRIPTIONS], ids=["marker", "description"])
@pytest.mark.parametrize("by", ["pipe", "device", "hole"])
def test_a_marker_or_description_that_is_no_small_file_is_refused(
    folder: Path, kind: str, name: dict[str, str], by: str
) -> None:
    (path,) = (folder / kind).glob(name[kind])
    replaced(path, by)
    status, line = told(read(kind, folder))
    what = "this is more than 16777216 bytes" if by == "hole" else "this is not a regular file"
    assert (status, line.startswith(f"{path}: {what}")) == (3, True), line


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [TABLES, LOCKS], ids=["table", "lock"])
def test_a_table_or_lock_that_is_a_pipe_is_refused(folder: Path, kind: str, name: dict[str, str]) -> None:
    (path,) = (folder / kind).glob(name[kind])
    replaced(path, "pipe")
    assert told(read(kind, folder)) == (3, f"{path}: this is not a regular file")


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("store/lock", "store DIR/store top"),
        ("store/compact.lock", "store DIR/store compact"),
        ("survey/readers", "report DIR/survey"),
        ("survey/lock", "survey DIR/file -o DIR/survey"),
    ],
)
def test_no_lock_is_made_where_a_link_leads(folder: Path, lock: str, command: str) -> None:
    (folder / lock).unlink()
    (folder / lock).symlink_to(folder / "victim")
    status, line = told(run(*command.replace("DIR", str(folder)).split()))
    assert (status, line) == (3, f"{folder / lock}: this is a link, and no lock")
    assert not (folder / "victim").exists()


def test_nothing_is_made_or_taken_away_where_a_link_in_place_of_staging_leads(folder: Path) -> None:
    (folder / "victim" / "empty").mkdir(parents=True)
    staging = folder / "store" / "staging"
    staging.rmdir()
    staging.symlink_to(folder / "victim")
    status, line = told(run("store", folder / "store", "compact"))
    assert (status, line) == (3, f"{staging}: this is a link, and not where segments are made")
    assert [path.name for path in (folder / "victim").iterdir()] == ["empty"]
