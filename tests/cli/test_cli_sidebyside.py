"""Many files in several processes: what is printed, and what happens when one of the processes does not live."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.commands import WALKBACK, on_a_terminal, run
from cli.hello import SOURCE, assembled
from sframefiles import linked, small, written

pytestmark = pytest.mark.whole

LARGE = b"\0" * (1 << 20)
"""Behind a file, so that it is worth more processes than one."""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Libraries with SFrame, and others that are none."""
    return among_others(bytes(linked(small().bytes()).build()), tmp_path)


@pytest.fixture
def described(tmp_path: Path) -> list[Path]:
    """The same with call frame information."""
    return among_others(assembled(SOURCE, "-nostdlib", "-static"), tmp_path)


def among_others(good: bytes, tmp_path: Path) -> list[Path]:
    contents = [good + LARGE, b"text\n", good, b"", good[:100], good, b"\x7fELF" + bytes(60), *[good] * 5]
    made = [written(tmp_path, content, f"file{number}") for number, content in enumerate(contents)]
    return [*made[:3], tmp_path / "missing", *made[3:]]


@pytest.mark.parametrize(
    "verb",
    [
        *(("show",), ("show", "--json"), ("show", "--color", "always"), ("show", "--format", "gnu"), ("check",)),
        *(("check", "--json"), ("size",), ("size", "--json"), ("verify",), ("verify", "--json")),
        *(("verify", "--frame-pointers"), ("compare", "--each"), ("show", "--source", "cfi")),
    ],
    ids=" ".join,
)
def test_several_processes_print_what_one_does(verb: tuple[str, ...], files: list[Path]) -> None:
    one, many = (run(*verb, "--jobs", jobs, *files) for jobs in ("1", "3"))
    assert (many.stdout, many.stderr, many.returncode) == (one.stdout, one.stderr, one.returncode)
    assert one.stderr.count(b"missing") == 1


