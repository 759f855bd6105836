"""What is published is the whole checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from kernels import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MADE = {"PKG-INFO", "setup.cfg"}


@pytest.mark.whole
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with what git has")
def test_a_source_distribution_has_every_file(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    [made] = tmp_path.iterdir()
    with tarfile.open(made) as archive:
        names = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name for name in names if ".egg-info/" not in name} - MADE == set(listed.splitlines())
