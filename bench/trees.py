"""Older revisions of this project, built beside it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from inputs import ROOT

TREES = ROOT / ".cache" / "revisions"


def commit(revision: str) -> str | None:
    """The number of a revision; None if there is none here, as in a clone without its history."""
    asked = ("git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def built(number: str) -> Path:
    """The folder of a revision with its kernels compiled; it stays until `.cache` is deleted.

    What is as it is here is not compiled again.
    """
    folder = TREES / number
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        packed = subprocess.run(["git", "-C", ROOT, "archive", number], stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        _take_over(folder)
        build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(build, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (folder / "complete").touch()
    return folder


def _take_over(folder: Path) -> None:
    """Copy the kernels of this checkout; the times of files say which of them are to be compiled again."""
    if (ROOT / "build").is_dir():
        shutil.copytree(ROOT / "build", folder / "build", ignore=shutil.ignore_patterns("docs", "doctrees", "*.o"))
    for path in [*(folder / "src").rglob("*.p*"), folder / "setup.py"]:
        here = ROOT / path.relative_to(folder)
        if here.is_file() and here.read_bytes() == path.read_bytes():
            os.utime(path, (here.stat().st_atime, here.stat().st_mtime))
        else:
            os.utime(path)
    for kernel in (ROOT / "src").rglob("*.so"):
        there = folder / kernel.relative_to(ROOT)
        if there.parent.joinpath(f"{kernel.name.partition('.')[0]}.py").exists():
            shutil.copy2(kernel, there)
