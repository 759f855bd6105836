"""The command as a process: exit statuses, standard output and error, terminals, pipes and names of files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import NEWEST_VERB_TARGET, VERBS, WALKBACK, on, on_a_terminal, run, told
from elfbuilder import ElfBuilder
from sframefiles import SFRAME, archive, linked, placing, relocatable, small, written

pytestmark = pytest.mark.whole

SFRAME_VERBS = (*VERBS, "derive", "compare", "size", "add", "drop", "convert", "link", "fix", "split")
ALL_VERBS = (*SFRAME_VERBS, "verify", "stack", "record", "unwind", "cbf", "cif", "store", "survey", "report")
ARGUMENTS = {"cbf": "COMMAND", "cif": "COMMAND", "report": "SURVEY|FILE", "stack": "PID|NAME|CORE", "store": "DIR"} | {
    "record": "{[--] COMMAND... | -p PID|NAME | -a}",
    "survey": "PATH...",
    "unwind": "PERF.DATA",
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return written(tmp_path, linked(small().bytes()), "library.so")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_modules_are_imported_ends_it_as_any_program(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text('import time\nprint("here", flush=True)\ntime.sleep(100)\n')
    with subprocess.Popen(
        [WALKBACK], env={"PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        assert (process.communicate()[1], process.returncode) == (b"", -signal.SIGINT)


# Help and usage


def test_help_tells_of_every_verb_and_of_exit_statuses() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    listed = re.findall(r"^  (\w+) {2,}", text.partition("Look at tables:")[2], re.MULTILINE)
    assert sorted(listed) == sorted(ALL_VERBS)
    for words in ("0 success", "1 findings", "2 wrong", "3 input"):
        assert words in text
    assert run("-h").stdout == done.stdout


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_help_of_a_verb_tells_of_its_options(verb: str) -> None:
    done = run(verb, "--help")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.startswith(f"Usage: walkback {verb} [OPTIONS] {ARGUMENTS.get(verb, 'FILE')}")
    for option in ("--json", "--section NAME", "--address A") if verb in VERBS else ():
        assert option in text
    assert "-h, --help" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_module_is_the_command(library: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "walkback", "show", library], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, run("show", library).stdout)


def test_the_version_is_that_of_the_package() -> None:
    assert re.fullmatch(rb"walkback \d+\.\d+\.\d+\n", run("--version").stdout)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["frobnicate"],
        ["show"],
        ["show", "--frobnicate", "x"],
        ["show", "--format", "dot", "x"],
        ["show", "--address", "here", "x"],
        ["show", "--address", "-1", "x"],
        ["check", "--for", "hurd", "x"],
        ["check", "--limit", "0", "x"],
        ["check", "--ignore", "no-such-rule", "x"],
        ["find", "x"],
        ["find", "x", ""],
        ["show", "--json", "--format", "gnu", "x"],
    ],
)
def test_wrong_usage_is_2_without_a_traceback(args: list[str]) -> None:
    done = run(*args)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr
    assert b"Traceback" not in done.stderr


# Input that cannot be read


def unreadable(folder: Path) -> dict[str, Path]:
    elf32 = linked(small().bytes()).build()
    elf32.data[4] = 1
    return {
        "No such file or directory": folder / "missing",
        "this is a directory": folder,
        "the file is empty": written(folder, b"", "empty"),
        "this is not an ELF file, archive or SFrame section": written(folder, b"some text\n", "text"),
        "32-bit ELF files are not supported": written(folder, elf32, "elf32"),
        "compressed": written(folder, linked(small().bytes(), flags=0x802), "compressed"),
        "[index-bounds]": written(folder, linked(small(num_fdes=99).bytes()), "damaged"),
    }


@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_read_is_one_line_that_names_the_file_and_3(verb: str, tmp_path: Path) -> None:
    for message, path in unreadable(tmp_path).items():
        if verb == "check" and message == "[index-bounds]":
            continue
        status, line = told(on(verb, path))
        assert status == 3
        assert line.startswith(f"{path}: ")
        assert message in line


@pytest.mark.parametrize("verb", VERBS)
def test_an_elf_file_without_a_section_is_one_line_and_1(verb: str, tmp_path: Path) -> None:
    path = written(tmp_path, ElfBuilder(kind=3))
    assert told(on(verb, path)) == (1, f"{path}: there is no .sframe section; `walkback add` makes one")
    nothing = written(tmp_path, linked(b"", kind=8), "nobits")
    status, line = told(on(verb, nothing))
    assert (status, "SHT_NOBITS" in line) == (1, True)


@pytest.mark.parametrize("verb", ["show", "check"])
def test_other_files_are_still_done_and_the_worst_status_holds(verb: str, tmp_path: Path, library: Path) -> None:
    text = written(tmp_path, b"some text\n", "text")
    none = written(tmp_path, ElfBuilder(kind=3), "none")
    done = run(verb, text, none, library)
    assert done.returncode == 3
    assert [line.split(": ")[1] for line in done.stderr.decode().splitlines()] == [str(text), str(none)]
    assert done.stdout == run(verb, library).stdout
    assert run(verb, none, library).returncode == 1
    assert run(verb, library, library).returncode == 0


def test_a_damaged_section_is_shown_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    builder = small()
    builder.functions[1].rows[2].info |= 0x60
    done = run("show", written(tmp_path, linked(builder.bytes())))
    assert done.returncode == 1
    assert b"f2  0x1040" in done.stdout
    assert b"! a row has word size code 3" in done.stdout
    assert b"1 function cannot be read whole" in done.stderr


# Output


@pytest.mark.parametrize("args", [["--help"], ["show"], ["show", "--json"], ["show", "--format", "gnu"], ["check"]])
def test_output_that_cannot_be_written_is_one_line_and_3(args: list[str], library: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(*args, *([] if args == ["--help"] else [library]), stdout=full)
    assert told(done) == (3, "cannot write the output: No space left on device")


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_standard_output_is_no_traceback(verb: str, library: Path) -> None:
    command = f"exec {WALKBACK} {verb} {library} {' '.join(NEWEST_VERB_TARGET.get(verb, []))} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False)
    assert b"Traceback" not in done.stderr


def large(folder: Path) -> Path:
    return written(folder, small(functions=5000).bytes(), "large")


@pytest.mark.parametrize("options", [[], ["--json"], ["--format", "gnu"]])
def test_a_closed_pipe_ends_quietly(options: list[str], tmp_path: Path) -> None:
    path = large(tmp_path)
    command: list[str | Path] = [WALKBACK, "show", *options, "--address", hex(SFRAME), path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_colour_is_for_terminals(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(num_fres=13).bytes()))
    assert b"\x1b[1mf1\x1b[0m" in on_a_terminal("show", path)
    assert b"\x1b[31mbroken" in on_a_terminal("check", path)
    assert b"\x1b" not in on_a_terminal("show", "--json", path)
    assert b"\x1b" not in on_a_terminal("show", "--format", "gnu", path)
    for verb in VERBS:
        assert b"\x1b" not in on(verb, path).stdout


def test_colour_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, linked(small(num_fres=13).bytes()))
    for verb, coloured in (("show", b"\x1b[1mf1\x1b[0m"), ("check", b"\x1b[31mbroken")):
        assert coloured in run(verb, "--color", "always", path).stdout
        assert b"\x1b" not in on_a_terminal(verb, "--color", "never", path)
        monkeypatch.setenv("NO_COLOR", "1")
        assert b"\x1b" not in on_a_terminal(verb, path)
        assert coloured in on_a_terminal(verb, "--color", "always", path)
        monkeypatch.setenv("NO_COLOR", "")
        assert coloured in on_a_terminal(verb, path)


def test_a_terminal_and_a_pipe_have_the_same_text(library: Path) -> None:
    plain = re.sub(rb"\x1b\[\d*m", b"", on_a_terminal("show", library)).replace(b"\r\n", b"\n")
    assert plain == run("show", library).stdout


# Names of files


AWKWARD = b"na\xffme \xe2\x82\xac"


def awkward(folder: Path) -> bytes:
    path = os.fsencode(folder) + b"/" + AWKWARD
    written(folder, linked(small().bytes())).rename(os.fsdecode(path))
    return path


@pytest.mark.parametrize("encoding", ["utf-8:surrogateescape", "utf-8:strict"])
@pytest.mark.parametrize("options", [["show"], ["show", "--json"], ["show", "--format", "gnu"], ["check", "--json"]])
def test_a_name_that_is_no_utf_8_is_shown(options: list[str], encoding: str, tmp_path: Path) -> None:
    path = awkward(tmp_path)
    done = run(options[0], path, path, *options[1:], env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    if "--json" in options:
        names = {json.loads(line)["file"] for line in done.stdout.splitlines() if b'"file"' in line}
        assert {os.fsencode(name) for name in names} == {path}
    else:
        assert AWKWARD in done.stdout


@pytest.mark.parametrize(
    "encoding",
    ["utf-8:surrogateescape", "utf-8:strict"],
)
def test_a_name_that_is_no_utf_8_is_checked(encoding: str, tmp_path: Path) -> None:
    done = run("check", awkward(tmp_path), env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_about_a_name_that_is_no_utf_8_is_one_line(tmp_path: Path) -> None:
    status, line = told(run("show", os.fsencode(tmp_path) + b"/mis\xffsing"))
    assert status == 3
    assert "No such file" in line


def test_an_error_about_a_name_with_a_newline_is_one_line(tmp_path: Path) -> None:
    status, line = told(run("show", tmp_path / "two\nlines"))
    assert status == 3
    assert "two\\x0alines" in line


@pytest.mark.parametrize("verb", ["show", "check"])
def test_a_name_with_a_newline_or_escape_code_spoils_no_line(verb: str, tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()), "two\nlines\x1b[31m")
    assert b"two\nlines" not in run(verb, path).stdout
    assert b"\x1b" not in run(verb, path).stdout


@pytest.mark.parametrize("verb", ["show", "find"])
def test_a_symbol_with_a_newline_or_escape_code_spoils_no_line(verb: str, tmp_path: Path) -> None:
    elf = linked(small().bytes(), symbols=False)
    elf.symbol(elf.symtab(), "two\nlines\x1b[31m", 0x1000, section=1, size=32)
    done = run(verb, written(tmp_path, elf), *(["0x1000"] if verb == "find" else []))
    assert b"two\nlines" not in done.stdout
    assert b"\x1b" not in done.stdout


# Kinds of files


def test_a_section_of_a_file_without_section_headers_is_shown(tmp_path: Path) -> None:
    image = linked(small().bytes()).build().header("e_shoff", 0).header("e_shnum", 0).header("e_shstrndx", 0)
    path = written(tmp_path, image)
    done = run("show", path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"{path}: SFrame data in PT_GNU_SFRAME at 0x2000, ".encode() in done.stdout
    assert run("check", path).returncode == 0


def test_an_empty_section_is_sound(tmp_path: Path) -> None:
    path = written(tmp_path, linked(b"", segment=False))
    assert run("show", path).stdout.decode() == f"{path}: .sframe section at 0x2000 is empty\n"
    assert run("show", "--format", "gnu", path).stdout == b"\nSection '.sframe' has no debugging data.\n"
    (line,) = map(json.loads, run("show", "--json", path).stdout.splitlines())
    assert line == {"type": "section", "file": str(path), "section": ".sframe", "address": 0x2000, "length": 0}
    assert run("check", path).stdout.decode() == f"{path}: .sframe: empty: no findings\n"
    status, line = told(on("find", path))
    assert status == 1
    assert "no function covers f1" in line


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_that_would_say_nothing_is_wrong_usage(verb: str, tmp_path: Path, library: Path) -> None:
    raw = written(tmp_path, small().bytes(), "raw.sframe")
    rest = ["0"] if verb == "find" else []
    for file, option, value in ((library, "--address", "0"), (raw, "--section", ".sframe")):
        done = run(verb, str(file), *rest, option, value)
        assert (done.returncode, done.stdout) == (2, b"")
        assert f"{option} is for ".encode() in done.stderr


def test_raw_bytes_are_placed_by_the_address(tmp_path: Path) -> None:
    path = written(tmp_path, small().bytes())
    assert b"function 1  0x1020, 32 bytes" in run("show", path, "--address", "0x2000").stdout
    assert b"function 1  0x1020, 32 bytes" in run("show", path, "--address", "8192").stdout
    assert b"function 1+0x1 " in run("find", path, "0x1021", "--address", "0x2000").stdout
    assert run("check", path).returncode == 0


def test_members_of_an_archive_are_named(tmp_path: Path) -> None:
    one = written(tmp_path, relocatable(small(), placing(3)), "one.o")
    two = written(tmp_path, relocatable(small(2), placing(2)), "two.o")
    path = archive(tmp_path, "all.a", one, two)
    shown = run("show", path).stdout.decode()
    assert f"{path}(one.o): .sframe section at 0x0" in shown
    assert f"{path}(two.o): .sframe section at 0x0" in shown
    assert run("check", path).stdout.decode().splitlines() == [
        f"{path}({name}): .sframe: 3 functions, 12 rows: no findings" for name in ("one.o", "two.o")
    ]
    assert f"\nFile: {path}(one.o)\n" in run("show", "--format", "gnu", path).stdout.decode()


def test_a_section_is_chosen_by_name(tmp_path: Path) -> None:
    elf = linked(small().bytes())
    elf.section(".sframe.cold", small(2, 1).bytes(), kind=0x6FFFFFF4, flags=2, addr=SFRAME)
    path = written(tmp_path, elf)
    assert run("show", path).stdout.count(b"SFrame version") == 2
    assert run("show", path, "--section", ".sframe.cold").stdout.count(b"SFrame version 2,") == 1
    assert told(run("show", path, "--section", ".cold")) == (1, f"{path}: there is no .cold section")


def test_a_further_section_is_shown_and_named_on_standard_error(tmp_path: Path) -> None:
    first = small(functions=2).bytes()
    first += bytes(-len(first) % 8)
    path = written(tmp_path, linked(first + small(address=SFRAME + len(first)).bytes()))
    for options in ([], ["--json"], ["--format", "gnu"]):
        done = run("show", path, *options)
        assert done.returncode == 0
        assert f"{path}: .sframe+{len(first):#x}: a further SFrame section" in done.stderr.decode()
    assert run("show", "--format", "gnu", path).stdout.count(b"Contents of the SFrame section") == 2
