"""Brings some forty well-known packages of Debian, for each of three machines, to be surveyed; or any of one machine.

python tools/distribution.py FOLDER
python tools/distribution.py --random 12000 FOLDER
walkback survey FOLDER -o SURVEY

The packages come alone, without what they depend on, checked against Debian's keyring. What is there already is kept.
Random ones are of Debian 12 for AMD64, and the first of them are the same however many are wanted.
Bare Python: nothing else has to be there.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from debian import FetchError, apt_state, mirrors, output_of

RELEASE = "trixie"
ARCHITECTURES = {"amd64": "x86-64-linux-gnu", "arm64": "aarch64-linux-gnu", "s390x": "s390x-linux-gnu"}
"""And what stands for `*` in names of packages."""
PACKAGES = {
    "C": (
        *("bash", "coreutils", "curl", "ffmpeg", "git", "libavcodec61", "libc6", "libgtk-3-0t64", "libpython3.13"),
        *("libsqlite3-0", "libssl3t64", "libsystemd-shared", "nginx", "openssh-client", "perl-base", "postgresql-17"),
        *("qemu-system-misc", "redis-tools", "systemd", "vim", "zlib1g"),
    ),
    "C++": ("cmake", "cpp-14-*", "libboost-regex1.83.0", "libicu76", "libllvm19", "libqt6core6t64", "libstdc++6"),
    "C++ and Rust": ("firefox-esr",),
    "Rust": ("fd-find", "libstd-rust-1.85", "librsvg2-2", "ripgrep"),
    "Go": ("containerd", "docker.io", "golang-1.24-go", "prometheus"),
    "runtimes with a JIT": (
        "erlang-base",
        "libjavascriptcoregtk-6.0-1",
        "libnode115",
        "openjdk-21-jre-headless",
        "php8.4-cli",
    ),
    "Fortran": ("libgfortran5", "liblapack3", "libopenblas0-pthread"),
    "Ada": ("gnat-14-*",),
    "OCaml": ("opam",),
    "Haskell": ("pandoc",),
}


def bring(architecture: str, folder: Path) -> None:
    """The packages for one machine, from the first mirror that has them."""
    names = [name.replace("*", ARCHITECTURES[architecture]) for group in PACKAGES.values() for name in group]
    there = {path.name.partition("_")[0] for path in folder.glob("*.deb")}
    wanted = [name for name in names if name not in there]
    problem = "no apt source of this machine serves Debian main"
    state = folder / ".apt"
    for mirror in mirrors() if wanted else ():
        shutil.rmtree(state, ignore_errors=True)
        conf = apt_state(RELEASE, architecture, mirror, state)
        try:
            output_of("apt-get", "-q", "update", conf=conf)
            known = set(output_of("apt-cache", "pkgnames", conf=conf).split())
            missing = sorted(set(wanted) - known)
            if missing:
                print(f"{architecture}: {RELEASE} has no {', '.join(missing)}", flush=True)
            fetched = [name for name in wanted if name in known]
            output_of("apt-get", "-q", "download", *fetched, conf=conf, folder=folder)
            break
        except FetchError as error:
            problem = str(error)
    else:
        if wanted:
            raise FetchError(f"{architecture}: {problem}")
    shutil.rmtree(state, ignore_errors=True)
    found = list(folder.glob("*.deb"))
    print(
        f"{architecture}: {len(found)} packages, {sum(path.stat().st_size for path in found) / 1e6:.0f} MB", flush=True
    )


AT_ONCE, TOGETHER = 50, 4
"""Packages that one process fetches, and processes."""


def bring_random(count: int, folder: Path) -> None:
    """Packages of Debian 12 for AMD64, in an order that is always the same."""
    state = folder / ".apt"
    for mirror in mirrors():
        shutil.rmtree(state, ignore_errors=True)
        conf = apt_state("bookworm", "amd64", mirror, state)
        try:
            output_of("apt-get", "-q", "update", conf=conf)
        except FetchError as error:
            print(error, flush=True)
            continue
        known = output_of("apt-cache", "dumpavail", conf=conf).split("\n\n")
        names = [
            one[1] for text in known if "\nArchitecture: amd64" in text and (one := re.match(r"Package: (.*)", text))
        ]
        random.Random(21).shuffle(names)
        there = {path.name.partition("_")[0] for path in folder.glob("*.deb")}
        wanted = [name for name in names[:count] if name not in there]
        batches = [wanted[first : first + AT_ONCE] for first in range(0, len(wanted), AT_ONCE)]

        def fetch(names: list[str], conf: Path = conf) -> str:
            return output_of("apt-get", "-q", "download", *names, conf=conf, folder=folder)

        with ThreadPoolExecutor(TOGETHER) as threads:
            list(threads.map(fetch, batches))
        print(f"{len(list(folder.glob('*.deb')))} packages", flush=True)
        shutil.rmtree(state, ignore_errors=True)
        return
    raise FetchError("no apt source of this machine serves Debian main")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Bring packages of Debian: some forty well-known ones for three machines."
    )
    parser.add_argument("--random", type=int, metavar="N", help="N packages of Debian 12 for AMD64 instead.")
    parser.add_argument("folder", type=Path, help="Where the packages go, in a folder for each machine.")
    asked = parser.parse_args()
    folder: Path = asked.folder
    try:
        if asked.random:
            folder.mkdir(parents=True, exist_ok=True)
            bring_random(asked.random, folder.resolve())
            return 0
        for architecture in ARCHITECTURES:
            (folder / architecture).mkdir(parents=True, exist_ok=True)
            bring(architecture, (folder / architecture).resolve())
    except FetchError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
