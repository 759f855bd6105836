"""Packages and archives for tests, made by the real tools, and what walkback finds in them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import peers
from walkback.packages.walk import Again, Broken, elf_files_in

ELF = b"\x7fELF\2\1\1"
WHEEL = "numpy-2.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


def tool(name: str) -> str:
    """A program of the machine, or one that `make peers` brings."""
    return shutil.which(name) or peers.peer(name)


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> bytes:
    name, *arguments = map(str, command)
    env = os.environ | {"LC_ALL": "C"} | environment
    return subprocess.run([tool(name), *arguments], cwd=cwd, env=env, check=True, capture_output=True).stdout


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def tar_of(files: dict[str, bytes], **options: Any) -> bytes:
    """Python's tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            # Without the time of day, which would give parameters of tests other names in each process.
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def ar_of(folder: Path, files: dict[str, bytes]) -> bytes:
    run("ar", "rc", "made.a", *files, cwd=write(folder, files))
    return (folder / "made.a").read_bytes()


def link(tree: Path, links: dict[str, str]) -> None:
    """More names for files."""
    for name, target in links.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(tree / target, tree / name)


def deb_of(
    folder: Path,
    files: dict[str, bytes],
    *options: str,
    control: dict[str, bytes] | None = None,
    links: dict[str, str] | None = None,
) -> Path:
    """A package by dpkg-deb; `folder` is for it alone."""
    about = b"Package: hello\nVersion: 1:2.10-3\nArchitecture: arm64\nMaintainer: N <n@example.org>\nDescription: d\n"
    tree = write(folder / "tree", files | {"DEBIAN/control": about})
    for name, data in (control or {}).items():
        write(tree / "DEBIAN", {name: data})
        (tree / "DEBIAN" / name).chmod(0o755)
    (tree / "DEBIAN").chmod(0o755)
    link(tree, links or {})
    run("dpkg-deb", "--root-owner-group", *options, "--build", tree, folder / "hello.deb")
    return folder / "hello.deb"


def rpm_of(folder: Path, files: dict[str, bytes], payload: str, *, links: dict[str, str] | None = None) -> Path:
    """A package by rpmbuild; `folder` is for it alone, and `payload` names the compressor as RPM does."""
    (folder / "tree").mkdir(parents=True)
    tree = write(folder / "tree", files)
    link(tree, links or {})
    spec = folder / "hello.spec"
    names = "".join(f'"/{name}"\n' for name in [*files, *(links or {})])
    spec.write_text(
        "Name: hello\nEpoch: 3\nVersion: 2.10\nRelease: 4\nSummary: s\nLicense: none\nAutoReqProv: no\n"
        f"%description\nd\n%install\nmkdir -p %{{buildroot}}\ncp -a {tree}/. %{{buildroot}}\n%files\n{names}"
    )
    defined = {
        "_topdir": str(folder / "top"),
        "_binary_payload": payload,
        "__os_install_post": "%{nil}",
        "debug_package": "%{nil}",
        "_build_id_links": "none",
    }
    defines = [part for key, value in defined.items() for part in ("--define", f"{key} {value}")]
    run("rpmbuild", "-bb", *defines, "--target", "aarch64", spec, HOME=str(folder))
    (package,) = (folder / "top/RPMS").rglob("*.rpm")
    return package


def look(path: Path | str) -> tuple[dict[str | None, bytes], list[Broken]]:
    """The ELF files by their members, which are unique here, and what is broken."""
    found: dict[str | None, bytes] = {}
    contents: list[bytes] = []
    broken = []
    for one in elf_files_in(str(path)):
        if isinstance(one, Broken):
            broken.append(one)
            continue
        assert one.member not in found
        if isinstance(one, Again):
            found[one.member] = contents[one.index]
        else:
            found[one.member] = bytes(one.data)
            contents.append(found[one.member])
    return found, broken


def looked_at(folder: Path, data: bytes, name: str = "file") -> tuple[dict[str | None, bytes], list[Broken]]:
    """The same of these bytes."""
    (folder / name).write_bytes(data)
    return look(folder / name)