def test_several_processes_add_what_one_does(described: list[Path], tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    printed = []
    for folder, jobs in zip(folders, ("1", "3"), strict=True):
        folder.mkdir()
        for file in described:
            if file.exists():
                shutil.copy(file, folder)
        (folder / "link").hardlink_to(folder / described[2].name)
        done = run("add", "--in-place", "--jobs", jobs, ".", cwd=folder)
        assert (folder / "link").samefile(folder / described[2].name)
        named = run("add", "--in-place", "--jobs", jobs, *(file.name for file in described), cwd=folder)
        printed += [(one.stdout, one.stderr, one.returncode) for one in (done, named)]
    assert printed[:2] == printed[2:]
    assert b"8 binaries" in printed[0][0]
    for file in folders[0].iterdir():
        assert file.read_bytes() == (folders[1] / file.name).read_bytes()


def test_a_bar_leaves_what_is_printed_where_it_goes(described: list[Path], tmp_path: Path) -> None:
    printed = []
    for jobs in ("1", "2"):
        folder = tmp_path / f"by{jobs}"
        folder.mkdir()
        for file in described:
            if file.exists():
                shutil.copy(file, folder)
        shown = on_a_terminal("add", "--in-place", "--jobs", jobs, folder, stdout=tmp_path / "printed")
        text = (tmp_path / "printed").read_bytes().replace(bytes(folder), b"")
        assert text.count(b"/file") == 8
        assert b"\x1b[2Kwalkback: /file6: offset 0x4" in shown.replace(bytes(folder), b"")  # no part of the bar's line
        printed.append(text)
    assert printed[0] == printed[1]


def test_a_file_that_is_done_again_counts(described: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(described[0], folder / "a")
    shutil.copy(described[0], folder / "b")
    (folder / "c").hardlink_to(folder / "b")
    script = """
import os, sys
from walkback.cli.main import main
from walkback.cli.verbs import add

here, link_again = os.getpid(), add.link_again
def killed(binary):
    if os.getpid() != here:
        os.kill(os.getpid(), 9)
    link_again(binary)
add.link_again = killed
sys.argv[1:] = ["add", "--in-place", "--jobs", "2", "."]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, timeout=60, check=False)
    assert (done.stderr, done.returncode) == (b"", 0)
    assert done.stdout.splitlines()[-1].startswith(b"2 binaries: 6 of 8 functions covered")
    assert (folder / "c").samefile(folder / "b")


def test_several_processes_derive_what_one_does(described: list[Path], tmp_path: Path) -> None:
    one, many = (run("derive", "--jobs", jobs, *described, "-o", tmp_path / f"by{jobs}") for jobs in ("1", "3"))
    assert (many.stdout, many.stderr, many.returncode) == (one.stdout, one.stderr, one.returncode)
    made = sorted(path.name for path in (tmp_path / "by1").iterdir())
    assert made == sorted(f"{described[number].name}.sframe" for number in (0, 2, 6, *range(8, 13)))
    for name in made:
        assert (tmp_path / "by1" / name).read_bytes() == (tmp_path / "by3" / name).read_bytes()


def test_colours_are_those_of_the_terminal(files: list[Path]) -> None:
    one, many = (on_a_terminal("show", "--jobs", jobs, *files) for jobs in ("1", "3"))
    assert many == one
    assert b"\x1b[" in one


def test_many_files_behind_a_slow_one_have_their_turn(files: list[Path]) -> None:
    good = [files[2]] * 400
    one, many = (run("check", "--jobs", jobs, files[0], *good) for jobs in ("1", "2"))
    assert (many.stdout, many.stderr, many.returncode) == (one.stdout, one.stderr, one.returncode)


def test_usage_is_refused_once(files: list[Path]) -> None:
    done = run("compare", "--each", "--jobs", "2", "--section", ".text", *files)
    assert (done.returncode, done.stdout) == (run("compare", "--each", "--section", ".text", files[0]).returncode, b"")


WORK = """
import os, sys, time, click
from walkback.cli.output import for_each_result

here = os.getpid()


def work(file):
    click.echo(f"begin {file}")
    if os.getpid() != here:
        WHAT
    click.echo(f"end {file}")
    return file


def then(file):
    click.echo(f"then {file}")
    return 0


sys.exit(for_each_result(sys.argv[1:], work, then, 2, writes=WRITES))
"""


def started(
    what: str, files: list[Path], stderr: int | None = None, *, writes: bool = False
) -> subprocess.Popen[bytes]:
    """A process that does some work on files, and in the processes that it forks something else, too."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    ends = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n" if writes else ""
    script = ends + WORK.replace("WHAT", what).replace("WRITES", str(writes))
    return subprocess.Popen(
        [sys.executable, "-c", script, *files],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "what",
    [
        "os.kill(os.getpid(), 9)",
        'click.echo("x" * 100_000); os._exit(0)',
        "raise click.UsageError('no')",
        "raise OSError(28, 'no space left')",
        "sys.exit(7)",
        "os.kill(os.getpid(), 9) if file.endswith('2') else None",
    ],
)
def test_what_one_of_them_cannot_do_is_done_without_it(what: str, files: list[Path]) -> None:
    done, _ = started(what, files).communicate(timeout=60)
    expected = [f"{word} {file}" for file in files for word in ("begin", "end", "then")]
    assert done.decode().splitlines() == expected


def processes_of(session: int) -> list[int]:
    """Those of a session that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, its, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(its) == session and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_none_is_left_when_the_command_ends(number: int, files: list[Path]) -> None:
    # A process that waits for orders ends without the command; one at work ends when that is done.
    process = started("time.sleep(3)", files, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while len(processes_of(process.pid)) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=60)
    until = time.monotonic() + 30
    while processes_of(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(process.pid) == []


@pytest.mark.parametrize("whole_group", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_writes_files_cleans_up(number: int, whole_group: bool, files: list[Path], tmp_path: Path) -> None:
    # A terminal sends its signal to all of them.
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    begun.mkdir()
    ended.mkdir()
    begin, end = (f"open(os.path.join('{folder}', os.path.basename(file)), 'x')" for folder in (begun, ended))
    what = f"try:\n            {begin}; time.sleep(60)\n        finally:\n            time.sleep(0.3); {end}"
    process = started(what, files, stderr=subprocess.DEVNULL, writes=True)
    until = time.monotonic() + 30
    while len(os.listdir(begun)) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    if whole_group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    process.communicate(timeout=30)
    until = time.monotonic() + 30
    while processes_of(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert sorted(os.listdir(ended)) == sorted(os.listdir(begun))
    assert len(os.listdir(ended)) == 2


def test_a_reader_that_has_seen_enough_ends_it(files: list[Path]) -> None:
    command = f"{WALKBACK} show --json --jobs 2 {' '.join(map(str, files * 50))} | head -c 100 | wc -c"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60)
    assert done.stdout.strip() == b"100"
