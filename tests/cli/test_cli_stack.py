"""`walkback stack`: live processes and core files, every format and option, errors, interruptions, terminals."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capture.corebuilder import CoreBuilder
from capture.targets import THREADS, compiled, started, state
from cli.commands import WALKBACK, on_a_terminal, run, told
from recorded import core, hello
from waiting import PATIENCE, eventually

DOCS = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
FORMATS = ("folded", "top", "perf-script", "json", "pprof", "speedscope", "firefox", "cbf", "html")
STACK_OF_MAIN = ("main", *["sleepy"] * 6, "pause")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("stack"), THREADS, "-g")


@pytest.fixture(scope="module")
def target(program: Path) -> Iterator[int]:
    with started(program) as process:
        yield process.pid


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def made_core(tmp_path: Path) -> Path:
    path = tmp_path / "core.hello"
    path.write_bytes(core(hello(tmp_path)))
    return path


def stack(*args: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return run("stack", *map(str, args), **more)


def switches(pid: int) -> int:
    """How often the first thread has waited, or was stopped while it did."""
    return sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())))


def wait_for_looks(pid: int, number: int = 3) -> None:
    """Until a thread that sleeps was looked at this many times."""
    before = switches(pid)
    assert eventually(lambda: switches(pid) >= before + number)


def paragraphs(done: subprocess.CompletedProcess[bytes], status: int = 0) -> list[list[str]]:
    """The first line, and then a list of lines for each thread."""
    assert done.stderr == b""
    assert done.returncode == status
    return [part.splitlines() for part in done.stdout.decode().rstrip("\n").split("\n\n")]


def functions(lines: list[str]) -> list[str]:
    """The functions of frames, innermost first."""
    found = [
        re.fullmatch(r"#\d+ +0x[0-9a-f]{16} ([^ +]+)(\+0x[0-9a-f]+)?( at .*)? \(.*\) \[[a-z-]+\]", one) for one in lines
    ]
    return [one[1] for one in found if one]


# Text


def test_all_threads_of_a_process(target: int) -> None:
    head, *threads = paragraphs(stack(target))
    assert head == [f"process {target} target"]
    assert len(threads) == 5
    for lines in threads:
        assert re.fullmatch(r"thread \d+ target \(stopped for \d+\.\d{3} ms\)", lines[0])
        assert len(functions(lines[1:])) == len(lines) - 1
    assert tuple(reversed(functions(threads[0][1:])[:8])) == STACK_OF_MAIN
    assert functions(threads[2][1:])[:4] == ["busy"] * 3 + ["run"]


def test_lines_of_source_files(target: int) -> None:
    if not (shutil.which("llvm-symbolizer") or shutil.which("addr2line")):
        pytest.skip("needs llvm-symbolizer or addr2line")
    text = stack("--lines", target).stdout.decode()
    assert re.search(r"sleepy\+0x[0-9a-f]+ at \S+/target\.c:7 \(", text)
    assert " at " not in stack(target).stdout.decode()


def test_registers(target: int, made_core: Path) -> None:
    text = stack("--registers", target).stdout.decode()
    assert len(re.findall(r"\brip 0x[0-9a-f]{16}\n", text)) == 5
    _, lines = paragraphs(stack("--registers", made_core))
    shown = dict(re.findall(r"(\w+) (0x[0-9a-f]{16})", " ".join(lines[1:6])))
    assert (shown["rip"], shown["rbp"]) == ("0x000000000040101d", "0x00007ffc00001040")
    assert len(shown) == 17


@pytest.mark.parametrize("only", ["sframe", "cfi", "fp"])
def test_one_way_alone(only: str, target: int) -> None:
    done = stack("--only", only, target)
    hows = set(re.findall(r"\[([a-z-]+)\]$", done.stdout.decode(), re.MULTILINE))
    assert hows <= {"sframe": {"registers", "sframe", "derived"}, "cfi": {"registers", "cfi"}}.get(
        only, {"registers", "fp-guess", "fp-declared"}
    )
    assert done.returncode == 0


def test_a_stack_that_is_not_complete_says_why(target: int) -> None:
    text = stack("--max-stack", 3, target).stdout.decode()
    assert len(re.findall(r"^#2 .*\n      limit at 0x[0-9a-f]+$", text, re.MULTILINE)) == 5
    assert "#3" not in text


COROUTINE = """
#include <ucontext.h>
#include <unistd.h>
static ucontext_t ours, callers;
static char stack[65536];
void inside(void) { write(1, "ready\\n", 6); for (;;) pause(); }
int main(void)
{
    getcontext(&ours);
    ours.uc_stack.ss_sp = stack;
    ours.uc_stack.ss_size = sizeof stack;
    ours.uc_link = &callers;
    makecontext(&ours, inside, 0);
    return swapcontext(&callers, &ours);
}
"""


def test_a_coroutine_is_never_complete(tmp_path: Path) -> None:
    """Nobody called it, and the frame pointer that it begins with is that of who made it."""
    with started(compiled(tmp_path, COROUTINE, "-O0")) as child:
        done = run("stack", str(child.pid))
    assert done.returncode == 1
    last = done.stdout.decode().splitlines()[-1].strip()
    if "[fp-guess]" in done.stdout.decode():
        assert last == "guessed: a frame before it is a guess"
    else:
        assert last.split()[0] in {"no-table", "not-code", "unreadable", "zero:"}


def test_little_of_the_stack_is_copied_and_the_rest_read_when_it_is_needed(target: int) -> None:
    for size in (0, 64):
        _, *threads = paragraphs(stack("--stack-bytes", size, target))
        assert tuple(reversed(functions(threads[0][1:])[:8])) == STACK_OF_MAIN


def test_a_process_is_looked_at_again_and_again(target: int) -> None:
    done = stack("--repeat", 4, "--interval", 0, target)
    assert done.returncode == 0
    assert done.stdout.count(f"process {target} target\n".encode()) == 4
    assert re.fullmatch(
        rf"walkback: {target}: 20 stops: [\d.]+ ms in the middle, [\d.]+ ms for 99 of 100, [\d.]+ ms at most\n",
        done.stderr.decode(),
    )


def test_the_interval_is_from_one_look_to_the_next(target: int) -> None:
    times = [
        json.loads(line)["time"]
        for line in stack("--json", "--repeat", 3, "--interval", 0.3, target).stdout.splitlines()
    ]
    assert times[-1] - times[0] > 0.55e9


@pytest.mark.whole
def test_names_as_they_are_in_the_file(tmp_path: Path) -> None:
    source = THREADS.replace("sleepy(", "_ZN5hello5worldEv(")
    with started(compiled(tmp_path, source)) as process:
        assert b" hello::world+0x" in stack(process.pid).stdout
        assert b" _ZN5hello5worldEv+0x" in stack("--no-demangle", process.pid).stdout
        assert b" hello::world+0x" in stack("--demangle", process.pid).stdout


def test_code_made_at_run_time_is_named_by_the_perf_map(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        r"""
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) {
            unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfe};  /* push %rbp; mov %rsp,%rbp; jmp itself */
            char name[64];
            void *at = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy(at, code, sizeof code);
            snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
            FILE *map = fopen(name, "w");
            fprintf(map, "%lx 10 made at run time\n", (unsigned long)at);
            fclose(map);
            puts("ready"); fflush(stdout);
            ((void (*)(void))at)();
        }
        """,
    )
    if os.uname().machine != "x86_64":
        pytest.skip("its code is for AMD64")
    with started(program) as process:
        try:
            _, lines = paragraphs(stack(process.pid), 1)
        finally:
            Path(f"/tmp/perf-{process.pid}.map").unlink()
        assert re.match(r"#0 +0x\w+ made at run time\+0x4 \(/tmp/perf-\d+\.map\) \[registers\]", lines[1])
        assert re.match(r"#1 +0x\w+ main\+0x\w+ .* \[fp-guess\]", lines[2])
        assert lines[-1] == "      guessed: a frame before it is a guess"


@pytest.mark.whole
def test_tables_of_large_files_are_kept_unless_that_is_not_wanted(tmp_path: Path) -> None:
    many = tmp_path / "many.s"
    many.write_text(".text\n.rept 60000\n.cfi_startproc\nnop\n.cfi_endproc\n.endr\n.section .note.GNU-stack\n")
    kept = tmp_path / "kept"
    with started(compiled(tmp_path, THREADS, str(many))) as process:
        first = stack("--no-cache", process.pid, env={"WALKBACK_CACHE": str(kept)})
        assert not kept.exists()
        second, third = (stack(*option, process.pid, env={"WALKBACK_CACHE": str(kept)}) for option in ([], ["--cache"]))
        assert len(list(kept.iterdir())) == 1
    names = [functions(done.stdout.decode().splitlines()) for done in (first, second, third)]
    assert [one.count("sleepy") for one in names] == [names[0].count("sleepy")] * 3


# Formats


@pytest.mark.whole
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_of_a_process_and_of_a_core_file(form: str, target: int, made_core: Path, tmp_path: Path) -> None:
    for what in (["--repeat", 3, "--interval", 0, target], [made_core]):
        output = tmp_path / "output"
        done = stack("--format", form, *what, "-o", output)
        assert (done.returncode, done.stdout) == (0, b"")
        assert b"Traceback" not in done.stderr
        contents = output.read_bytes()
        assert contents
        if form in {"json", "speedscope", "firefox"}:
            assert all(json.loads(line) for line in contents.splitlines())
        elif form == "cbf":
            assert contents[0] == 2
        elif form == "pprof":
            assert contents[:2] == b"\x1f\x8b"
        elif what == [made_core]:
            assert b"compute" in contents


def test_folded_counts_threads_and_looks(target: int) -> None:
    lines = stack("--format", "folded", "--repeat", 5, "--interval", 0, target).stdout.decode().splitlines()
    counts = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    assert sum(counts.values()) == 25
    (main,) = [names for names in counts if names.endswith(";".join(STACK_OF_MAIN))]
    assert counts[main] == 5


@pytest.mark.whole
def test_json_has_the_documented_keys(target: int, made_core: Path) -> None:
    own = DOCS.read_text().partition("## `walkback stack`")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", own, re.MULTILINE))))
    for what in (["--lines", target], [made_core]):
        done = stack("--json", *what)
        assert done.stdout == stack("--format", "json", *what).stdout or what != [made_core]
        for line in done.stdout.splitlines():
            one = json.loads(line)
            assert set(one) == {"pid", "tid", "comm", "time", "event", "period", "frames", "end"}
            assert set(one) | set().union(*one["frames"]) <= documented
            assert all({"pc", "lookup", "symbol", "module", "how"} <= set(frame) for frame in one["frames"])
            assert one["end"] == "complete"
            assert one["frames"][0]["pc"] == one["frames"][0]["lookup"]
            assert all(frame["pc"] == frame["lookup"] + 1 for frame in one["frames"][1:])


def test_json_of_a_core_file(made_core: Path) -> None:
    (line,) = stack("--json", made_core).stdout.splitlines()
    one = json.loads(line)
    assert (one["pid"], one["tid"], one["comm"], one["time"]) == (100, 100, "hello", 0)
    assert [frame["symbol"] for frame in one["frames"]] == ["compute", "main", "_start"]


# Core files


def test_a_core_file_as_text(made_core: Path) -> None:
    head, lines = paragraphs(stack(made_core))
    assert head == ["process 100 ./hello, ended by SIGSEGV"]
    assert lines[0] == "thread 100 hello (got the signal)"
    assert functions(lines[1:]) == ["compute", "main", "_start"]


def test_a_signal_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(core(hello(tmp_path), signal=40))
    assert paragraphs(stack(path))[0] == ["process 100 ./hello, ended by signal 40"]


def test_files_are_found_in_the_sysroot(made_core: Path, tmp_path: Path) -> None:
    program = tmp_path / "hello"
    elsewhere = tmp_path / "root" / program.relative_to("/")
    elsewhere.parent.mkdir(parents=True)
    program.rename(elsewhere)
    done = stack(made_core)
    assert done.returncode == 1
    assert "hello" in done.stderr.decode()
    assert b"\n#0   0x000000000040101d [hello] (" in done.stdout
    assert functions(paragraphs(stack("--sysroot", tmp_path / "root", made_core))[1]) == ["compute", "main", "_start"]
    assert functions(paragraphs(stack("--exe", elsewhere, made_core))[1])[:1] == ["compute"]


def test_a_core_file_whose_name_is_a_number(made_core: Path) -> None:
    made_core.rename(made_core.with_name("99999999"))
    assert told(stack("99999999", cwd=made_core.parent)) == (3, "process 99999999: there is no such process")
    assert paragraphs(stack("./99999999", cwd=made_core.parent))[0] == ["process 100 ./hello, ended by SIGSEGV"]


@pytest.mark.peers
def test_a_core_file_of_gdb(target: int, tmp_path: Path) -> None:
    gcore = shutil.which("gcore")
    if gcore is None:
        pytest.skip("needs gdb's gcore")
    subprocess.run([gcore, "-o", tmp_path / "core", str(target)], capture_output=True, check=True)
    live, dead = stack(target), stack(tmp_path / f"core.{target}")
    names = [
        sorted(tuple(functions(part.splitlines())) for part in done.stdout.decode().split("\n\n")[1:])
        for done in (live, dead)
    ]
    assert names[0] == names[1]
    assert dead.returncode == 0


# Errors


@pytest.mark.parametrize(
    "args",
    [
        ["--exe", "x", "1"],
        ["--sysroot", "x", "1"],
        ["--sysroot", "/nowhere", "core"],
        ["--buildid-dir", "/nowhere", "core"],
        ["--buildid-dir", "/etc/passwd", "core"],
        ["--repeat", "2", "core"],
        ["--stack-bytes", "4096", "core"],
        ["--repeat", "0", "1"],
        ["--interval", "-1", "1"],
        ["--max-stack", "0", "1"],
        ["--json", "--format", "folded", "1"],
        ["--registers", "--json", "1"],
        ["--format", "svg", "1"],
        ["--only", "guess", "1"],
        [],
        ["1", "2"],
    ],
)
def test_wrong_usage(args: list[str]) -> None:
    done = stack(*args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: " in done.stderr
    assert b"Traceback" not in done.stderr


def ended() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


@pytest.mark.whole
def test_what_cannot_be_looked_at_is_one_line_and_3(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("some text\n")
    short = tmp_path / "short"
    short.write_bytes(CoreBuilder().thread(1, []).build()[:70])
    pid = ended()
    for what, message in {
        pid: "there is no such process",
        0: "there is no such process",
        10**30: "there is no such process",
        tmp_path / "missing": "No such file or directory",
        text: "this is not an ELF file",
        "/bin/true": "this ELF file is not a core file",
        tmp_path: "this is a directory",
        "/dev/null": "this is not a regular file",
        short: "",
    }.items():
        done = stack(what)
        status, line = told(done)
        assert (status, done.stdout) == (3, b"")
        assert line.startswith(f"process {what}: " if isinstance(what, int) else f"{what}: ")
        assert message in line


def test_a_thread_of_the_kernel_and_a_zombie(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        assert eventually(lambda: state(process.pid) == "Z")
        assert told(stack(process.pid))[1].endswith("has not asked for its status yet (a zombie)")
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        assert "thread of the kernel" in told(stack(2))[1]


AS_NOBODY = """
import os, sys
from walkback.cli.main import cli, main
from walkback.capture.stacks import stack

