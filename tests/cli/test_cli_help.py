"""Help: every verb has one line that fits and examples that work; a misspelt verb or option gets a suggestion."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import walkback
from cli.commands import WALKBACK, run
from docfiles import concatenated, joined, with_a_group
from recorded import core, hello, recording
from serving.served import served
from sframefiles import archive, placing, relocatable, small, written
from walkback.base.text import counted
from walkback.cli.command import LazyVerbs, Verb
from walkback.cli.main import cli


def commands(group: click.Group = cli, name: str = "walkback") -> Iterator[tuple[str, click.Command]]:
    """Every verb, and the verbs of those that are groups."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {word}")


COMMANDS = dict(commands())
GROUPS = {"walkback": cli} | {name: command for name, command in COMMANDS.items() if isinstance(command, LazyVerbs)}
EXAMPLES = [example for command in COMMANDS.values() if isinstance(command, Verb) for example in command.examples]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the examples."""
    folder = tmp_path_factory.mktemp("examples")
    program = hello(folder)
    (folder / "a.out").write_bytes(program.read_bytes())
    walkback.add(folder / "a.out")
    (folder / "hello.sframe").write_bytes(walkback.derive(program).contents)
    subprocess.run(["gcc", "-c", "-o", "hello.o", Path(__file__).parent.parent / "hello.s"], cwd=folder, check=True)
    (folder / "build").mkdir()
    subprocess.run(["ar", "rc", "build/libhello.a", "hello.o"], cwd=folder, check=True)
    one, two = (written(folder, relocatable(small(count), placing(count)), f"{count}.o") for count in (3, 2))
    archive(folder, "libcalls.a", one, two)
    written(folder, concatenated(), "concatenated")
    written(folder, joined(), "joined.o")
    written(folder, with_a_group(), "inline.o")
    (folder / "core.hello").write_bytes(core(program))
    (folder / "hello.cif").write_bytes(walkback.cif.encode(walkback.capture.images(folder / "core.hello").images))
    (folder / "perf.data").write_bytes(recording(program))
    (folder / "trace.cbf").write_bytes(bytes.fromhex("021a40104600"))
    (folder / "trace.json").write_text('[{"kind": "pc", "address": 4198470}]\n')
    store = walkback.Store(folder / "stacks", create=True)
    for version in ("1.1", "1.2"):
        with store.append(labels={"version": version}) as append:
            append.recording(folder / "perf.data")
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", f"{files}/.", tmp_path], check=True)
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_works(example: str, folder: Path) -> None:
    if " serve" in example:
        with served(folder / "stacks", *example.split()[4:]) as server:
            assert server.ask("/store").status == 200
        return
    example = example.replace("/usr/lib ", "build ")  # which takes minutes
    script = f'sleep 60 & PID=$!; {example}; status=$?; kill "$PID"; exit $status'
    environment = {"PATH": f"{Path(WALKBACK).parent}:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    assert not done.returncode or done.stdout, "it found nothing"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_verb_has_two_examples_of_its_own(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Verb)
    assert len(command.examples) == 2, counted(len(command.examples), "example")
    assert all(example.startswith(name.replace(" store ", " store stacks ")) for example in command.examples)
    text = run(*name.split()[1:2], *(["x"] if " store " in name else []), *name.split()[2:], "--help").stdout.decode()
    assert text.endswith("".join(f"  {example}\n" for example in command.examples))


@pytest.mark.parametrize("group", GROUPS)
def test_the_line_of_a_verb_is_the_first_of_its_help_and_fits(group: str) -> None:
    for verbs in GROUPS[group].headings.values():
        for name, line in verbs.items():
            assert (COMMANDS[f"{group} {name}"].help or "").splitlines()[0] == line
            assert len(line) <= 68


@pytest.mark.parametrize("name", ["cbf", "cif"])
def test_no_line_of_a_list_is_cut_off(name: str) -> None:
    assert "..." not in run(name, "--help").stdout.decode().partition("Commands:")[2]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["fidn", "a.out"], "Did you mean 'find'?"),
        (["shwo"], "Did you mean 'show'?"),
        (["store", "stacks", "tpo"], "Did you mean 'top'?"),
        (["show", "--functoin", "main", "a.out"], "--function"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(words: list[str], meant: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert meant in done.stderr.decode()


def test_a_word_like_no_verb_gets_none() -> None:
    assert "Did you mean" not in run("zzz").stderr.decode()
