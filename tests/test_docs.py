"""Every example in the documents is run, in a folder with the files that they speak of.

A fenced block marked `console` has commands behind `$ `, each followed by what it prints: standard output, standard
error and, if there is any of that, `[exit status N]`. A block marked `python` is executed; the blocks of a document
share their names. What it prints stands in a block marked `output` behind it. `...` stands for any text, and one blank
for any number of them. A block behind "Save this as `NAME`:" is written to that file. Tutorials begin with an empty
folder.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import walkback
from capture.targets import state
from docfiles import concatenated, joined, of_go, with_a_group, with_a_signal_frame
from docrecipes import of_recipes
from docshell import Shell
from elfbuilder import ElfBuilder
from orc.orctables import module
from recorded import core, hello, recording
from recorder.programs import may_record
from reference.blocks import filled
from reference.columns import columns
from reference.commands import commands as commands_by_words
from reference.commands import options
from reference.library import namespaces
from sframebuilder import SFrameBuilder
from sframefiles import (
    GNU_SFRAME,
    PT_GNU_SFRAME,
    SFRAME,
    SIZE,
    TEXT,
    archive,
    placing,
    relocatable,
    small,
    written,
)
from waiting import eventually
from walkback.cli.main import HEADINGS
from walkback.cli.walking import FORMAT_NAMES
from walkback.export.formats import FORMATS
from walkback.sframe.builder import SectionBuilder
from walkback.stacks.stacks import END_WORDS, HOW_WORDS
from walkback.table.rule import Rule

PACKAGE: Any = walkback

ROOT = Path(__file__).resolve().parents[1]
VERBS = [*chain(*HEADINGS.values())]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def named(document: Path) -> str:
    """A document as its readers name it."""
    return str(document.relative_to(ROOT))


WITH_EXAMPLES = {
    "README.md",
    *(
        f"docs/reference/{name}.md"
        for name in ("cbf", "cif", "command", "findings", "library", "report", "store", "survey")
    ),
    *(f"docs/reference/formats/{name}.md" for name in ("cbf", "cif", "sframe")),
    *(f"docs/explained/{name}.md" for name in ("one-function", "proof", "unwinding", "walking")),
    *(named(one) for part in ("start", "howto") for one in ROOT.glob(f"docs/{part}/*.md") if one.stem != "index"),
    *(f"docs/reference/verbs/{verb}.md" for verb in VERBS if verb not in {"record", "report", "store", "survey"}),
}
PACKAGES = [walkback, *(one for name in PACKAGE.__all__ if isinstance(one := getattr(walkback, name), ModuleType))]
FUNCTIONS = (("_start", 0, SIZE), ("main", SIZE, 2 * SIZE), ("compute", 3 * SIZE, SIZE))


@dataclass
class Block:
    """A fenced block: what it is marked as, its text, the line it begins at, and the file to save it as."""

    kind: str
    text: str
    line: int
    file: str | None = None


BLOCK = re.compile(
    r"(?:\b[Ss]ave\s+this\s+as\s+`([\w.-]+)`:\n\n)?^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(document: Path) -> list[Block]:
    """Those of a document, without directives such as `{toctree}`."""
    text = document.read_text()
    return [
        Block(match[2], match[3], text.count("\n", 0, match.start(2)) + 1, match[1])
        for match in BLOCK.finditer(text)
        if not match[2].startswith("{")
    ]


def a_program() -> bytes:
    """The section of `a.out`, made as the README says."""
    frame: list[str | Rule | tuple[int, str | Rule]]
    frame = [
        "CFA = rsp+8",
        (1, "CFA = rsp+16, FP = *(CFA-16)"),
        (4, "CFA = rbp+16, FP = *(CFA-16)"),
    ]
    builder = SectionBuilder("AMD64")
    builder.function(TEXT, SIZE, ["outermost frame"])
    builder.function(TEXT + SIZE, 2 * SIZE, [*frame, (31, "CFA = rsp+8, FP = *(CFA-16)")])
    builder.function(TEXT + 3 * SIZE, SIZE, frame)
    return builder.encode(address=SFRAME)


def with_table(section: bytes, functions: Any) -> ElfBuilder:
    elf = ElfBuilder(kind=2)
    text = elf.code(".text", 0x100, TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".sframe", section, kind=GNU_SFRAME, flags=2, addr=SFRAME)
    elf.segment(1, ".sframe", vaddr=SFRAME)
    elf.segment(PT_GNU_SFRAME, ".sframe", vaddr=SFRAME)
    table = elf.symtab()
    for name, start, size in functions:
        elf.symbol(table, name, TEXT + start, section=text, size=size)
    return elf


def damaged() -> SFrameBuilder:
    builder = small(num_fres=13)
    builder.functions[1].rows[1].words = [16, 8]
    return builder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the documents speak of."""
    written(tmp_path, with_table(a_program(), FUNCTIONS), "a.out")
    written(tmp_path, with_table(damaged().bytes(), [("compute", SIZE, SIZE)]), "damaged.so")
    one = written(tmp_path, relocatable(small(), placing(3)), "one.o")
    two = written(tmp_path, relocatable(small(2), placing(2)), "two.o")
    archive(tmp_path, "libcalls.a", one, two)
    written(tmp_path, with_a_signal_frame(), "signal.so")
    (tmp_path / "hello-go").write_bytes(of_go())
    written(tmp_path, module(), "module.ko")
    written(tmp_path, concatenated(), "concatenated")
    written(tmp_path, joined(), "joined.o")
    written(tmp_path, with_a_group(), "inline.o")
    program = hello(tmp_path)
    (tmp_path / "perf.data").write_bytes(recording(program))
    (tmp_path / "core.hello").write_bytes(core(program))
    subprocess.run(["gcc", "-c", "-o", "hello.o", ROOT / "tests" / "hello.s"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rc", "libhello.a", "hello.o"], cwd=tmp_path, check=True)
    total = ROOT / "docs" / "explained" / "one-function.s"
    subprocess.run(["gcc", "-c", "-o", "total.o", total], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORKER = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void wait_for_work(void) { for (;;) pause(); }
int main(void) { puts("ready"); fflush(stdout); wait_for_work(); }
"""


@contextlib.contextmanager
def worker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process that documents speak of as `$PID`."""
    (folder / "worker.c").write_text(WORKER)
    subprocess.run(["gcc", "-O1", "-o", folder / "worker", folder / "worker.c"], check=True)
    with subprocess.Popen([folder / "worker"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert eventually(lambda: state(process.pid) == "S")
        monkeypatch.setenv("PID", str(process.pid))
        try:
            yield
        finally:
            process.kill()


def documented() -> Iterator[tuple[str, str]]:
    """The public functions and classes, and their members that have examples, with what is written of them."""
    for package in PACKAGES:
        if package.__name__ == "walkback.results":
            continue  # what returns them has the example
        for name in package.__all__:
            public = getattr(package, name)
            if isinstance(public, ModuleType | dict | str):
                continue
            yield f"{package.__name__}.{name}", public.__doc__
            for member, value in vars(public).items() if isinstance(public, type) else ():
                if ">>>" in (getattr(value, "__doc__", None) or "") and value is not public:
                    yield f"{package.__name__}.{name}.{member}", value.__doc__


@pytest.mark.parametrize(("name", "text"), [pytest.param(*one, id=one[0]) for one in documented()])
@pytest.mark.usefixtures("folder")
def test_the_example_of_a_docstring_is_right(name: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {"walkback": walkback}, name, None, None)
    assert test.examples, "it has no example"
    out: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=out.append)
    assert not out, "".join(out)


def matches(expected: str, told: str) -> bool:
    """Whether it is what is expected; a line of `...` stands for any lines, within a line for any text."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(re.escape(part) for part in blanks(line).split("...")) + r"\n"
    return re.fullmatch(pattern, blanks(told).rstrip("\n") + "\n") is not None


def blanks(text: str) -> str:
    """One for any number of them, and none at the ends of lines."""
    return re.sub(r" +$", "", re.sub(r" +", " ", text), flags=re.MULTILINE)


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command with what it should print."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"line {block.line}: text before the first command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with contextlib.closing(Shell(tmp_path_factory.mktemp("outputs"))) as opened:
        yield opened


@pytest.mark.whole
@pytest.mark.parametrize("document", [one for one in DOCUMENTS if named(one) in WITH_EXAMPLES], ids=named)
def test_every_example_does_what_it_says(
    document: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = document.read_text()
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "$ ulimit -c" in text and pattern.startswith(("|", "/")):
        pytest.skip(f"the kernel does not write core files beside the program, but to {pattern}")
    if "--sampler perf" in text and not may_record():
        pytest.skip("the kernel refuses events here")
    monkeypatch.setenv("WALKBACK_CACHE", str(request.getfixturevalue("tmp_path_factory").mktemp("cache")))
    monkeypatch.chdir(tmp_path)
    if "start" not in document.parts:
        request.getfixturevalue("folder")
    if "howto" in document.parts:
        of_recipes(tmp_path)
    with worker(tmp_path, monkeypatch) if "$PID" in text else contextlib.nullcontext():
        run_examples(document, request.getfixturevalue("shell"))


def run_examples(document: Path, shell: Shell) -> None:
    names: dict[str, object] = {}
    found = blocks(document)
    for block, following in zip(found, [*found[1:], Block("", "", 0)], strict=True):
        place = f"{document.name}, line {block.line}"
        if block.file is not None:
            Path(block.file).write_text(block.text)
        elif block.kind == "console":
            for command, expected in commands(block):
                told = shell.run(command)
                assert matches(expected, told), f"{place}: $ {command}\n{told}"
        elif block.kind == "python":
            told_to = io.StringIO()
            with contextlib.redirect_stdout(told_to):
                exec(compile(block.text, place, "exec"), names)
            expected = following.text if following.kind == "output" else ""
            told = told_to.getvalue()
            assert matches(expected, told), f"{place}:\n{told}"


def test_documents_with_examples_are_known() -> None:
    kinds = {named(one): {block.kind for block in blocks(one)} for one in DOCUMENTS}
    assert {name for name, here in kinds.items() if here & {"console", "python"}} == WITH_EXAMPLES
    assert set().union(*kinds.values()) <= {"asm", "c", "console", "cpp", "output", "python", "sh", "text"}


def test_what_stands_in_make_blocks_are_targets() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        for block in blocks(document):
            if block.kind == "sh":
                assert set(re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE)) <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", text):
        assert (document.parent / target.partition("#")[0]).exists(), target
    for target in re.findall(r"`((?:docs|tests|src|tools|bench)/[\w/.-]+)`", text):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_lines_are_short_and_paths_relative(document: Path) -> None:
    inside = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        inside ^= line.startswith("```")
        assert inside or line.startswith("|") or len(line) <= 125, f"line {number}"
        assert not re.search(r"(?<![\w/.])/(?:home|root|work|usr|tmp)/", line), f"line {number}"
        assert inside or not line.startswith("%"), f"line {number} is a comment to Sphinx"


@pytest.mark.parametrize("words", [words for words in commands_by_words() if words])
def test_the_page_of_a_verb_has_a_table_of_its_options(words: str) -> None:
    """Made from the command itself, as its help is; `help` is on the page of all verbs."""
    command = commands_by_words()[words].context.command
    text = (ROOT / "docs" / "reference" / "verbs" / f"{words.split(maxsplit=1)[0]}.md").read_text()
    names = {
        name for one in command.params if isinstance(one, click.Option) for name in [*one.opts, *one.secondary_opts]
    }
    found = filled(text)
    assert names == {name for name in names if re.search(rf"`{name}[` ]", options(words))}
    assert options(words) in found
    assert f"\n{commands_by_words()[words].context.command_path} " in found


@pytest.mark.parametrize("folder", ["store", "survey"])
def test_every_column_of_a_folder_is_described(folder: str) -> None:
    """`columns` raises where one is not."""
    text = (ROOT / "docs" / "reference" / f"{folder}.md").read_text()
    assert columns(folder) in filled(text)
    assert not re.search(r"\|  \|$", columns(folder), re.MULTILINE)


def test_every_page_of_the_library_is_listed() -> None:
    pages = {path.read_text() for path in (ROOT / "docs" / "reference" / "python").glob("*.md")}
    assert pages == {f"# `{name}`\n\n```{{library}} {name}\n```\n" for name in namespaces()}


def test_every_word_of_a_walk_is_explained() -> None:
    told = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs" / "explained" / "walking.md").read_text()))
    assert {*END_WORDS.values(), *HOW_WORDS.values()} <= told


def test_every_format_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "verbs" / "unwind.md").read_text()
    assert set(FORMATS) == set(FORMAT_NAMES)
    assert [name for name in FORMATS if f"| `{name}` |" not in text] == []


@pytest.mark.whole
def test_the_demo_runs() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", ROOT / "tools" / "demo.sh"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for verb in ("derive", "add", "compare", "check", "find", "drop"):
        assert f"$ walkback {verb} " in done.stdout
    assert done.stdout.endswith("the same\n")
    assert not re.search(r"/(?:home|root|work|tmp)/", done.stdout)
