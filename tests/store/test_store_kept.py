"""Names that a store keeps: they are there when the files are gone, once, and can be made better later."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import walkback
from capture.targets import compiled, started
from capture.test_capture_inlined import PROGRAM
from cli.commands import run
from recorded import hello, recording
from store.plainstore import Frame, Sample, write_segment
from walkback.elf import FileSearch
from walkback.segments.database import connect
from walkback.stacks import difference
from walkback.store.names import read_names
from walkback.store.naming import Naming
from walkback.store.staging import Staging
from walkback.store.store import Store

pytestmark = pytest.mark.whole

ID, OTHER = "11" * 20, "22" * 20
NAMES = {"compute": 5, "main": 5, "_start": 5}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))


def recorded(folder: Path, *options: str, build_id: str = ID) -> tuple[Path, Path]:
    """A program and its recording."""
    folder.mkdir(exist_ok=True)
    program = hello(folder, *options, f"-Wl,--build-id=0x{build_id}")
    data = folder / "perf.data"
    data.write_bytes(recording(program, build_id=bytes.fromhex(build_id)))
    return program, data


def filled(store: Store, data: Path, **labels: str) -> None:
    with store.append(labels=labels) as new:
        new.recording(data)


def names(store: Store, **more: object) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in store.select(**more).top():  # type: ignore[arg-type]
        found[one.name] += one.total
    return found


def tables(store: Store) -> list[Path]:
    return sorted(store.path.rglob("names.parquet"))


def test_names_are_known_when_the_program_is_gone_or_another(tmp_path: Path) -> None:
    program, data = recorded(tmp_path / "a")
    store = Store(tmp_path / "store", create=True)
    filled(store, data)
    program.unlink()
    assert names(store) == NAMES
    recorded(tmp_path / "a", build_id=OTHER)
    chosen = store.select()
    assert {one.name for one in chosen.top()} == NAMES.keys()
    assert chosen.naming.troubles == {}


def test_two_builds_of_a_program_are_compared_by_name_when_both_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    for build_id, version, options in ((ID, "1", ()), (OTHER, "2", ("-Wl,-Ttext=0x500000",))):
        program, data = recorded(tmp_path / "a", *options, build_id=build_id)
        filled(store, data, version=version)
        program.unlink()
    old, new = (store.select(labels={"version": version}).profile() for version in "12")
    assert set(old.frames.address) != set(new.frames.address)
    changes = {one.name: (one.own_before, one.own_after) for one in difference(old, new).functions}
    assert changes == {"compute": (5, 5), "main": (1, 1), "_start": (0, 0)}


def test_a_second_append_keeps_only_what_is_new(tmp_path: Path) -> None:
    _, data = recorded(tmp_path / "a")
    store = Store(tmp_path / "store", create=True)
    filled(store, data)
    assert len(tables(store)) == 1
    filled(store, data)
    assert len(tables(store)) == 1
    _, other = recorded(tmp_path / "b", build_id=OTHER)
    filled(store, other)
    assert len(tables(store)) == 2
    assert store.check() == []
    assert sorted(one.named for one in store.names()) == [4, 4]


def test_compaction_makes_the_tables_one_and_forgets_what_no_stack_is_in(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    for place, build_id in (("a", ID), ("b", OTHER)):
        _, data = recorded(tmp_path / place, build_id=build_id)
        with store.append() as new:
            new.recording(data, start=3600 * 10**9 * (400_000 if place == "a" else 400_100))
        shutil.rmtree(tmp_path / place)
    store.compact()
    (table,) = tables(store)
    assert names(store) == {name: 2 * weight for name, weight in NAMES.items()}
    with connect() as db:
        assert read_names(db, [table]).build_ids == [ID, OTHER]
    store.expire(3600 * 10**9 * 400_050)
    assert len(tables(store)) == 1
    store.compact(every=True)
    with connect() as db:
        assert read_names(db, tables(store)).build_ids == [OTHER]
    assert names(store) == NAMES
    assert store.check() == []
    assert len(list(store.path.glob("segment=*"))) == 1


def test_names_that_a_compaction_drops_meanwhile_are_kept_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, data = recorded(tmp_path / "a")
    store = Store(tmp_path / "store", create=True)
    with store.append() as new:
        new.recording(data, start=3600 * 10**9 * 400_000)
    publish = Staging.publish

    def after_compaction(staging: Staging) -> None:
        monkeypatch.setattr(Staging, "publish", publish)
        store.expire(3600 * 10**9 * 400_050)
        store.compact(every=True)
        assert tables(store) == []
        publish(staging)

    monkeypatch.setattr(Staging, "publish", after_compaction)
    filled(store, data)
    program.unlink()
    assert names(store) == NAMES


def test_names_that_come_later_are_found_and_kept(tmp_path: Path) -> None:
    program, data = recorded(tmp_path / "a")
    away = tmp_path / "away"
    program.rename(away)
    store = Store(tmp_path / "store", create=True)
    filled(store, data)
    assert tables(store) == []
    (file,) = store.names()
    assert (file.build_id, file.path, file.named) == (ID, str(program), 0)
    assert store.update_names().rows == 0
    place = tmp_path / "debug" / ".build-id" / ID[:2] / ID[2:]
    place.parent.mkdir(parents=True)
    away.rename(place)
    done = store.update_names(Naming(FileSearch(debug_roots=[tmp_path / "debug"]), lines=True))
    assert done.rows == 2  # without the program its stacks do not lead to where it began
    shutil.rmtree(tmp_path / "debug")
    assert names(store).keys() == {"compute", "main"}
    assert store.update_names().rows == 0


def test_a_name_from_a_debug_file_takes_the_place_of_where_the_function_begins(tmp_path: Path) -> None:
    program, data = recorded(tmp_path / "a")
    whole = program.read_bytes()
    subprocess.run(["strip", program], check=True)
    store = Store(tmp_path / "store", create=True)
    filled(store, data)
    program.rename(tmp_path / "bare")
    before = names(store)
    assert set(before.values()) == {5}
    assert all(name.startswith("hello+0x") for name in before)
    (tmp_path / "bare").unlink()
    program.write_bytes(whole)
    assert store.update_names().rows == 3
    program.unlink()
    assert names(store) == NAMES


def test_a_profile_brings_its_names(tmp_path: Path) -> None:
    program, data = recorded(tmp_path / "a")
    store = Store(tmp_path / "store", create=True)
    with store.append() as new:
        new.profile(walkback.unwind(data))
    program.unlink()
    assert names(store) == NAMES


@pytest.fixture(scope="module")
def inlining(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("inlined"), PROGRAM, "-g", "-O2", "-Wl,--build-id")


def stacks(folder: Path, *more: str) -> list[str]:
    text = run("store", folder, "flame", "--format", "folded", *more).stdout.decode()
    return [line.rpartition(" ")[0].partition(";main")[2] for line in text.splitlines()]


def test_inlined_calls_are_kept_too(inlining: Path, tmp_path: Path) -> None:
    program = tmp_path / "prog"
    shutil.copy(inlining, program)
    folder = tmp_path / "store"
    with started(program) as child:
        assert run("stack", str(child.pid), "--store", folder).returncode == 0
        assert run("stack", str(child.pid), "--no-lines", "--store", tmp_path / "without").returncode == 0
    assert all(one.startswith(";outer;middle_[i];inner_[i]") for one in stacks(folder))
    assert all("_[i]" not in one for one in stacks(tmp_path / "without"))
    # What was not kept can be had as long as the file is there, and be kept later.
    assert all(one.startswith(";outer;middle_[i];inner_[i]") for one in stacks(tmp_path / "without", "--lines"))
    assert run("store", tmp_path / "without", "names", "--update").returncode == 0
    program.unlink()
    for made in (folder, tmp_path / "without"):
        assert all(one.startswith(";outer;middle_[i];inner_[i]") for one in stacks(made))
        assert all(one.startswith(";outer") and "inner" not in one for one in stacks(made, "--no-inline"))


def test_the_debug_file_of_a_program_that_is_gone_has_its_names(inlining: Path, tmp_path: Path) -> None:
    program, folder = tmp_path / "prog", tmp_path / "store"
    shutil.copy(inlining, program)
    build_id = (walkback.ElfFile(program).build_id or b"").hex()
    below = ("--sysroot", str(tmp_path / "root"))
    debug = tmp_path / "root" / "usr" / "lib" / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    with started(program) as child:
        assert run("stack", str(child.pid), "--store", folder).returncode == 0
    program.unlink()
    assert all("outer" not in one for one in stacks(folder))
    assert all(one.startswith(";outer;middle_[i];inner_[i]") for one in stacks(folder, "--lines", *below))
    done = run("store", folder, "names", "--update", *below)
    assert (done.returncode, b" 0.00 %" in done.stdout) == (0, False)
    assert all(one.startswith(";outer;middle_[i];inner_[i]") for one in stacks(folder))


def test_what_a_file_has_lost_since_is_still_known_where_files_are_asked(inlining: Path, tmp_path: Path) -> None:
    program = tmp_path / "prog"
    shutil.copy(inlining, program)
    folder = tmp_path / "store"
    with started(program) as child:
        assert run("stack", str(child.pid), "--store", folder).returncode == 0
    for option in ("--strip-debug", "--strip-all"):
        subprocess.run(["strip", option, program], check=True)
        for asked in ("--lines", "--no-demangle"):
            assert all(one.startswith(";outer;middle_[i];inner_[i]") for one in stacks(folder, asked)), (option, asked)


def test_nothing_is_kept_where_that_is_not_wanted(tmp_path: Path) -> None:
    _, data = recorded(tmp_path / "a")
    assert run("store", tmp_path / "store", "append", "--no-names", data).returncode == 0
    assert tables(Store(tmp_path / "store")) == []


def test_the_command_lists_files_and_their_names(tmp_path: Path) -> None:
    program, data = recorded(tmp_path / "a")
    program.rename(tmp_path / "away")
    run("store", tmp_path / "store", "append", data)
    done = run("store", tmp_path / "store", "names")
    assert (done.returncode, done.stdout.decode().split()) == (
        1,
        ["0", "of", "3", "frames", "0.00", "%", str(program), ID],
    )
    (tmp_path / "away").rename(program)
    done = run("store", tmp_path / "store", "names", "--update", "--json")
    update, file = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, update["rows"], file["named"]) == (0, 2, 3)


def test_parts_and_copies_of_a_function_are_one_unless_they_are_wanted_apart(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    for version, text in (("1", "p;main;run 3\np;main;run.cold 1\n"), ("2", "p;main;run.constprop.0 4\n")):
        (tmp_path / "folded").write_text(text)
        assert run("store", folder, "append", "--label", f"version={version}", tmp_path / "folded").returncode == 0

    def own(*more: str) -> dict[str, tuple[int, int]]:
        rows = map(
            json.loads, run("store", folder, "diff", "version=1", "version=2", "--json", *more).stdout.splitlines()
        )
        return {row["name"]: (row["own_before"], row["own_after"]) for row in rows}

    assert own()["run"] == (4, 4)
    assert own("--clones") == {"run": (3, 0), "run.cold": (1, 0), "run.constprop.0": (0, 4), "main": (0, 0)}


@pytest.mark.parametrize(
    "frames", [[], [(None, None, 0x10, None)], [(None, None, 0x10, "jit")], [(None, "/a", 1, None)]]
)
def test_what_is_in_no_file_needs_no_names(frames: list[Frame], tmp_path: Path) -> None:
    if frames:
        write_segment(tmp_path / "store", [Sample((frame,)) for frame in frames])
    store = Store(tmp_path / "store", create=True)
    assert (store.update_names().rows, store.names()) == (0, [])


def test_inlined_calls_of_folded_stacks_are_the_functions_that_they_are(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    with store.append() as new:
        new.folded([b"p;main;run_[i] 3\n", b"p;run 4\n"])
    assert names(store) == {"run": 7, "main": 3}


def test_a_file_without_a_build_id_is_named(tmp_path: Path) -> None:
    program = hello(tmp_path, "-Wl,--build-id=none")
    with Store(tmp_path / "store", create=True).append() as new:
        new.recording(recording(program))
    assert f"{program} has no build ID, so its inlined calls are not kept" in new.notes
