"""What shells complete: verbs, options, values, processes, functions and sections, and what a store holds."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import walkback
from cli.commands import WALKBACK
from cli.hello import assembled
from recorded import recording
from walkback.cli.bashcompletion import open_quote, quoted

SHELLS = {
    "bash": """eval "$(_WALKBACK_COMPLETE=bash_source walkback)"
COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _walkback_completion walkback
printf '%s\\n' "${{COMPREPLY[@]}}" """,
    "fish": '_WALKBACK_COMPLETE=fish_source walkback | source; complete --do-complete "{line}"',
}

AWKWARD = """
.globl _start, "_ZN2ns1W13wait_for_workEv.isra.0", _Z4tmplIiET_iPKc, _Z3runi, _Z3rund
_start:
"_ZN2ns1W13wait_for_workEv.isra.0":
_Z4tmplIiET_iPKc:
_Z3runi:
    nop
_Z3rund:
    nop
"""
"""Names that bash has to get quoted: with `<`, brackets and blanks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cli.hello import program

    folder = tmp_path_factory.mktemp("completion")
    hello = program(folder)
    (folder / "awkward").write_bytes(assembled(AWKWARD, "-nostdlib", "-static"))
    (folder / "perf.data").write_bytes(recording(hello))
    store = walkback.Store(folder / "stacks", create=True)
    with store.append(host="web1", labels={"version": "1.2"}) as append:
        append.recording(folder / "perf.data")
    return folder


@pytest.fixture
def sleeper() -> Iterator[str]:
    """A process whose name no other has."""
    with subprocess.Popen([shutil.which("sleep") or "sleep", "300"]) as process:
        yield str(process.pid)
        process.kill()


def completed(shell: str, line: str, folder: Path) -> list[str]:
    """What a shell offers at the end of a line."""
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    environment = {"PATH": f"{WALKBACK.parent}:{os.environ['PATH']}", "HOME": str(folder)}
    command = [shell, "-c", SHELLS[shell].format(line=line)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("walkback sh", ["show"]),
        ("walkback store stacks f", ["flame"]),
        ("walkback show --fu", ["--function"]),
        ("walkback unwind --format s", ["speedscope"]),
        ("walkback show hello --function mai", ["main"]),
        ("walkback find hello comp", ["compute"]),
        ("walkback find awkward run", ["run", "run(double)", "run(int)"]),
        ("walkback show awkward --function ns", [f"ns::W::wait_for_work{one} [clone .isra.0]" for one in ("", "()")]),
        ("walkback show awkward --function tmpl", ["tmpl<int>"]),
        ("walkback check hello --ignore row-cut", ["row-cut-off"]),
        ("walkback report hello --figure su", ["summary"]),
        ("walkback report . --figure size-by-mac", ["size-by-machine"]),
        ("walkback add hello --section .eh_f", [".eh_frame"]),
        ("walkback store stacks top --host w", ["web1"]),
        ("walkback store stacks flame --process h", ["hello"]),
        ("walkback store stacks top --by v", ["version"]),
        ("walkback show nothing --function m", []),
        ("walkback store nothing top --by v", []),
    ],
)
def test_a_shell_offers(folder: Path, shell: str, line: str, offered: list[str]) -> None:
    found = completed(shell, line, folder)
    assert [word for word in (shlex.split("\n".join(found)) if shell == "bash" else found) if word] == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_labels_are_offered_with_their_values(folder: Path, shell: str) -> None:
    (offered,) = completed(shell, "walkback store stacks top --label vers", folder)
    assert offered == ("version\\=1.2" if shell == "bash" else "version=1.2")


@pytest.mark.parametrize("shell", SHELLS)
def test_processes_are_offered_by_name_and_number(folder: Path, sleeper: str, shell: str) -> None:
    assert "sleep" in completed(shell, "walkback stack sle", folder)
    assert sleeper in completed(shell, f"walkback stack {sleeper[:-1]}", folder)


def test_zsh_takes_the_script(folder: Path) -> None:
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    script = (
        'autoload -U compinit; compinit -u; eval "$(_WALKBACK_COMPLETE=zsh_source walkback)"; print $_comps[walkback]'
    )
    environment = {"PATH": f"{WALKBACK.parent}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(["zsh", "-fc", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("_walkback_completion\n", "")


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_bash_reads_what_was_quoted_for_it(quote: str) -> None:
    value = "a b'c\"d$e`f\\g<h>*?[i]~#j!k:l=m@n"
    word = quote + quoted(value, quote, " :=@") + quote
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True)
    assert done.stdout == value
    assert open_quote(word) == ""
    assert open_quote(word[:3]) == (quote or "")
