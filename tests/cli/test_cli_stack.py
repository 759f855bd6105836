"""`walkback stack`: live processes as text, and every format."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from capture.targets import THREADS, compiled, started
from cli.commands import run
from cli.documented import undocumented
from cli.walked import FORMATS, STACK_OF_MAIN, functions, paragraphs, stack

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("own_cache")]


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
    text = stack(target).stdout.decode()
    assert re.search(r"sleepy\+0x[0-9a-f]+ at \S+/target\.c:7 \(", text)
    assert " at " not in stack("--no-lines", target).stdout.decode()


def test_registers(target: int, made_core: Path) -> None:
    text = stack("--registers", target).stdout.decode()
    assert len(re.findall(r"\brip 0x[0-9a-f]{16}\n", text)) == 5
    _, lines = paragraphs(stack("--registers", made_core))
    shown = dict(re.findall(r"(\w+) (0x[0-9a-f]{16})", " ".join(lines[1:6])))
    assert (shown["rip"], shown["rbp"]) == ("0x000000000040101d", "0x00007ffc00001040")
    assert len(shown) == 17


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("sframe", {"sframe", "derived"}),
        ("cfi", {"cfi"}),
        ("code", {"code", "entry"}),
        ("fp", {"fp-guess", "fp-declared"}),
    ],
)
def test_one_way_alone(only: str, expected: set[str], target: int) -> None:
    done = stack("--only", only, target)
    hows = set(re.findall(r"\[([a-z-]+)\]$", done.stdout.decode(), re.MULTILINE))
    assert hows <= {"registers", *expected}
    assert only == "fp" or hows & expected  # libraries keep no frame pointer where the thread waits
    assert done.returncode == 0


def test_only_by_the_table_of_go(target: int) -> None:
    """A program in C has none."""
    done = stack("--only", "go", target)
    assert set(re.findall(r"\[([a-z-]+)\]$", done.stdout.decode(), re.MULTILINE)) == {"registers"}
    assert done.returncode == 1


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
        rf"walkback: {target}: 20 stops: median [\d.]+ ms, 99th percentile [\d.]+ ms, maximum [\d.]+ ms\n",
        done.stderr.decode(),
    )


def test_the_interval_is_from_one_look_to_the_next(target: int) -> None:
    times = [
        json.loads(line)["time"]
        for line in stack("--json", "--repeat", 3, "--interval", 0.3, target).stdout.splitlines()
    ]
    assert times[-1] - times[0] > 0.55e9


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


def test_tables_of_large_files_are_kept_unless_that_is_not_wanted(tmp_path: Path) -> None:
    many = tmp_path / "many.s"
    many.write_text(".text\n.rept 60000\n.cfi_startproc\nnop\n.cfi_endproc\n.endr\n.section .note.GNU-stack\n")
    kept = tmp_path / "kept"
    with started(compiled(tmp_path, THREADS, str(many))) as process:
        first = stack("--no-cache", process.pid, env={"WALKBACK_CACHE": str(kept)})
        assert not kept.exists()
        second, third = (stack(*option, process.pid, env={"WALKBACK_CACHE": str(kept)}) for option in ([], ["--cache"]))
        assert len(list(kept.glob("*.table"))) == 1
    names = [functions(done.stdout.decode().splitlines()) for done in (first, second, third)]
    assert [one.count("sleepy") for one in names] == [names[0].count("sleepy")] * 3


# Formats


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_of_a_process_and_of_a_core_file(form: str, target: int, made_core: Path, tmp_path: Path) -> None:
    for what in (["--repeat", 3, "--interval", 0, target], [made_core]):
        output = tmp_path / "output"
        done = stack("--format", form, *what, "-o", output)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr
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


def test_json_has_the_documented_keys(target: int, made_core: Path) -> None:
    for what in (["--lines", target], [made_core]):
        done = stack("--json", *what)
        assert done.stdout == stack("--format", "json", *what).stdout or what != [made_core]
        for line in done.stdout.splitlines():
            one = json.loads(line)
            assert set(one) == {"pid", "tid", "comm", "time", "event", "period", "frames", "end"}
            assert undocumented([one], "unwind") == []
            assert all({"pc", "lookup", "symbol", "module", "how"} <= set(frame) for frame in one["frames"])
            assert one["end"] == "complete"
            assert one["frames"][0]["pc"] == one["frames"][0]["lookup"]
            assert all(frame["pc"] == frame["lookup"] + 1 for frame in one["frames"][1:])


def test_json_of_a_core_file(made_core: Path) -> None:
    (line,) = stack("--json", made_core).stdout.splitlines()
    one = json.loads(line)
    assert (one["pid"], one["tid"], one["comm"], one["time"]) == (100, 100, "hello", 0)
    assert [frame["symbol"] for frame in one["frames"]] == ["compute", "main", "_start"]
