"""A survey from its beginning to its end: what is in it, and how it is brought up to date."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from surveys.surveyed import elf, objects, some_files, tables, tar, write
from walkback import UnreadableError
from walkback.elf import read_file
from walkback.surveys import layout
from walkback.surveys.digest import content_digest
from walkback.surveys.examine import examine
from walkback.surveys.folder import SurveyFolder
from walkback.surveys.reading import Survey
from walkback.surveys.run import Progress, survey

pytestmark = pytest.mark.whole

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
    with pytest.raises(UnreadableError, match=rf"this folder has a survey of {files}/lib"):
        survey([files / "copies"], output, jobs=1)
    done = survey([files / "copies", files / "lib"], output, jobs=1)
    assert (done.files, done.done) == (70, 30)
    survey([files / "copies", files / "lib"], tmp_path / "fresh", jobs=1)
    assert tables(output) == tables(tmp_path / "fresh")


def test_rows_of_other_debug_files_are_not_mixed_with_these(files: Path, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="other debug files"):
        survey([files], whole, jobs=1, debug_roots=[str(tmp_path)])
    with pytest.raises(UnreadableError, match="this survey was made without --verify"):
        survey([files], whole, jobs=1, verify=True)
