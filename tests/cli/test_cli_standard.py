"""`-` is standard input and output for every verb, be they files, pipes or sockets, and never the name of a file."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import socket
import subprocess
from itertools import chain
from typing import TYPE_CHECKING, Any

import click
import pytest

from cli.commands import WALKBACK, told
from cli.hello import derived, hello_object, whole
from recorded import core, recording
from recorded import hello as walked
from waiting import PATIENCE
from walkback.base.errors import UnreadableError
from walkback.cli import paths
from walkback.cli.main import HEADINGS, cli
from walkback.cli.verbs.store import HEADINGS as STORE_HEADINGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.whole

SHOWN = re.compile(rb"/dev/stdin")


def run(*args: str | Path, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    streams.setdefault("stdout", subprocess.PIPE)
    command = [str(WALKBACK), *(os.fspath(one) for one in args)]
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        command, stderr=subprocess.PIPE, check=False, timeout=PATIENCE, **streams
    )
    return done


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = whole(tmp_path)
    assert run("add", path).returncode == 0
    return path


# Every parameter


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*words, name))


def test_every_parameter_that_is_a_path_says_what_a_dash_is() -> None:
    kinds = {type(one) for one in (paths.STREAM, paths.INPUT_FILE, paths.PLACED_FILE, paths.OUTPUT_FILE, paths.FOLDER)}
    seen = set()
    for words, command in commands(cli):
        for parameter in command.params:
            names = [*parameter.opts, getattr(parameter, "metavar", None) or ""]
            if isinstance(parameter.type, click.Path):
                assert type(parameter.type) in kinds, (words, parameter.name)
                seen.add(words[0])
            else:
                assert not {"--output", "FILE", "DIR", "FILE..."} & set(names), (words, parameter.name)
    assert seen == set(chain(*HEADINGS.values()))
    assert len([*chain(*STORE_HEADINGS.values())]) > 5


# Reading

READERS = [
    ("show", ()),
    ("show", ("--json",)),
    ("check", ("--json",)),
    ("find", ("main", "0x401000")),
    ("compare", ("--json",)),
    ("size", ("--json",)),
    ("report", ("--json",)),
    ("report", ()),
]


@pytest.mark.parametrize(("verb", "more"), READERS, ids=lambda one: " ".join(one) if isinstance(one, tuple) else one)
def test_what_comes_through_a_pipe_is_read_as_a_file_is(verb: str, more: tuple[str, ...], program: Path) -> None:
    of_file = run(verb, program, *more)
    assert of_file.stdout
    through = run(verb, "-", *more, input=program.read_bytes())
    assert (through.returncode, through.stderr) == (of_file.returncode, of_file.stderr)
    name = os.fsencode(program)
    named = SHOWN.sub(name, through.stdout)
    if verb == "report":  # which says what the file is called, without its folder
        named = re.sub(rb"\bstdin\b", os.fsencode(program.name), named)
    assert named.split() == of_file.stdout.split()


@pytest.mark.parametrize("way", ["file", "socket", "offset", "substitution"])
def test_it_does_not_matter_what_standard_input_is(way: str, program: Path) -> None:
    expected = run("show", "--json", "-", input=program.read_bytes()).stdout
    assert expected
    if way == "file":
        with program.open("rb") as file:
            found = run("show", "--json", "-", stdin=file)
    elif way == "offset":  # what another program has read already is not read again
        shifted = program.parent / "shifted"
        shifted.write_bytes(b"a line\n" + program.read_bytes())
        with shifted.open("rb", buffering=0) as file:
            assert file.readline() == b"a line\n"
            found = run("show", "--json", "-", stdin=file)
    elif way == "socket":
        ours, theirs = socket.socketpair()
        command: list[str | Path] = [WALKBACK, "show", "--json", "-"]
        with (
            ours,
            subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one,
        ):
            theirs.close()
            ours.sendall(program.read_bytes())
            ours.shutdown(socket.SHUT_WR)
            out, err = one.communicate(timeout=PATIENCE)
        found = subprocess.CompletedProcess((), one.returncode, out, err)
    else:
        command = ["bash", "-c", f'{WALKBACK} show --json <(cat "$0")', program]
        found = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
        found.stdout = re.sub(rb"/dev/fd/\d+", b"/dev/stdin", found.stdout)
    assert (found.returncode, found.stderr, found.stdout) == (0, b"", expected)


def test_raw_bytes_with_their_address_come_through_a_pipe(program: Path) -> None:
    raw = derived(program, "--address", "0x7000")
    for name in ("/dev/stdin@0x7000", "-@0x7000"):
        other = run("compare", "--", program, name, input=raw)
        assert (other.returncode, other.stderr) == (0, b"")
    linked = run("link", "/dev/stdin@0x7000", "-o", "-", input=raw)
    assert linked.stdout
    assert run("check", "-", "--address", "0x7000", input=linked.stdout).returncode == 0


def test_a_core_file_and_its_program_come_through_pipes(tmp_path: Path) -> None:
    program = walked(tmp_path)
    file = tmp_path / "core"
    file.write_bytes(core(program))
    expected = run("stack", file, "--exe", program)
    assert expected.stdout
    assert run("stack", "-", "--exe", program, input=file.read_bytes()).stdout == expected.stdout
    assert run("stack", file, "--exe", "-", input=program.read_bytes()).stdout.replace(
        b"/dev/stdin", os.fsencode(program)
    ).count(b"\n") == expected.stdout.count(b"\n")
    images = run("cif", "encode", "--hex", file, "--exe", program)
    assert images.stdout
    assert run("cif", "encode", "--hex", "-", "--exe", program, input=file.read_bytes()).stdout == images.stdout


def test_a_recording_comes_by_standard_input_and_its_stacks_leave_by_the_other(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(recording(walked(tmp_path)))
    expected = run("unwind", file)
    assert expected.stdout
    with file.open("rb") as opened:
        assert run("unwind", "-", "-o", "-", stdin=opened).stdout == expected.stdout
    with file.open("rb") as opened:
        assert run("store", tmp_path / "store", "append", "-", stdin=opened).returncode == 0
    assert run("store", tmp_path / "store", "flame", "--format", "folded", "-o", "-").stdout == expected.stdout


def test_what_comes_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_LARGEST", 1 << 16)
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as endless:
        assert endless.stdout is not None
        path = f"/dev/fd/{endless.stdout.fileno()}"
        try:
            with pytest.raises(UnreadableError, match=f"^{path}: this is more than 65536 bytes$"):
                paths.INPUT_FILE.convert(path, None, None)
        finally:
            endless.kill()


def test_what_cannot_be_kept_is_one_line_and_3(program: Path) -> None:
    command = ["bash", "-c", f"ulimit -f 1; trap '' XFSZ; {WALKBACK} show -"]
    done = subprocess.run(command, input=bytes(1 << 20), capture_output=True, check=False, timeout=PATIENCE)
    assert told(done) == (3, "/dev/stdin: File too large")


def test_a_disk_that_is_full_at_the_last_bytes_is_an_error_too(program: Path) -> None:
    contents = program.read_bytes()
    blocks = len(contents) // 1024  # of ulimit, so that the last bytes alone do not fit
    contents += bytes(1024 * blocks + 512 - len(contents))
    command = ["bash", "-c", f"ulimit -f {blocks}; trap '' XFSZ; {WALKBACK} show -"]
    done = subprocess.run(command, input=contents, capture_output=True, check=False, timeout=PATIENCE)
    assert told(done) == (3, "/dev/stdin: File too large")


@pytest.mark.parametrize("args", [("cbf", "decode"), ("cbf", "show"), ("cif", "decode"), ("cbf", "encode")])
def test_backtraces_without_an_end_are_refused(args: tuple[str, ...]) -> None:
    assert told(run(*args, "/dev/zero")) == (3, "/dev/zero: this is more than 268435456 bytes")
    command = ["bash", "-c", f"yes | {WALKBACK} {' '.join(args)} -"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    assert told(done) == (3, "/dev/stdin: this is more than 268435456 bytes")


def test_folded_stacks_in_one_line_without_an_end_are_refused(tmp_path: Path) -> None:
    done = run("store", tmp_path / "store", "append", "--from", "folded", "-", input=b"a;b" * (6 << 20))
    assert told(done) == (3, "/dev/stdin: line 1 has more than 16777216 bytes")


def test_standard_input_is_one_file_only() -> None:
    done = run("cbf", "decode", "-", "--images", "-", input=b"")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"standard input can be read only once here" in done.stderr


@pytest.mark.parametrize("verb", ["show", "check", "add"])
def test_nothing_at_all_is_one_line_and_3(verb: str) -> None:
    for streams in ({"stdin": subprocess.DEVNULL}, {"input": b""}):
        assert told(run(verb, "-", **streams)) == (3, "/dev/stdin: the file is empty")


# Writing

REWRITERS = {"add": (), "drop": (), "convert": ("--version", "2"), "fix": ("--version", "2"), "split": ()}


@pytest.mark.parametrize("verb", REWRITERS)
def test_a_verb_that_works_in_place_is_a_filter(verb: str, program: Path, tmp_path: Path) -> None:
    if verb == "split":
        program = hello_object(tmp_path)
        assert run("add", program).returncode == 0
    expected, more = tmp_path / "expected", REWRITERS[verb]
    done = run(verb, program, "-o", expected, *more)
    assert (done.returncode, done.stderr) == (0, b"")
    before = set(tmp_path.iterdir())
    for output in ((), ("-o", "-"), ("-o", "/dev/stdout")):
        through = run(verb, "-", *output, *more, input=program.read_bytes(), cwd=tmp_path)
        assert through.returncode == 0
        assert through.stdout == expected.read_bytes()
        account = SHOWN.sub(os.fsencode(program), through.stderr)
        account = account.replace(b"/dev/stdout", os.fsencode(expected))
        assert account == done.stdout, "the account must not stand in the file"
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["/dev/fd/0", "/proc/self/fd/0"])
def test_a_descriptor_is_not_written_in_place(name: str, program: Path) -> None:
    before = program.read_bytes()
    with program.open("rb") as file:
        done = run("drop", name, stdin=file)
    assert (done.returncode, program.read_bytes()) == (0, before)
    assert done.stdout == run("drop", "-", input=before).stdout != b""


def test_a_section_goes_to_standard_output_wherever_that_is(program: Path, tmp_path: Path) -> None:
    expected = derived(program)
    done = run("derive", program, "-o", "-")
    assert (done.returncode, done.stdout) == (0, expected)
    assert b"hello" in done.stderr or b"whole" in done.stderr
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            assert run("derive", program, "-o", "-", stdout=theirs).returncode == 0
        assert ours.makefile("rb").read() == expected
    with (tmp_path / "behind").open("wb") as file:
        file.write(b"before")
        file.flush()
        assert run("derive", program, "-o", "-", stdout=file).returncode == 0
    assert (tmp_path / "behind").read_bytes() == b"before" + expected
    assert not (tmp_path / "-").exists()


def test_relocations_and_charts_go_to_standard_output(tmp_path: Path) -> None:
    path = hello_object(tmp_path)
    beside = tmp_path / "relocs"
    assert run("derive", path, "-o", tmp_path / "section", "--relocs", beside).returncode == 0
    done = run("derive", path, "-o", tmp_path / "section", "--relocs", "-")
    assert done.stdout.startswith(beside.read_bytes())
    assert json.loads(done.stdout.splitlines()[0])
    refused = run("derive", path, "-o", "-", "--relocs", "-")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"go to one file" in refused.stderr


@pytest.mark.parametrize("verb", [*REWRITERS, "derive", "link"])
def test_a_binary_file_is_not_for_a_terminal(verb: str, program: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        before = program.read_bytes()
        done = run(verb, program, "-o", "-", *REWRITERS.get(verb, ()), stdout=theirs)
        assert done.returncode == 2
        assert b"is not for a terminal; use -o FILE, or a pipe" in done.stderr
        assert program.read_bytes() == before
        named = run(verb, program, "-o", os.ttyname(theirs), *REWRITERS.get(verb, ()))
        assert (named.returncode, named.stderr) == (2, done.stderr)
    finally:
        os.close(ours)
        os.close(theirs)


# Names


@pytest.mark.parametrize(
    "args",
    [
        ("survey", "-", "-o", "found"),
        ("survey", ".", "-o", "-"),
        ("survey", ".", "-o", "found", "--debug-root", "-"),
        ("store", "-", "top"),
        ("stack", "1", "--store", "-"),
        ("unwind", "perf.data", "--sysroot", "-"),
        ("unwind", "perf.data", "--buildid-dir", "-"),
    ],
    ids=" ".join,
)
def test_what_needs_a_path_takes_no_dash(args: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"./- is the file of that name" in b" ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_file_of_that_name_is_named_with_its_folder(program: Path, tmp_path: Path) -> None:
    shutil.move(program, tmp_path / "-")
    expected = run("show", "-", input=(tmp_path / "-").read_bytes()).stdout
    assert SHOWN.sub(b"./-", expected) == run("show", "./-", cwd=tmp_path, stdin=subprocess.DEVNULL).stdout
    assert run("drop", "./-", cwd=tmp_path).returncode == 0
    assert run("check", "./-", cwd=tmp_path).returncode == 1


def test_standard_input_is_appended_once(tmp_path: Path) -> None:
    done = run("store", tmp_path / "store", "append", "-", "-", input=b"a;b 1\n")
    assert done.returncode == 2
    assert b"standard input can be read only once here" in done.stderr
    empty = run("store", tmp_path / "store", "append", "-", input=b"")
    assert told(empty) == (1, f"{tmp_path}/store: there was nothing to add")


def test_a_chart_does_not_go_where_the_table_goes(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(recording(walked(tmp_path)))
    done = run("unwind", file, "--compare", "fp", "--chart", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"the table goes to standard output" in done.stderr


@pytest.mark.parametrize("verb", ["unwind", "survey", "show"])
def test_standard_error_may_be_closed(verb: str, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(recording(walked(tmp_path)))
    commands: dict[str, list[str | Path]] = {
        "unwind": ["unwind", file, "-o", tmp_path / "out"],
        "survey": ["survey", program, "-o", tmp_path / "out"],
        "show": ["show", program, "--nothing"],
    }
    done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", WALKBACK, *commands[verb]], capture_output=True, check=False)
    assert done.returncode == (2 if verb == "show" else 0)
    assert (tmp_path / "out").exists() == (verb != "show")
    assert b"Usage" not in done.stdout
