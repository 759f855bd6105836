"""The programs that are stepped through, on three machines: those of this machine, of the peers, and our own."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import emulation
import peers
from gopclntab.gotools import VERSIONS, build_command
from stepping import Machine

HERE = Path(__file__).resolve().parent
HOST = Machine("AMD64")
NAMES = {"aarch64": "AArch64", "s390x": "s390x"}
ROOTS = {"aarch64": "arm64", "s390x": "s390x"}
OWN = {"C": "stepped.c", "C++": "stepped.cc"}


@dataclass(frozen=True)
class Program:
    """A command; `TEXT` and `OTHER` are files of words and numbers."""

    machine: str
    title: str
    command: tuple[str, ...]
    begin: str = "entry"
    times: int = 1
    """How much further than others it is stepped through."""

    @property
    def most(self) -> int:
        """Instructions to step through; emulators are slower."""
        return self.times * (1_000_000 if self.machine == "AMD64" else 150_000)


def _own(machine: str, *options: str) -> list[Program]:
    # An emulated program comes to its first exception late.
    times = {"C": 1, "C++": 1 if machine == "AMD64" else 2}
    return [
        Program(machine, f"{language} {option}", (language, option), times=times[language])
        for language in OWN
        for option in options
    ]


_PYTHON = "print(sorted({n * n % 97: str(n) for n in range(300)}.items())); import json; json.dumps([1.5, {'a': 'b'}])"
_SHELL = "i=0; s=; while [ $i -lt 300 ]; do i=$((i + 1)); s=$s$((i * i % 7)); done; f() { echo ${1#*1} | cat; }; f $s"
_AWK = "{ n[$2 % 17] += length($1) } END { for (i in n) print i, n[i], sqrt(n[i]), substr(i, 1, 1) }"
_SQL = (
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 900) "
    "select n % 7, count(*), avg(n) from t group by 1"
)
_PERL = 'my %h; $h{$_} = $_ * 2 for 1..3000; print scalar(grep { /7/ } sort keys %h), sprintf("%.3f", sqrt(2)), "\\n"'

PROGRAMS = [
    *_own("AMD64", "-O0", "-O2", "-Os"),
    Program("AMD64", "C, returns by calls", ("C", "-mfunction-return=thunk-inline")),
    Program("AMD64", "C, jumps by returns", ("C", "-mindirect-branch=thunk-inline")),
    Program("AMD64", "perl", ("perl", "-e", _PERL), "start"),
    Program("AMD64", "git", ("git", "diff", "--no-index", "--word-diff", "TEXT", "OTHER")),
    Program("AMD64", "sed", ("sed", "-E", "s/([a-z]+) ([0-9]+)/\\2 \\1/g", "TEXT")),
    Program("AMD64", "sort", ("sort", "-k2", "TEXT")),
    Program("AMD64", "gzip", ("gzip", "-c", "TEXT")),
    Program("AMD64", "grep", ("grep", "-cE", "(a|b)+c*[0-9]{2}", "TEXT")),
    Program("AMD64", "awk", ("awk", _AWK, "TEXT")),
    Program("AMD64", "bash", ("bash", "-c", _SHELL)),
    Program("AMD64", "gdb", ("gdb", "-nx", "-batch", "-ex", "print 6*7", "-ex", "help list")),
    Program("AMD64", "xz", ("xz", "-T1", "-c", "TEXT")),
    Program("AMD64", "openssl", ("openssl", "dgst", "-sha512", "TEXT")),
    Program("AMD64", "sqlite3", ("sqlite3", ":memory:", _SQL)),
    Program("AMD64", "readelf", ("readelf", "-aW", "PROGRAM")),
    Program("AMD64", "objdump", ("objdump", "-d", "PROGRAM")),
    Program("AMD64", "cc1", ("cc1", "-quiet", "-O2", "SOURCE", "-o", "/dev/null")),
    Program("AMD64", "python3", ("/usr/bin/python3", "-S", "-c", _PYTHON)),
    Program("AMD64", "find", ("find", "/usr/include", "-name", "*a*.h")),
    *(Program("AMD64", f"Go {version}", ("nm", version, "PROGRAM"), "goroutines") for version in VERSIONS),
    *(
        one
        for arch in NAMES
        for one in (
            *_own(arch, "-O0", "-O2"),
            Program(arch, "sort", ("sort", "-k2", "TEXT"), "start"),
            Program(arch, "dash", ("dash", "-c", _SHELL)),
            Program(arch, "python3.13", ("python3.13", "-S", "-c", _PYTHON)),
            Program(arch, "busybox awk", ("busybox", "awk", _AWK, "TEXT")),
            Program(arch, "busybox gzip", ("busybox", "gzip", "-c", "TEXT")),
            Program(arch, "sha512sum", ("sha512sum", "TEXT")),
            Program(arch, "ls", ("ls", "-l", "--color", "/etc")),
            Program(arch, "factor", ("factor", "1000000016000000063", "340282366920938463463374607431768211457")),
            Program(arch, "hexyl", ("hexyl", "TEXT")),
        )
    ),
]


def prepared(program: Program, folder: Path) -> tuple[Machine, list[str | Path]]:
    """The machine and the command with its files; skips the test where the program is not there."""
    words = _words()
    files = {
        "TEXT": folder / "text",
        "OTHER": folder / "other",
        "SOURCE": folder / "source.i",
        "PROGRAM": folder / "stepper",
    }
    files["TEXT"].write_text(words)
    files["OTHER"].write_text(words.replace("7", "8 9"))
    arguments: list[str | Path] = [files.get(word, word) for word in program.command[1:]]
    name = program.command[0]
    if "SOURCE" in program.command:
        subprocess.run(["gcc", "-w", "-E", "-o", files["SOURCE"], HERE / OWN["C"]], check=True)
    if program.begin == "goroutines":
        output = folder / f"{name}-{program.command[1]}"
        return HOST, [build_command(name, output, program.command[1], "amd64"), *arguments[1:]]
    if program.machine == "AMD64":
        return HOST, [_own_program(program.command, folder) if name in OWN else _installed(name), *arguments]
    arch = program.machine
    if name in OWN:
        machine = Machine(NAMES[arch], emulation.emulator(arch), emulation.root(arch))
        return machine, [_cross_program(program.command, arch, folder)]
    root = peers.root(ROOTS[arch])
    path = root / "usr/bin" / name
    if not path.exists():
        path = peers.root(f"samples-{ROOTS[arch]}") / "usr/bin" / name
    return Machine(NAMES[arch], emulation.emulator(arch), root), [path, *arguments]


def _words() -> str:
    """Lines of words and numbers, always the same."""
    return "".join(f"{'abcdefghijk'[n % 7 : n % 11]}word {n * 7919 % 1009} {n}\n" for n in range(1500))


def _installed(name: str) -> str:
    path = shutil.which(name)
    if name == "cc1":
        path = subprocess.run(
            ["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True
        ).stdout.strip()
    if path is None or not Path(path).is_absolute() or not Path(path).exists():
        pytest.skip(f"needs {name}")
    return path


def _own_program(command: tuple[str, ...], folder: Path) -> Path:
    language, option = command
    compiler = "g++" if language == "C++" else "gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    output = folder / f"own{option}-{compiler}"
    subprocess.run([compiler, "-w", option, "-o", output, HERE / OWN[language]], check=True)
    return output


def _cross_program(command: tuple[str, ...], arch: str, folder: Path) -> Path:
    language, option = command
    if language == "C":
        return emulation.built(folder / f"own{option}-{arch}-c", arch, HERE / OWN[language], option, "-w")
    libraries = ("libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")
    return emulation.built(
        folder / f"own{option}-{arch}-cc", arch, HERE / OWN[language], option, "-w", compiler="g++", libraries=libraries
    )
