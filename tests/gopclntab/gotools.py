"""Programs of Go, built by the peers."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import walkback
from peers import root
from walkback.table.rule import PartKind

if TYPE_CHECKING:
    from walkback.base.arrays import U64
    from walkback.table.table import UnwindTable

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "go"
"""What the compilers keep for the next time."""
MACHINES = ("amd64", "arm64", "s390x")
VERSIONS = ("1.19", "1.22", "1.24", "new")


COMMANDS = (
    "addr2line", "asm", "buildid", "cgo", "compile", "cover", "doc", "fix", "gofmt", "link", "nm", "objdump", "pack",
    "pprof", "test2json", "trace", "vet",
)  # fmt: skip
"""Programs of Go's own, whose sources every version has."""


def build(source: Path, output: Path, version: str, machine: str = "amd64", *flags: str, **settings: str) -> Path:
    """A program of one file, built if it is not there."""
    return _build(source, output, version, machine, *flags, GO111MODULE="off", **settings)


def build_command(name: str, output: Path, version: str, machine: str) -> Path:
    """One of `COMMANDS`."""
    return _build(f"cmd/{name}", output, version, machine)


def _build(source: Path | str, output: Path, version: str, machine: str, *flags: str, **settings: str) -> Path:
    if output.exists():
        return output
    [go] = (root(f"go-{version}") / "usr" / "lib").glob("go-*/bin/go")
    given = {"GOCACHE": str(CACHE), "CGO_ENABLED": "0", "GOARCH": machine}
    given |= {"GOTOOLCHAIN": "local", "GOFLAGS": "-p=2"} | settings
    environment = {"PATH": os.environ["PATH"], "HOME": str(output.parent)} | given
    command: list[str | Path] = [go, "build", "-trimpath", *flags, "-o", output, source]
    subprocess.run(command, cwd=HERE, env=environment, check=True)
    return output


def callers(folder: Path, version: str, program: str = "callers", c_flags: str = "", *flags: str) -> Path:
    """One of the programs that say what is called in them, without symbols; with `c_flags` there is C in it."""
    # Go 1.23 and newer link names of the runtime only if they are told to.
    linker = "-s -checklinkname=0" if program == "callers" and version in {"1.24", "new"} else "-s"
    output = folder / "-".join((program, version, c_flags.replace(" ", ""), *flags))
    settings = {"CGO_ENABLED": "1", "CGO_CFLAGS": c_flags} if c_flags else {}
    return build(HERE / f"{program}.go", output, version, "amd64", f"-ldflags={linker}", *flags, **settings)


class Compared(NamedTuple):
    """Go's table against the debug frames of a program: addresses with rules in either, in both, and other rules."""

    addresses: int
    both: int
    different: Counter[str]
    """At how many addresses each function has other rules, by its name without the ABI."""


def rules_compared(path: Path) -> Compared:
    """The CFA and the return address wherever a row of either begins."""
    [source] = walkback.gopclntab.read(path)
    [frames] = (found for found in walkback.dwarf.read(source.elf) if not found.frames.eh)
    starts = np.repeat(source.table.range_start, source.table.range_rows) + source.table.row_offset
    other = np.repeat(frames.table.range_start, frames.table.range_rows) + frames.table.row_offset
    addresses = np.unique(np.concatenate((starts, other)))
    cfa, ra, known = _rules_at(source.table, addresses)
    other_cfa, other_ra, also_known = _rules_at(frames.table, addresses)
    both = known & also_known
    different = addresses[both & ((cfa != other_cfa) | (ra != other_ra))]
    names = [(name or "").removesuffix(".abi0") for name in source.functions.locate(different)[0]]
    return Compared(len(addresses), int(np.count_nonzero(both)), Counter(names))


def _rules_at(table: UnwindTable, addresses: U64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The CFA and the return address at each address, and whether there is a caller that a rule leads to."""
    _, row = table.find_many(addresses)
    rules = table.rules[table.row_rule[row]]
    with_rule = (row >= 0) & (rules["ra"]["kind"] != PartKind.UNDEFINED)
    return rules["cfa"], rules["ra"], with_rule & (rules["cfa"]["kind"] != PartKind.INEXPRESSIBLE)
