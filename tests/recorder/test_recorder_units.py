"""The units of systemd in the documents: systemd takes them, and their commands are right."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.commands import run

UNITS = Path(__file__).resolve().parent.parent.parent / "docs" / "systemd"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_them(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = re.sub(r"^ExecStart=-?walkback", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "walkback" in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.whole
def test_their_commands_are_right(tmp_path: Path) -> None:
    text = "".join(unit.read_text() for unit in sorted(UNITS.iterdir()))
    commands = re.findall(r"^ExecStart=-?walkback (.*)$", text, re.MULTILINE)
    assert [words.split()[0] for words in commands] == ["record", "store", "store", "store"]
    for command in commands:
        words = command.replace("%S/walkback/stacks", str(tmp_path / "stacks")).split()
        if "-a" in words:  # a command gives samples, whatever this user may record
            words.remove("-a")
            words += ["--", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i + 1)); done"]
        done = run(*words)
        assert done.returncode in ({0, 1} if "names" in words else {0}), done.stderr
