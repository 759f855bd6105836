"""What `walkback record` is asked for and cannot do: a line each, before anything is recorded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from capture.targets import state
from cli.commands import run, told
from recorder.programs import SHARES, built, needs_events
from waiting import eventually


def test_what_stands_behind_a_command_is_the_command_s(tmp_path: Path) -> None:
    run("record", "-o", tmp_path / "out.html", "touch", "--", "-o", cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"out.html", "-o"}


def test_a_name_that_stands_for_no_format_is_refused(tmp_path: Path) -> None:
    done = run("record", "-o", tmp_path / "out.xyz", "touch", tmp_path / "ran")
    assert done.returncode == 2
    assert b"out.xyz: this name stands for no format; give one with --format" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_one_process_is_recorded() -> None:
    done = run("record", "-p", "1", "-p", "2")
    assert (done.returncode, b"one process is recorded with -p" in done.stderr) == (2, True)


def test_an_output_has_a_name(tmp_path: Path) -> None:
    done = run("record", "-o", "", "--", "touch", tmp_path / "ran")
    assert (done.returncode, b"the name of the file is empty" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_limit_is_for_tables(tmp_path: Path) -> None:
    done = run("record", "--limit", "2", "--", "touch", tmp_path / "ran")
    assert (done.returncode, b"--limit is for --format top" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


@needs_events
def test_a_limit_is_how_many_rows_a_table_has(tmp_path: Path) -> None:
    done = run("record", "--format", "top", "--limit", "2", "--", built(tmp_path, SHARES))
    tables = done.stdout.decode().split("\n\n")[1:]
    assert [len(table.strip().splitlines()) for table in tables] == [3, 3, 3]


def test_modifiers_of_events_are_refused() -> None:
    said = "true: cycles:u: an event has no modifiers here; --no-kernel leaves the kernel out"
    assert told(run("record", "-e", "cycles:u", "true")) == (3, said)


def test_a_command_without_a_name_is_one_that_is_not_there(tmp_path: Path) -> None:
    assert told(run("record", "--", "", cwd=tmp_path)) == (3, "'': No such file or directory")


def test_an_output_that_cannot_be_written_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    for output in (tmp_path, tmp_path / "none" / "out.html"):
        status, line = told(run("record", "-o", output, "--", "touch", tmp_path / "ran"))
        assert status == 3
        assert line.startswith(f"cannot write {output}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "long"])
def test_a_time_is_a_number_of_seconds(seconds: str, tmp_path: Path) -> None:
    done = run("record", "-d", seconds, "--", "touch", tmp_path / "ran")
    assert done.returncode == 2
    assert b"Invalid value for '-d' / '--duration'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_not_there_is_one_line() -> None:
    assert told(run("record", "-p", "999999999")) == (3, "process 999999999: there is no such process")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "give a command"),
        (["-a", "-p", "1"], "give a command"),
        (["-a", "--sampler", "stops"], "--sampler stops is for"),
        (["--sampler", "stops", "-c", "1000", "-p", "1"], "are for events"),
        (["--sampler", "stops", "--stack-bytes", "64", "-p", "1"], "are for events"),
        (["--off-cpu", "-e", "cycles", "-a"], "cannot be combined"),
        (["--format", "perf", "--store", "x", "-a"], "record it without --store"),
        (["--label", "a=b", "-a"], "--label is for --store"),
        (["--live", "--", "true"], "--live is for a running process"),
        (["--live", "-a"], "standard output is none"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], what: str) -> None:
    done = run("record", *arguments)
    assert done.returncode == 2
    assert what in done.stderr.decode()


def test_a_process_that_has_no_name_is_one_line() -> None:
    assert told(run("record", "-p", "")) == (3, "'': no such process is running")


@needs_events
def test_a_process_that_has_ended_is_one_line() -> None:
    with subprocess.Popen(["true"]) as process:
        assert eventually(lambda: state(process.pid) == "Z")
        status, line = told(run("record", "-p", str(process.pid)))
    assert (status, line.partition(": ")[2]) == (
        3,
        "it has ended, and its parent has not asked for its status yet (a zombie)",
    )


@needs_events
def test_a_command_without_samples_leaves_the_usual_page_as_it_was(tmp_path: Path) -> None:
    page = tmp_path / "walkback.html"
    page.write_text("of before")
    command = [sys.executable, "-c", "raise SystemExit(9)"]
    done = run("record", "-c", str(10**12), "--", *command, cwd=tmp_path)
    assert (done.returncode, page.read_text()) == (9, "of before")
    assert b"walkback.html: it stays as it was" in done.stderr
    page.unlink()
    assert run("record", "-c", str(10**12), "--", *command, cwd=tmp_path).returncode == 9
    assert page.read_text().startswith("<!DOCTYPE html>")
