"""Standard output and standard error that are closed or full: exit statuses stay true, and nothing is a traceback."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.commands import NEWEST_VERB_TARGET, VERBS, WALKBACK, told
from sframefiles import linked, small, written
from waiting import PATIENCE


def run(redirection: str, *args: Path | str) -> subprocess.CompletedProcess[bytes]:
    """The command with a redirection of the shell."""
    command = ["sh", "-c", f'exec "$0" "$@" {redirection}', WALKBACK, *args]
    return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return written(tmp_path, linked(small().bytes()), "library.so")


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", VERBS)
def test_output_that_is_closed_is_one_line_and_3(verb: str, json: list[str], library: Path) -> None:
    done = run(">&-", verb, *json, library, *NEWEST_VERB_TARGET.get(verb, []))
    assert told(done) == (3, "standard output is closed")


@pytest.mark.parametrize("args", [["check", "--json"], ["find"], ["find", "--json"]])
def test_output_that_is_full_is_one_line_and_3(args: list[str], library: Path) -> None:
    done = run(">/dev/full", *args, library, *NEWEST_VERB_TARGET.get(args[0], []))
    assert told(done) == (3, "cannot write the output: No space left on device")


@pytest.mark.whole
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("verb", VERBS)
def test_errors_that_cannot_be_told_change_no_output_and_no_status(
    verb: str, redirection: str, library: Path, tmp_path: Path
) -> None:
    args = [verb, library, *(["f1", "nobody"] if verb == "find" else [tmp_path / "missing"])]
    whole = run("", *args)
    assert (whole.returncode, whole.stderr != b"") == (1 if verb == "find" else 3, True)
    done = run(redirection, *args)
    assert (done.returncode, done.stdout, done.stderr) == (whole.returncode, whole.stdout, b"")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">/dev/full", ">/dev/full 2>/dev/full"])
@pytest.mark.parametrize("args", [["bogus"], ["show", "--bogus"]])
def test_wrong_usage_is_2_wherever_it_is_told(args: list[str], redirection: str) -> None:
    done = run(redirection, *args)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", [">&- 2>&-", ">/dev/full 2>/dev/full"])
@pytest.mark.parametrize("args", [["--help"], ["show"]])
def test_output_that_cannot_be_written_is_3_even_if_that_cannot_be_told(
    args: list[str], redirection: str, library: Path
) -> None:
    done = run(redirection, *args, *([library] if args == ["show"] else []))
    assert (done.returncode, done.stderr) == (3, b"")
