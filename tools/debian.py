"""Fetches Debian packages from the mirror that this machine already uses, and unpacks them; nothing is installed.

Bare Python: this runs before any dependency is there.
"""

from __future__ import annotations

import getpass
import itertools
import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


PAUSES = (20, 60, 120)
"""Seconds before each further try to fetch: the files of a mirror do not fit each other while it is being updated."""


class FetchError(Exception):
    """Something could not be brought; the text is one line for people."""


def output_of(*command: str, conf: Path | None = None, folder: Path | None = None) -> str:
    """Standard output of a command; on failure its most telling line becomes the error."""
    env = os.environ | {"LC_ALL": "C"} | ({"APT_CONFIG": str(conf)} if conf else {})
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
        told = [*errors, *lines, f"exit status {done.returncode}"][0]
        raise FetchError(f"{command[0]}: {told}")
    return done.stdout


def mirrors() -> list[str]:
    """The addresses that serve this machine's own release, from its apt sources, fetched or not.

    Others than Debian may be among them; those fail the check against Debian's keyring.
    """
    system = platform.freedesktop_os_release()
    releases = {system.get("VERSION_CODENAME", ""), "oldstable", "stable", "testing", "unstable", "sid"}
    listing = output_of(
        "apt-get",
        *("-o", "APT::Get::IndexTargets::ReleaseInfo=false", "indextargets"),
        *("--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Identifier: Packages"),
    )
    found = [line.split(" ", 2) for line in listing.splitlines()]
    return list(dict.fromkeys(uri for release, part, uri in found if release in releases and part == "main"))


def keyring() -> Path:
    keys = sorted(Path("/usr/share/keyrings").glob("debian-archive-keyring.*"))
    if not keys:
        raise FetchError("no debian-archive-keyring in /usr/share/keyrings; install the package of that name")
    return keys[0]


def apt_state(release: str, architecture: str, mirror: str, folder: Path) -> Path:
    """An apt of its own for one release in an empty folder; returns its configuration.

    Nothing of the system's configuration is read except how to reach the network, so that neither its pins,
    its hooks nor its installed packages play a part.
    """
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    options = f"arch={architecture} signed-by={keyring()}"
    (folder / "sources.list").write_text(f"deb [{options}] {mirror} {release} main\n")
    settings = {
        "Dir::Etc::Main": "/dev/null",
        "Dir::Etc::Parts": "/dev/null",
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": getpass.getuser(),
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "30",
        "Debug::NoLocking": "true",
    }
    lines = [f'{name} "{value}";\n' for name, value in settings.items()]
    conf = folder / "apt.conf"
    conf.write_text(output_of("apt-config", "dump", "Acquire") + "".join(lines))
    return conf


def highest(name: str, known: list[str]) -> str:
    """The package that a name with `*` means: the one with the highest numbers there."""
    if "*" not in name:
        return name
    pattern = re.compile(re.escape(name).replace(r"\*", r"(\d+)"))
    found = [(tuple(map(int, match.groups())), match[0]) for match in map(pattern.fullmatch, known) if match]
    if not found:
        raise FetchError(f"no package is called {name}")
    return max(found)[1]


def download(
    wanted: Sequence[str], releases: Sequence[str], architecture: str, folder: Path, *, alone: bool
) -> list[Path]:
    """The .deb files of packages, with all they depend on unless `alone`, from the first release and mirror that can.

    Where none can, all are tried again after a pause.
    """
    for pause in (*PAUSES, None):
        problem = "no apt source of this machine serves Debian main"
        for release, mirror in itertools.product(releases, mirrors()):
            try:
                return download_from(mirror, wanted, release, architecture, folder, alone=alone)
            except FetchError as error:
                problem = str(error)
        if pause is None:
            break
        print(f"{problem}; another try in {pause} s", flush=True)
        time.sleep(pause)
    raise FetchError(problem)


def download_from(
    mirror: str, wanted: Sequence[str], release: str, architecture: str, folder: Path, *, alone: bool
) -> list[Path]:
    """The .deb files of packages from one mirror."""
    shutil.rmtree(folder, ignore_errors=True)
    conf = apt_state(release, architecture, mirror, folder)
    output_of("apt-get", "-q", "update", conf=conf)
    known = output_of("apt-cache", "pkgnames", conf=conf).split()
    packages = [highest(name, known) for name in wanted]
    archives = folder / "cache" / "archives"
    if alone:
        output_of("apt-get", "-q", "download", *packages, conf=conf, folder=archives)
    else:
        output_of("apt-get", "-qy", "--download-only", "install", *packages, conf=conf)
    return sorted(archives.glob("*.deb"))


def unpack(package: Path, root: Path, left_out: tuple[str, ...]) -> None:
    excludes = [f"--exclude={pattern}" for pattern in left_out]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as tar:
        done = subprocess.run(["tar", "-x", "-C", root, *excludes], stdin=tar.stdout, check=False)
    if tar.returncode or done.returncode:
        raise FetchError(f"{package.name} does not unpack")
