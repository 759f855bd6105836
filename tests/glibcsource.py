"""The source of the GNU C Library that `make peers` brings: its reader of SFrame, and the whole library built of it.

Nothing of it is kept outside of the git-ignored folders.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from peers import BIN, peer

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "glibc"
READER = ("sysdeps/generic/sframe", "sysdeps/unix/sysv/linux/x86_64/uw-sigframe.h")
BUILT = (
    *("libc.so", "libc.a", "libc_nonshared.a", "elf/ld.so"),
    *(f"csu/{name}.o" for name in ("crt1", "rcrt1", "Scrt1", "crti", "crtn")),
)
TOOLS = ("addr2line", "ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "size", "strip")


def tarball() -> Path:
    """The source; without it the test skips."""
    found = sorted((BIN.parent / "glibc/usr/src/glibc").glob("glibc-*.tar.xz"))
    if not found:
        peer("the source of the GNU C Library")
    return found[-1]


def reader() -> Path:
    """A folder with the files of the reader, of which its header for signal frames is that of x86-64."""
    source = tarball()
    return _made(f"reader-{source.name.removesuffix('.tar.xz')}", lambda folder: _unpack_reader(source, folder))


def library() -> Path:
    """A folder with the library built with SFrame; that takes a quarter of an hour or more."""
    source = tarball()
    missing = [tool for tool in ("bison", "gawk", "gcc", "make") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} to build the GNU C Library")
    peer("as-new")
    return _made(f"library-{source.name.removesuffix('.tar.xz')}", lambda folder: _build(source, folder))


def _made(name: str, make: Callable[..., object]) -> Path:
    """A folder in the cache, made whole or not at all, by one process."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder, new = CACHE / name, CACHE / f"{name}.new"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            make(new)
            new.rename(folder)
    return folder


def _unpack_reader(source: Path, folder: Path) -> None:
    with tarfile.open(source) as tar:
        for member in tar:
            if member.isfile() and member.name.partition("/")[2].startswith(READER):
                (folder / Path(member.name).name).write_bytes(tar.extractfile(member).read())


def _build(source: Path, folder: Path) -> None:
    work = CACHE / "work"
    shutil.rmtree(work, ignore_errors=True)
    for name in ("bin", "build"):
        (work / name).mkdir(parents=True)
    subprocess.run(["tar", "-xJf", source, "-C", work], check=True)
    for tool in TOOLS:
        (work / "bin" / tool).write_text(f'#!/bin/sh\nexec "{BIN / tool}-new" "$@"\n')
        (work / "bin" / tool).chmod(0o755)
    env = os.environ | {"PATH": f"{work / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C"}
    options = ["--prefix=/usr", "--enable-sframe", "--disable-werror"]
    compilers = [f"{name}={program} -B{work / 'bin'}/" for name, program in (("CC", "gcc"), ("CXX", "g++"))]
    configure = work / source.name.removesuffix(".tar.xz") / "configure"
    with (work / "log").open("wb") as log:
        commands: list[list[str | Path]] = [
            [configure, *options, *compilers],
            ["make", f"-j{os.cpu_count()}", "lib"],
        ]
        for command in commands:
            subprocess.run(command, cwd=work / "build", env=env, stdout=log, stderr=log, check=True)
    for name in BUILT:
        shutil.copy(work / "build" / name, folder)
    shutil.rmtree(work)
