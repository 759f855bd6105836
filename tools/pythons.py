"""Runs a smoke test on each newer Python that `make peers` brought, with the newest dependencies (`make test-pythons`).

A Python of another Debian release runs through that release's loader, and gets a folder of its own in `.cache/pythons`:
the newest wheels of what walkback needs, the package compiled for it from the source distribution, and the commands
`python` and `walkback`. The tests are those of verbs and formats in `tests/always.toml`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import peers

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "pythons"
TOOLS = ("hypothesis", "pyarrow", "pytest", "pytest-xdist", "setuptools")


def wrapper(version: str, folder: Path, *first: str) -> str:
    """A script that starts the Python of a root; for itself it is that script, and its modules are in `folder`."""
    root = peers.PEERS / f"python{version}"
    libraries = [root / name for name in peers.LIBRARY_FOLDERS if (root / name).is_dir()]
    loader = next(path for path in (one / peers.LOADER for one in libraries) if path.exists())
    start = f'"{loader}" --inhibit-cache --argv0 "$0" --library-path "{":".join(map(str, libraries))}"'
    words = " ".join((f'"{root}/usr/bin/python{version}"', *first, '"$@"'))
    home = f'export PYTHONHOME="{root}/usr" PYTHONPATH="{folder}/wheels"'
    return f"#!/bin/sh\n{home}\nexec {start} {words}\n"


def install(python: str | Path, folder: Path, *what: str | Path) -> None:
    """Install something beside what the folder has."""
    command = [python, "-m", "pip", "install", "--quiet", "--upgrade", "--target", folder / "wheels", *what]
    subprocess.run(command, check=True)


def prepare(version: str, source: Path) -> Path:
    """Make a Python's folder anew; return its command."""
    folder = CACHE / version
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    for name, first in (("python", ()), ("walkback", ("-m", "walkback"))):
        path = folder / "bin" / name
        path.write_text(wrapper(version, folder, *first))
        path.chmod(0o755)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = folder / "bin" / "python"
    install(sys.executable, folder, "pip")
    # By that Python itself, which decides what it needs.
    install(python, folder, "--only-binary", ":all:", *project["dependencies"], *TOOLS)
    headers = peers.PEERS / f"python{version}" / "usr/include"
    # Everything but Python's headers stays that of the compiler.
    os.environ["CFLAGS"] = f"-I{headers}/python{version} -idirafter {headers}"
    os.environ["WALKBACK_CFLAGS"] = "-O0 -g0"
    install(python, folder, "--no-build-isolation", "--no-deps", source)
    return python


def unpacked() -> Path:
    """The source distribution, unpacked once: all Pythons compile the C that was generated for the first."""
    [packed] = (ROOT / ".cache" / "sdist").glob("*.tar.gz")
    shutil.rmtree(CACHE / "source", ignore_errors=True)
    shutil.unpack_archive(packed, CACHE / "source", filter="data")
    [source] = (CACHE / "source").iterdir()
    return source


def smoke() -> list[str]:
    """The files with the tests of verbs and formats; they need nothing but pytest."""
    listed = tomllib.loads((ROOT / "tests" / "always.toml").read_text())
    tests = chain.from_iterable([*listed["verbs"].values(), *listed["formats"].values()])
    return sorted({f"tests/{test.partition('::')[0]}" for test in tests})


def main() -> int:
    if not peers.PYTHONS or not (peers.PEERS / f"python{peers.PYTHONS[0]}").is_dir():
        print("pythons: none here; `make peers` brings them")
        return 0
    source = unpacked()
    for version in peers.PYTHONS:
        command = [prepare(version, source), "-m", "pytest", "--numprocesses", "auto", "--dist", "worksteal", *smoke()]
        environment = os.environ | {"WALKBACK_TESTS": "smoke", "WALKBACK_COMPILED": "required"}
        print(f"pythons: {version}", flush=True)
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
