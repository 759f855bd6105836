"""A survey from its beginning to its end: what is in it, and how it is brought up to date."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sframefiles import linked, small, written
from surveys.surveyed import elf, ended, objects, some_files, tables, tar, write
from walkback import UnreadableError
from walkback.base.errors import MissingError
from walkback.base.locks import locked
from walkback.elf import read_file
from walkback.surveys import layout
from walkback.surveys.digest import content_digest
from walkback.surveys.examine import examine
from walkback.surveys.folder import SurveyFolder
from walkback.surveys.reading import Survey
from walkback.surveys.run import Progress, survey


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("files"), some_files())


@pytest.fixture(scope="module")
def whole(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of these, to be compared with."""
    output = tmp_path_factory.mktemp("whole") / "survey"
    survey([files], output, jobs=2)
    return output


def names(folder: Path) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


# What is in it


def test_every_elf_file_has_its_places_and_each_content_its_rows_once(files: Path, whole: Path) -> None:
    found = tables(whole)
    places = [(Path(path).relative_to(files).as_posix(), member) for _, path, member, *_ in found["places"]]
    expected: list[tuple[str, str | None]] = [(name, None) for name in some_files() if name.endswith(".so")]
    expected += [("some.tar", "a/1.so"), ("some.tar", "a/100.so"), ("some.tar", "x/1.so"), ("cut.tar", "1.so")]
    assert sorted(places, key=str) == sorted(expected, key=str)
    contents = {row[0] for row in found["places"]}
    assert [row[0] for row in found["files"]] == sorted(contents)
    assert len(contents) == 42  # of 0 to 39, 100, and the broken one
    for content, path, member, *_ in found["places"]:
        if member is None:
            assert content == content_digest(read_file(path))


def test_all_names_of_hard_links_are_places(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"one": elf(1)})
    (tree / "two").hardlink_to(tree / "one")
    subprocess.run(["tar", "-C", tree, "-cf", tmp_path / "some.tar", "."], check=True)
    survey([tree, tmp_path / "some.tar"], tmp_path / "survey", jobs=1)
    places = [(Path(row["path"]).name, row["member"]) for row in objects(tmp_path / "survey", "places")]
    assert places == [("some.tar", "one"), ("some.tar", "two"), ("one", None), ("two", None)]
    assert len(tables(tmp_path / "survey")["files"]) == 1


def test_rows_are_those_of_the_examiner(files: Path, whole: Path) -> None:
    data = read_file(files / "lib/3.so")
    content = content_digest(data)
    expected = examine(data, content, debug_roots=())
    found = tables(whole)
    for table in layout.KEYED:
        assert sorted(row for row in found[table] if row[0] == content) == sorted(expected[table]), table


def test_units_are_what_was_looked_through(files: Path, whole: Path) -> None:
    expected = [
        (str(files / name), len(data), (files / name).stat().st_mtime_ns)
        for name, data in some_files().items()
        if name != "readme"
    ]
    assert tables(whole)["units"] == sorted(expected)


def test_what_breaks_off_is_told_and_what_came_before_is_there(files: Path, whole: Path) -> None:
    [trouble] = objects(whole, "troubles")
    assert trouble["path"] == str(files / "cut.tar")
    errors = [row for row in objects(whole, "files") if row["outcome"] == "error"]
    assert [row["content"] for row in errors] == [content_digest(read_file(files / "broken.so"))]
    assert errors[0]["error"]


def test_rows_are_sorted_as_the_layout_says(whole: Path) -> None:
    with Survey(whole).database() as db:
        for table, order in layout.ORDER.items():
            assert db.execute(f"FROM {table}").fetchall() == db.execute(f"FROM {table} ORDER BY {order}").fetchall()


def test_columns_have_the_types_of_the_layout(whole: Path) -> None:
    import pyarrow.parquet

    words = {
        "VARCHAR": "string",
        "UBIGINT": "uint64",
        "BIGINT": "int64",
        "UTINYINT": "uint8",
        "BOOLEAN": "bool",
        "VARCHAR[]": "list<element: string>",
        "UTINYINT[]": "list<element: uint8>",
    }
    [part] = SurveyFolder(whole).parts()
    for table, columns in layout.COLUMNS.items():
        schema = pyarrow.parquet.read_schema(part.file(table))
        assert {field.name: str(field.type) for field in schema} == {
            name: words[kind] for name, kind in columns.items()
        }, table


