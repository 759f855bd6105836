"""The phrases that plain English does without are in no prose of the project (`tools/words.py`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "words.py"


def words(*paths: Path) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, TOOL, *paths], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.whole  # `make lint` looks, too
def test_the_project_has_none() -> None:
    assert words() == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "line", "phrase"),
    [
        ("a.md", "# Head\n\nSo many files.\n", 3, "So many"),
        ("a.md", "```sh\ntrue\n```\nFiles, of\nwhich one counts.\n", 4, "of which"),
        ("a.py", '"""Files, of\nwhich one counts."""\n', 1, "of which"),
        ("a.py", "x = 1\ny = 2  # it tells\n", 2, "tells"),
        ("a.py", '# some, of\n# whom one\nf"{1} that "\n', 1, "of whom"),
        ("a.py", 'print(f"{1} that is there")\n', 1, "that is there"),
        ("a.py", 'x = (\n    "files that "\n    "are there"\n)\n', 2, "that are there"),
        ("a.js", "// one\nconst text = `${one} was told`;\n", 2, "told"),
        ("a.css", "/* what is\n * there */\n", 1, "what is there"),
        ("a.html", "<p>\nIt has words for it.\n", 2, "has words for"),
    ],
)
def test_a_phrase_in_prose_is_named(tmp_path: Path, name: str, text: str, line: int, phrase: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert words(path) == (1, [f'{path}:{line}: rewrite "{phrase}"'])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "```sh\nwalkback so many\n```\nCalls `file.tell` and ``a ` told``; storytelling.\n"),
        ("a.py", 'def told(tell: int) -> str:\n    """Calls `tell`."""\n    return f"{tell(told)} of {tell} which"\n'),
    ],
)
def test_code_does_not_count(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert words(path) == (0, [])