# All that is needed is imported while its files can still be read.
cli.main(["stack", "--format", "folded", sys.argv[2], "-o", "/dev/null"], standalone_mode=False)
os.setuid(65534)
main()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root, to be somebody else for once")
def test_a_process_of_somebody_else(target: int) -> None:
    command = [sys.executable, "-c", AS_NOBODY, "stack", str(target)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert told(done) == (
        3,
        f"process {target}: its memory may not be read: it belongs to somebody else, or is protected",
    )


def test_a_core_file_that_is_cut_short_is_shown_as_far_as_it_goes(made_core: Path) -> None:
    made_core.write_bytes(made_core.read_bytes()[:-16])
    done = stack(made_core)
    assert done.returncode == 1
    assert b"compute+0x4" in done.stdout
    assert b"the core file is cut short: 16 bytes of memory are missing" in done.stderr


# Output


def test_the_output_is_there_whole_or_not_at_all(target: int, tmp_path: Path) -> None:
    output = tmp_path / "folder" / "output"
    output.parent.mkdir()
    output.write_text("old")
    command: list[str | Path] = [WALKBACK, "stack", "--json", "--repeat", "1000000", "-o", output, str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert eventually(lambda: len(list(output.parent.iterdir())) > 1)
        time.sleep(0.2)
        process.kill()
    assert output.read_text() == "old"
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert eventually(lambda: len(list(output.parent.iterdir())) > 2)
        time.sleep(0.2)
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    assert output.read_text() == "old"
    assert len(list(output.parent.iterdir())) == 2  # that of the killed one stays
    assert stack("-o", output, target).stdout == b""
    assert output.read_text().startswith(f"process {target} target\n")


def test_an_output_that_cannot_be_written(target: int, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "output"
    assert told(stack("-o", path, target)) == (3, f"cannot write {path}: No such file or directory")
    with Path("/dev/full").open("w") as full:
        assert told(stack(target, stdout=full)) == (3, "cannot write the output: No space left on device")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("form", ["text", "folded", "json"])
def test_ctrl_c_ends_the_looking_and_what_there_is_is_written(form: str, target: int, tmp_path: Path) -> None:
    output = tmp_path / "output"
    args: list[str | Path] = ["--format", form, "--repeat", "1000000", "--interval", "0.01", "-o", output, str(target)]
    with subprocess.Popen([WALKBACK, "stack", *args], stderr=subprocess.PIPE) as process:
        wait_for_looks(target)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert re.fullmatch(rb"walkback: \d+: \d+ stops: .*\n", errors)
    lines = output.read_text().splitlines()
    if form == "folded":
        assert any(line.rpartition(" ")[0].endswith(";".join(STACK_OF_MAIN)) for line in lines)
    elif form == "json":
        assert len(lines) % 5 == 0
        assert all(json.loads(line) for line in lines)
    assert lines
    assert state(target) in {"S", "R"}


def test_a_target_that_ends_is_told_and_what_there_is_is_written(program: Path) -> None:
    with started(program) as process:
        command: list[str | Path] = [WALKBACK, "stack", "--format", "folded", "--repeat", "1000000", str(process.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as looking:
            wait_for_looks(process.pid)
            process.kill()
            out, errors = looking.communicate(timeout=PATIENCE)
    assert looking.returncode == 1
    assert re.search(rb";".join(name.encode() for name in STACK_OF_MAIN) + rb" \d+\n", out)
    assert re.search(rb"^walkback: \d+: .*, after \d+ looks?\n", errors, re.MULTILINE)
    assert b"Traceback" not in errors


def test_the_target_goes_on_when_the_looking_one_is_killed(target: int) -> None:
    for wait in (0, 0.01, 0.05):
        command: list[str | Path] = [WALKBACK, "stack", "--repeat", "1000000", "--interval", "0", str(target)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as looking:
            wait_for_looks(target)
            time.sleep(wait)
            looking.kill()
        threads = [int(one.name) for one in Path(f"/proc/{target}/task").iterdir()]
        assert len(threads) == 5
        assert eventually(lambda threads=threads: all(state(tid) in {"S", "R"} for tid in threads))
    assert stack(target).returncode == 0


def test_a_terminal_gets_text_and_no_bytes(target: int, made_core: Path) -> None:
    shown = on_a_terminal("stack", made_core).replace(b"\r\n", b"\n")
    assert shown == stack(made_core).stdout
    assert b"Error: --format pprof is not for a terminal; use -o FILE, or a pipe" in on_a_terminal(
        "stack", "--format", "pprof", made_core
    )
    assert on_a_terminal("stack", "--format", "folded", made_core) == b"hello;_start;main;compute 1\r\n"


@pytest.mark.whole
def test_a_name_with_an_escape_code_spoils_no_line(tmp_path: Path) -> None:
    program = compiled(tmp_path, THREADS).rename(tmp_path / "od\x1b[31m\nd\udcff")
    with started(os.fsencode(program)) as process:
        done = stack(process.pid)
    assert b"\x1b" not in done.stdout
    assert done.stdout.startswith(b"process %d od" % process.pid)
    assert len(done.stdout.split(b"\n\n")) == 6