@pytest.mark.whole
@pytest.mark.parametrize("jobs", [1, 3])
def test_who_does_the_work_and_in_which_batches_makes_no_difference(
    files: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr("walkback.surveys.run._BATCH_FILES", jobs)
    monkeypatch.setattr("walkback.surveys.run._WRITTEN_EVERY", 0)
    survey([files], tmp_path / "survey", jobs=jobs)
    assert tables(tmp_path / "survey") == tables(whole)


def test_progress_rises_to_all_there_is(files: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    done = survey([files], tmp_path / "survey", jobs=1, progress=seen.append)
    assert (done.files, done.done) == (73, 73)
    last = seen[-1]
    assert (
        (last.files, last.bytes)
        == (last.all_files, last.all_bytes)
        == (73, sum(len(data) for name, data in some_files().items() if name != "readme"))
    )
    assert [one.files for one in seen] == sorted(one.files for one in seen)
    assert {one.workers for one in seen if one.finding} == {None}
    assert last.workers == 1
    assert seen[0].finding
    assert not last.finding


def test_a_package_is_told_with_the_files_in_it(tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb")
    write(
        tmp_path / "tree",
        {
            "usr/lib/x.so": elf(1),
            "DEBIAN/control": b"Package: made\nVersion: 1:2-3\n"
            b"Architecture: s390x\nMaintainer: a <b@c>\nDescription: d\n",
        },
    )
    (tmp_path / "debs").mkdir()
    os.system(f"dpkg-deb -b {tmp_path}/tree {tmp_path}/debs/made.deb >/dev/null")
    survey([tmp_path / "debs"], tmp_path / "survey", jobs=1)
    [place] = objects(tmp_path / "survey", "places")
    assert (place["member"], place["package"], place["package_version"]) == ("usr/lib/x.so", "made", "1:2-3")
    assert (place["package_architecture"], place["package_format"]) == ("s390x", "deb")


@pytest.mark.whole
def test_ten_thousand_files_in_one_archive_are_ten_thousand_places(tmp_path: Path) -> None:
    write(tmp_path, {"many.tar": tar({f"{number}.so": elf(number % 50) for number in range(10_000)})})
    survey([tmp_path / "many.tar"], tmp_path / "survey", jobs=1)
    found = tables(tmp_path / "survey")
    assert [len(found[table]) for table in ("units", "places", "files", "troubles")] == [1, 10_000, 50, 0]


def test_names_with_any_bytes_in_them_are_found_and_spelled_out(tmp_path: Path) -> None:
    strange = [b"a'b.so", b'q".so', b"new\nline.so", b"\xff\xfe.so", b"[x]*?.so", "\u00e9\u2028.so".encode()]
    folder = os.fsencode(write(tmp_path / "fil'es[1]", {"plain.so": elf(0)}))
    for number, name in enumerate(strange):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(elf(number))
    for _ in range(2):
        done = survey([os.fsdecode(folder)], tmp_path / "sur'vey[1]", jobs=1)
    assert (done.files, done.done) == (7, 0)
    paths = [row["path"] for row in objects(tmp_path / "sur'vey[1]", "places")]
    assert sorted(Path(path).name for path in paths) == sorted(
        ["plain.so", "a'b.so", 'q".so', "new\\x0aline.so", "\\xff\\xfe.so", "[x]*?.so", paths[-1].rpartition("/")[2]]
    )
    assert all(path.isprintable() for path in paths)


def test_a_name_that_looks_like_another_one_is_another_file(tmp_path: Path) -> None:
    write(tmp_path / "files", {"new\nline.so": elf(1), r"new\x0aline.so": elf(2)})
    for again in range(2):
        assert survey([tmp_path / "files"], tmp_path / "survey", jobs=1).done == (0 if again else 2)
        assert len(tables(tmp_path / "survey")["files"]) == 2


def test_a_sparse_file_is_the_same_as_its_dense_copy_and_costs_no_more(tmp_path: Path) -> None:
    data = elf(1) + bytes(5 << 20)
    write(tmp_path / "files", {"dense.so": data})
    with (tmp_path / "files/sparse.so").open("wb") as file:
        file.write(elf(1))
        file.truncate(len(data))
    with (tmp_path / "files/huge.so").open("wb") as file:
        file.write(elf(2))
        file.truncate(1 << 42)
    survey([tmp_path / "files"], tmp_path / "survey", jobs=1)
    places = {Path(row["path"]).name: row["content"] for row in objects(tmp_path / "survey", "places")}
    assert places["dense.so"] == places["sparse.so"] != places["huge.so"]
    assert sorted(row["bytes"] for row in objects(tmp_path / "survey", "files")) == [len(data), 1 << 42]


# Again


def test_again_nothing_is_looked_through_and_nothing_written(files: Path, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "survey")

    def written() -> dict[Path, tuple[int, int]]:
        return {
            path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (tmp_path / "survey").rglob("*.parquet")
        }

    before = written()
    done = survey([files], tmp_path / "survey", jobs=1)
    assert (done.files, done.done) == (73, 0)
    assert written() == before


def test_new_changed_and_vanished_files_give_what_a_survey_of_them_gives(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", some_files())
    survey([folder], tmp_path / "survey", jobs=1)
    write(
        folder, {"lib/0.so": elf(300), "lib/new.so": elf(2), "some.tar": tar({"b.so": elf(301)}), "late.so": elf(302)}
    )
    for name in ("lib/5.so", "lib/39.so", "cut.tar", "broken.so"):
        (folder / name).unlink()
    (folder / "lib/1.so").write_bytes(b"no ELF file any more")
    done = survey([folder], tmp_path / "survey", jobs=1)
    assert done.done == 4
    survey([folder], tmp_path / "fresh", jobs=1)
    assert tables(tmp_path / "survey") == tables(tmp_path / "fresh")
    assert (
        len(tables(tmp_path / "fresh")["files"]) == 42
    )  # 39, 100 and the broken one went, and three came; 0 and 5 have copies
    assert len(list((tmp_path / "survey").glob("part=*"))) == 1


def test_a_file_that_was_touched_is_looked_through_again_with_the_same_result(files: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(files, tmp_path / "files")
    survey([folder], tmp_path / "survey", jobs=1)
    former = tables(tmp_path / "survey")
    os.utime(folder / "lib/3.so", ns=(1, 1))
    assert survey([folder], tmp_path / "survey", jobs=1).done == 1
    found = tables(tmp_path / "survey")
    assert found.pop("units") != former.pop("units")
    assert found == former


def test_more_paths_may_be_added_and_none_taken_away(files: Path, tmp_path: Path) -> None:
    output = tmp_path / "survey"
    survey([files / "lib"], output, jobs=1)
    with pytest.raises(UnreadableError, match=rf"this is a survey of {files}/lib"):
        survey([files / "copies"], output, jobs=1)
    done = survey([files / "copies", files / "lib"], output, jobs=1)
    assert (done.files, done.done) == (70, 30)
    survey([files / "copies", files / "lib"], tmp_path / "fresh", jobs=1)
    assert tables(output) == tables(tmp_path / "fresh")


def test_rows_of_other_debug_files_are_not_mixed_with_these(files: Path, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="other debug files"):
        survey([files], whole, jobs=1, debug_roots=[str(tmp_path)])


# Folders


def test_a_folder_with_something_else_is_refused_and_left_alone(files: Path, tmp_path: Path) -> None:
    write(tmp_path / "full", {"mine": b"x"})
    with pytest.raises(UnreadableError, match="'mine' is in it"):
        survey([files], tmp_path / "full")
    assert names(tmp_path / "full") == {"mine"}
    with pytest.raises(UnreadableError, match="this is no survey"):
        tables(tmp_path / "full")


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b'{"version": 99}', b"3", b"\xff"])
def test_a_damaged_marker_is_an_error(whole: Path, tmp_path: Path, text: bytes) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    (tmp_path / "survey" / layout.MARKER.name).write_bytes(text)
    with pytest.raises(UnreadableError):
        tables(tmp_path / "survey")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"replaces": 3, "finished": true}', b'{"replaces": ["x"], "finished": 1}']
)
def test_a_part_that_does_not_say_what_it_is_is_an_error(whole: Path, tmp_path: Path, text: bytes) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    [part] = SurveyFolder(tmp_path / "survey").parts()
    (part.path / layout.MANIFEST).write_bytes(text)
    with pytest.raises(UnreadableError, match="does not describe a part"):
        tables(tmp_path / "survey")


@pytest.mark.whole
@pytest.mark.parametrize("table", layout.TABLES)
@pytest.mark.parametrize("damage", ["cut", "zeros", "gone", "other"])
def test_a_damaged_table_is_named(files: Path, whole: Path, tmp_path: Path, table: str, damage: str) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    [part] = SurveyFolder(tmp_path / "survey").parts()
    file = part.file(table)
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    elif damage == "other":
        shutil.copy(part.file("units" if table != "units" else "places"), file)
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else bytes(len(data)))
    for attempt in (
        lambda: tables(tmp_path / "survey"),
        lambda: survey([files / "lib", files], tmp_path / "survey", jobs=1),
    ):
        with pytest.raises(UnreadableError) as caught:
            attempt()
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_a_damaged_table_says_is_an_error_in_a_query_too(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    [part] = SurveyFolder(tmp_path / "survey").parts()
    data = bytearray(part.file("places").read_bytes())
    data[200:1200] = bytes(1000)
    part.file("places").write_bytes(data)
    with pytest.raises(UnreadableError, match=r"places\.parquet"), Survey(tmp_path / "survey").database() as db:
        db.execute("SELECT content, path, member FROM places ORDER BY ALL").fetchall()


def test_a_database_of_a_survey_reads_nothing_else(whole: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret": b"text"})
    for query in (
        f"FROM read_text('{tmp_path}/secret')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(UnreadableError), Survey(whole).database() as db:
            db.execute(query).fetchall()
    assert names(tmp_path) == {"secret"}


def test_two_surveys_do_not_work_in_one_folder(files: Path, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    folder = SurveyFolder(tmp_path / "survey")
    with locked(folder.path / layout.LOCK) as held:
        assert held
        with pytest.raises(UnreadableError, match="another survey is at work"):
            survey([files], tmp_path / "survey", jobs=1)


def test_what_somebody_reads_stays_until_nobody_does(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(20)})
    survey([folder], tmp_path / "survey", jobs=1)
    former = tables(tmp_path / "survey")
    with Survey(tmp_path / "survey").database() as db:
        write(folder, {"more.so": elf(50)})
        survey([folder], tmp_path / "survey", jobs=1)
        assert {table: db.execute(f"FROM {table}").fetchall() for table in layout.TABLES} == former
        assert len(tables(tmp_path / "survey")["files"]) == 21
    assert len(list((tmp_path / "survey").glob("part=*"))) == 3
    survey([folder], tmp_path / "survey", jobs=1)
    assert len(list((tmp_path / "survey").glob("part=*"))) == 1


def test_a_survey_of_nothing_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "files", {"readme": b"text"})
    with pytest.raises(MissingError, match=f"^{tmp_path}/files: there is no ELF file, package or archive here"):
        survey([tmp_path / "files"], tmp_path / "survey", jobs=1)
    assert not (tmp_path / "survey").exists()


# The command


def test_the_command_tells_what_it_found(files: Path, whole: Path, tmp_path: Path) -> None:
    status, out, err = ended(files, "-o", tmp_path / "survey", "--jobs", "2")
    assert status == 1
    assert f"{tmp_path}/survey: looked through 73 files\n" in out
    assert "ELF files: 75, 42 different ones of " in out
    assert [line.split(":")[1] for line in err.splitlines()] == [f" {files}/broken.so", f" {files}/cut.tar"]
    assert tables(tmp_path / "survey") == tables(whole)
    status, out, err = ended(files, "-o", tmp_path / "survey", "--json")
    told = json.loads(out)
    assert (told["looked_through"], told["now"], told["places"], told["files"]) == (73, 0, 75, 42)
    assert len(told["unsurveyed"]) == 2
    assert sum(told["outcomes"].values()) == 42


def test_a_survey_with_nothing_to_complain_of_is_fine(files: Path, tmp_path: Path) -> None:
    status, out, err = ended(files / "lib", "-o", tmp_path / "survey")
    assert (status, err) == (0, "")
    assert "looked through 40 files" in out
    _, out, _ = ended(files / "lib", "-o", tmp_path / "survey")
    assert "looked through 40 files, 40 of them in former runs" in out


def test_sframe_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, linked(small().bytes()[:20]), "damaged.so")
    status, _, err = ended(file, "-o", tmp_path / "survey")
    assert status == 1
    assert err.startswith(f"walkback: {file}: .sframe")
    assert len(err.splitlines()) == 1


def test_an_archive_without_any_elf_file_is_told(tmp_path: Path) -> None:
    write(tmp_path / "files", {"readme": b"text"})
    subprocess.run(["ar", "rc", tmp_path / "files" / "none.a", tmp_path / "files" / "readme"], check=True)
    status, out, err = ended(tmp_path / "files", "-o", tmp_path / "survey")
    assert "looked through 1 file\n" in out
    assert (status, err) == (1, f"walkback: {tmp_path}/survey: there is no ELF file in what was looked through\n")


def test_paths_that_cannot_be_looked_into_are_told_and_the_others_surveyed(files: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    paths: list[str | Path] = [files / "lib", tmp_path / "fifo", tmp_path / "loop", tmp_path / "missing", "/dev/null"]
    status, out, err = ended(*paths, "-o", tmp_path / "survey")
    assert status == 1
    assert "looked through 40 files\n" in out
    assert {line.split(":")[1].strip() for line in err.splitlines()} == set(map(str, paths[1:]))
    assert not Survey(tmp_path / "survey").finished or len(tables(tmp_path / "survey")["troubles"]) == 4


def test_an_empty_folder_and_a_missing_one_make_no_survey(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    status, out, err = ended(tmp_path / "empty", tmp_path / "missing", "-o", tmp_path / "survey")
    assert (status, out, err) == (3, "", f"walkback: {tmp_path}/missing: No such file or directory\n")
    assert not (tmp_path / "survey").exists()


def test_if_no_path_can_be_looked_into_there_is_no_survey(files: Path, whole: Path, tmp_path: Path) -> None:
    status, out, err = ended(tmp_path / "missing", "-o", tmp_path / "survey")
    assert (status, out) == (3, "")
    assert err.count("\n") == 1
    assert str(tmp_path / "missing") in err
    assert names(tmp_path) == set()


def test_an_empty_name_is_no_path(files: Path, tmp_path: Path) -> None:
    for paths in ([""], [files / "lib", ""]):
        told = "walkback: '': an empty name is no path\n"
        assert ended(*paths, "-o", "survey", cwd=tmp_path) == (3, "", told)
        assert names(tmp_path) == set()
    assert ended(files / "lib", "-o", "", cwd=tmp_path) == (3, "", told)
    assert names(tmp_path) == set()


def test_a_path_that_is_gone_for_once_takes_no_results_away(files: Path, tmp_path: Path) -> None:
    shutil.copytree(files / "lib", tmp_path / "mounted")
    survey([tmp_path / "mounted"], tmp_path / "survey", jobs=1)
    former = tables(tmp_path / "survey")
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    with pytest.raises(UnreadableError):
        survey([tmp_path / "mounted"], tmp_path / "survey", jobs=1)
    assert tables(tmp_path / "survey") == former


@pytest.mark.whole
def test_a_path_or_folder_that_cannot_be_looked_into_for_once_keeps_its_rows(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, {f"in/{number}.so": elf(number)}) for number, name in enumerate("ab")]
    survey(folders, tmp_path / "survey", jobs=1)
    former = tables(tmp_path / "survey")
    for hide in (tmp_path / "b", tmp_path / "b/in"):
        away = hide.rename(tmp_path / "away")
        if hide != folders[1]:
            hide.symlink_to(hide)  # a loop, which is in no folder a trouble, but by its name
        for _ in range(2):
            survey([*folders, hide], tmp_path / "survey", jobs=1)
            found = tables(tmp_path / "survey")
            assert [(row[0], row[2]) for row in found.pop("troubles")] == [
                (str(hide), "missing" if hide == folders[1] else "unreadable")
            ]
            assert found == {table: rows for table, rows in former.items() if table != "troubles"}
        hide.unlink(missing_ok=True)
        away.rename(hide)
        assert survey([*folders, hide], tmp_path / "survey", jobs=1).done == 0
        assert tables(tmp_path / "survey") == former
    (tmp_path / "b/in/1.so").unlink()
    survey([*folders, folders[1] / "in"], tmp_path / "survey", jobs=1)
    assert len(tables(tmp_path / "survey")["files"]) == 1


@pytest.mark.parametrize(
    "args", [[], ["x"], ["x", "-o", "y", "--jobs", "0"], ["x", "-o", "y", "--jobs", "1", "--dask", "z"]]
)
def test_wrong_usage(tmp_path: Path, args: list[str]) -> None:
    status, out, _ = ended(*args, cwd=tmp_path)
    assert (status, out) == (2, "")
    assert names(tmp_path) == set()


def test_a_folder_that_cannot_be_made_is_told(files: Path, tmp_path: Path) -> None:
    write(tmp_path, {"file": b""})
    for output in ("no/folder", "file", "file/folder"):
        status, out, err = ended(files / "lib", "-o", output, cwd=tmp_path)
        assert (status, out) == (3, "")
        assert err.count("\n") == 1


def test_nothing_in_the_working_folder_is_run(tmp_path: Path) -> None:
    """Python looks there for modules if it is told to run a text, as processes are started."""
    code = b"from pathlib import Path; Path('ran').touch()"
    folder = write(tmp_path / "files", {"signal.so": elf(1), "multiprocessing.py": code, "pickle.py": code})
    program = Path(sys.executable).with_name("walkback")
    done = subprocess.run(
        [program, "survey", ".", "-o", tmp_path / "survey"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert names(folder) == {"signal.so", "multiprocessing.py", "pickle.py"}
    assert [row["path"] for row in objects(tmp_path / "survey", "units")] == ["./signal.so"]
