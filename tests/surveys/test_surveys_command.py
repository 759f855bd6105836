"""`walkback survey`: what it tells, and paths and folders that it cannot look into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elfbuilder import ElfBuilder
from sframefiles import linked, small, written
from surveys.surveyed import elf, ended, names, objects, tables, write
from walkback import UnreadableError
from walkback.surveys.reading import Survey
from walkback.surveys.run import survey

pytestmark = pytest.mark.whole


def test_the_command_tells_what_it_found(files: Path, whole: Path, tmp_path: Path) -> None:
    status, out, err = ended(files, "-o", tmp_path / "survey", "--jobs", "2")
    assert status == 1
    assert f"{tmp_path}/survey: 73 files examined\n" in out
    assert "ELF files: 75 (42 distinct), " in out
    assert [line.split(":")[1] for line in err.splitlines()] == [f" {files}/broken.so", f" {files}/cut.tar"]
    assert tables(tmp_path / "survey") == tables(whole)
    status, out, err = ended(files, "-o", tmp_path / "survey", "--json")
    told = json.loads(out)
    assert (told["looked_through"], told["now"], told["places"], told["files"]) == (73, 0, 75, 42)
    assert len(told["unsurveyed"]) == 2
    assert sum(told["outcomes"].values()) == 42


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        *((None, "unwind tables"), ("auto", "unwind tables"), ("cfi", "call frame information")),
        *(("go", "Go's table"), ("orc", "the ORC table")),
    ],
)
def test_files_without_the_wanted_table_are_counted(tmp_path: Path, source: str | None, missing: str) -> None:
    write(tmp_path / "files", {"bare.o": bytes(ElfBuilder(kind=1).build())})
    chosen = [] if source is None else ["--source", source]
    assert f"\nOf these: 1 without {missing}\n" in ended(tmp_path / "files", "-o", tmp_path / "survey", *chosen)[1]


def test_a_survey_with_nothing_to_complain_of_is_fine(files: Path, tmp_path: Path) -> None:
    status, out, err = ended(files / "lib", "-o", tmp_path / "survey")
    assert (status, err) == (0, "")
    assert "40 files examined" in out
    _, out, _ = ended(files / "lib", "-o", tmp_path / "survey")
    assert "40 files examined, 40 of them in former runs" in out


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
    assert "1 file examined\n" in out
    assert (status, err) == (1, f"walkback: {tmp_path}/survey: no ELF file was found\n")


def test_paths_that_cannot_be_looked_into_are_told_and_the_others_surveyed(files: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    paths: list[str | Path] = [files / "lib", tmp_path / "fifo", tmp_path / "loop", tmp_path / "missing", "/dev/null"]
    status, out, err = ended(*paths, "-o", tmp_path / "survey")
    assert status == 1
    assert "40 files examined\n" in out
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
        told = "walkback: '': the path is empty\n"
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
