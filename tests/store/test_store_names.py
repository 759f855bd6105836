"""Names of stored frames: looked up late, in the file that has the build ID, and nowhere else."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import walkback
from recorded import core, hello, recording, symbols
from store.plainstore import Frame, Sample, write_segment
from walkback.base.arrays import I64, U64
from walkback.elf import FileSearch
from walkback.export.formats import FORMATS
from walkback.naming.names import FrameNames
from walkback.stacks.profile import Profile
from walkback.store.naming import Naming
from walkback.store.store import Store

BUILD_ID = "--build-id=0x00112233445566778899aabbccddeeff00112233"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return hello(tmp_path, f"-Wl,{BUILD_ID}")


@pytest.fixture
def store(tmp_path: Path, program: Path) -> Store:
    """The recording of the documents, in a store."""
    (tmp_path / "perf.data").write_bytes(recording(program))
    made = Store(tmp_path / "store", create=True)
    with made.append() as new:
        new.recording(tmp_path / "perf.data")
    return made


def folded(profile: Profile) -> bytes:
    out = io.BytesIO()
    FORMATS["folded"].export(profile, out)
    return out.getvalue()


def names(store: Store, naming: Naming | None = None) -> Counter[str]:
    return Counter({one.name: one.total for one in store.select(naming=naming).top()})


def test_a_store_tells_what_the_recording_does(store: Store, tmp_path: Path) -> None:
    found = store.select().profile()
    direct = walkback.unwind(tmp_path / "perf.data")
    assert folded(found) == folded(direct) != b""
    assert found.end.tolist().count(0) == direct.end.tolist().count(0)


def test_names_are_not_stored_but_looked_up(store: Store, program: Path) -> None:
    assert names(store) == {"compute": 5, "main": 5, "_start": 5}
    for file in store.path.rglob("*.parquet"):
        assert b"compute" not in file.read_bytes()
    program.unlink()
    chosen = store.select()
    assert [(one.name, one.total) for one in chosen.top()] == [("[hello]", 6)]
    assert list(chosen.naming.troubles) == [str(program)]


def test_a_file_with_another_build_id_gives_no_names(store: Store, program: Path, tmp_path: Path) -> None:
    hello(tmp_path, f"-Wl,{BUILD_ID[:-1]}4")
    chosen = store.select()
    assert [one.name for one in chosen.top()] == ["[hello]"]
    assert "was recorded" in chosen.naming.troubles[str(program)]


def test_a_file_is_found_in_a_sysroot(store: Store, program: Path, tmp_path: Path) -> None:
    place = tmp_path / "root" / str(program).lstrip("/")
    place.parent.mkdir(parents=True)
    shutil.move(program, place)
    assert names(store, Naming(FileSearch(sysroot=tmp_path / "root"))) == {"compute": 5, "main": 5, "_start": 5}


def test_a_file_is_found_by_its_build_id(store: Store, program: Path, tmp_path: Path) -> None:
    place = tmp_path / "debug" / ".build-id" / BUILD_ID[13:15] / BUILD_ID[15:]
    place.parent.mkdir(parents=True)
    shutil.move(program, place)
    assert names(store, Naming(FileSearch(debug_roots=[tmp_path / "debug"]))) == {"compute": 5, "main": 5, "_start": 5}


def plain(tmp_path: Path, *frames: Frame) -> Store:
    write_segment(tmp_path / "plain", [Sample((frame,)) for frame in frames])
    return Store(tmp_path / "plain")


def test_a_file_without_build_id_is_not_looked_into(tmp_path: Path, program: Path) -> None:
    address = symbols(program)["compute"]
    store = plain(tmp_path, (None, str(program), address, None), (None, str(program), address, "as stored"))
    assert names(store) == {"[hello]": 1, "as stored": 1}


def test_a_path_that_is_not_whole_is_not_looked_into(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = symbols(program)["compute"]
    assert names(plain(tmp_path, (BUILD_ID[13:], "hello", address, None))) == {"[hello]": 1}


@pytest.mark.parametrize("build_id", ["x", "abc", "", "0011"])
def test_what_is_no_build_id_finds_nothing(tmp_path: Path, program: Path, build_id: str) -> None:
    store = plain(tmp_path, (build_id, str(program), symbols(program)["compute"], None))
    assert names(store) == {"[hello]": 1}


def test_a_build_id_is_enough_to_name_a_file(tmp_path: Path) -> None:
    assert names(plain(tmp_path, ("00ff", None, 1, None))) == {"[00ff]": 1}


def test_only_what_is_shown_is_named(store: Store, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    find = walkback.naming.names.Names.find

    def counting(self: Any, module: I64, address: U64, **more: Any) -> FrameNames:
        asked.append(len(address))
        return find(self, module, address, **more)

    monkeypatch.setattr(walkback.naming.names.Names, "find", counting)
    store.select(process="nobody").profile()
    assert sum(asked) == 0
    store.select().profile()
    assert sum(asked) == 4


def test_shots_of_a_core_file(tmp_path: Path, program: Path) -> None:
    (tmp_path / "core").write_bytes(core(program))
    stopper = walkback.capture.Stopper(tmp_path / "core")
    store = Store(tmp_path / "store", create=True)
    with store.append(host="here", labels={"why": "crash"}) as new:
        new.captured(stopper).add(stopper.shoot().batch())
    chosen = store.select(labels={"why": "crash"}, host="here", process="hello")
    assert folded(chosen.profile()) == b"hello;_start;main;compute 1\n"
