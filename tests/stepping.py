"""Runs programs of three machines under the stepper, and holds what it saw against the verdicts of the proof.

The stepper (stepper.c) shares nothing with the proof: it knows a call by its bytes, and the CFA and the saved registers
by what they were when it happened.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import walkback
from walkback.elf import ElfFile, layout
from walkback.elf.golang import is_go
from walkback.proof.fromcode import table_of_code
from walkback.proof.functions import undescribed_code
from walkback.proof.numbering import KEPT
from walkback.proof.prove import Prover
from walkback.proof.values import CFA_TARGET, UNDEFINED, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from walkback.base.arrays import U32, U64
    from walkback.proof.proof import Proof

SOURCES = ("stepper.c", "steps.c")
REFUSED = 3
"""What the stepper ends with where a process may not be stepped through."""
LISTED = re.compile(r"(\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
CLAIM = ("target", "base", "depth", "signed")


@dataclass(frozen=True)
class Machine:
    """How programs of one machine are run."""

    name: str
    emulator: str = ""
    root: Path = Path("/")
    """The folder that has its libraries."""


@dataclass(frozen=True)
class Place:
    """An instruction that was executed."""

    path: str
    address: int
    times: int
    verdict: Verdict
    contradicted: int = 0
    """How often a claim of the table was not what stepping saw."""
    what: int = 0
    """The register of the first such claim."""

    def __str__(self) -> str:
        return f"{self.path} {self.address:#x} {self.verdict.name} {self.what} {self.contradicted}/{self.times}"


@dataclass
class Seen:
    """What stepping through a program saw."""

    steps: int = 0
    inside: int = 0
    """Instructions of files whose tables were verified."""
    judged: int = 0
    """Those of them whose rules were compared."""
    places: list[Place] = field(default_factory=list)

    def contradictions(self, *verdicts: Verdict) -> list[str]:
        return [str(one) for one in self.places if one.contradicted and one.verdict in verdicts]

    def agreeing(self, *verdicts: Verdict) -> list[str]:
        return [str(one) for one in self.places if not one.contradicted and one.verdict in verdicts]


class RefusedError(Exception):
    """This machine does not let processes be stepped through."""


class Stepper:
    """The stepper, compiled, and the rules of the files that it met."""

    def __init__(self, folder: Path, proof_of: Callable[[Path], Proof] | None = None) -> None:
        """`proof_of` gives the proof of another table than that of Go, or else of a file's call frame information."""
        self.folder = folder
        self.proof_of = proof_of or proof_of_own
        self.program = folder / "stepper"
        here = Path(__file__).resolve().parent
        subprocess.run(["gcc", "-O2", "-w", "-o", self.program, *(here / one for one in SOURCES)], check=True)
        self.ranges: dict[Path, tuple[U64, U64]] = {}
        """Where the ranges of a file begin and end."""

    def step(self, machine: Machine, most: int, *command: str | Path, begin: str = "entry") -> Seen:
        """Step through so many instructions of a program from its `entry`, or the `start` of its dynamic linker.

        A program of Go has stacks of `goroutines` from its entry on.
        """
        program = Path(command[0]).resolve()
        prefix: list[str | Path] = []
        if machine.emulator:
            socket = self.folder / "stub"
            socket.unlink(missing_ok=True)
            prefix = [machine.emulator, "-g", socket, "-L", machine.root, "-E", "PYTHONHOME=/usr"]
        paths = list(dict.fromkeys((program, *libraries(machine, program))))
        listed = self.folder / "modules"
        listed.write_text("".join(f"{first_address(path):x} {self.rules(path)} {path}\n" for path in paths))
        done = subprocess.run(
            [self.program, machine.name, listed, begin, str(most), *prefix, program, *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
            env={"PATH": os.defpath, "LC_ALL": "C"},
        )
        if done.returncode == REFUSED:
            raise RefusedError
        assert done.returncode == 0, done.stderr
        counts, *lines = (line.split() for line in done.stdout.splitlines())
        steps, inside, judged = map(int, counts)
        seen = Seen(steps, inside, judged)
        for number, at, times, *rest in lines:
            path, address = paths[int(number)], int(at, 16)
            if rest:
                verdict, wrong, what = map(int, rest)
                seen.places.append(Place(str(path), address, int(times), Verdict(verdict), wrong, what))
            elif self.has_range(path, address):
                seen.places.append(Place(str(path), address, int(times), Verdict.NOT_REACHED))
        return seen

    def has_range(self, path: Path, address: int) -> bool:
        """Whether a table covers an address of a file."""
        start, end = self.ranges[path]
        number = int(np.searchsorted(start, address, "right")) - 1
        return number >= 0 and address < int(end[number])

    def rules(self, path: Path) -> Path:
        """The file of the rules of a file, as the stepper takes them."""
        name = self.folder / hashlib.sha256(str(path).encode()).hexdigest()
        if path in self.ranges:
            return name
        proof = self.proof_of(path)
        self.ranges[path] = (proof.ranges.start, proof.ranges.start + proof.ranges.size.astype(np.uint64))
        units = range(len(proof.units.first) - 1)
        rows = sorted((at, int(verdict)) for unit in units for at, _, verdict, _ in proof.instructions(unit))
        address = np.array([at for at, _ in rows], np.uint64)
        instructions = np.zeros(len(rows), [("address", "<u8"), ("set", "<u4"), ("verdict", "<u4")])
        instructions["address"] = address
        instructions["set"] = sets_at(proof, address)
        instructions["verdict"] = [verdict for _, verdict in rows]
        sets = proof.sets
        claims = np.zeros((len(sets.target), 7), "<i8")
        for column, part in enumerate(CLAIM):
            claims[:, column] = getattr(sets, part)
        claims[:, 4:] = sets.offset
        # What calls need not keep may have changed when a function jumps to another, which the stepper does not see.
        followed = [CFA_TARGET, proof.machine.ra, proof.machine.sp, *KEPT[proof.machine]]
        claims[~np.isin(sets.target, followed), CLAIM.index("base")] = UNDEFINED
        header = np.array([len(rows), len(sets), len(claims)], "<u8")
        name.write_bytes(
            header.tobytes() + instructions.tobytes() + sets.first.astype("<u4").tobytes() + claims.tobytes()
        )
        return name


def proof_of_own(path: Path) -> Proof:
    """The proof of the first table that a file has, of a program of Go that of its functions."""
    table = ".gopclntab" if is_go(ElfFile(path)) else None
    return next(iter(walkback.verify(path, table=table))).proof


def proof_of_code(path: Path) -> Proof:
    """The proof of the table that is made from the code of a file alone."""
    prover = Prover(ElfFile(path), ())
    nothing = np.zeros(0, np.uint64)
    return prover.prove(table_of_code(prover, undescribed_code(prover, nothing, nothing)))


def sets_at(proof: Proof, address: U64) -> U32:
    """The set of claims that holds at each of some addresses, which rise."""
    ranges = proof.ranges
    numbers = np.searchsorted(ranges.start, address, "right") - 1
    repeating = ranges.block[numbers] != 0
    # The rows of all ranges that do not repeat themselves, one after the other, by address.
    plain = np.flatnonzero((ranges.block == 0) & (ranges.rows > 0))
    count = ranges.rows[plain]
    rows = np.arange(count.sum()) + np.repeat(ranges.first_row[plain] - np.cumsum(count) + count, count)
    start = np.repeat(ranges.start[plain], count) + ranges.row_offset[rows]
    found: U32 = ranges.row_claims[rows[np.searchsorted(start, address, "right") - 1]]
    for at in np.flatnonzero(repeating).tolist():
        found[at] = ranges.row_claims[proof.row_at(int(numbers[at]), int(address[at]))]
    return found


def first_address(path: Path) -> int:
    """Where the page with a file's first byte is, by its own addresses."""
    elf = ElfFile(path)
    return min(int(one["vaddr"]) & ~0xFFF for one in elf.segments if one["type"] == layout.PT_LOAD)


def libraries(machine: Machine, program: Path) -> list[Path]:
    """The libraries that a program is loaded with, and the dynamic linker; none for a static program."""
    if machine.emulator:
        command = [machine.emulator, "-L", str(machine.root), "-E", "LD_TRACE_LOADED_OBJECTS=1", str(program)]
    else:
        command = ["ldd", str(program)]
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    found = (machine.root / name.lstrip("/") for name in LISTED.findall(output))
    return [path.resolve() for path in found if path.exists()]
