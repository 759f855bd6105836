"""How many damages of call frame information the proof finds, of one compiler with one set of options.

Functions are proved each for itself, together with their parts that are elsewhere. So one object has a damage in each
of its functions, and each is a case. `python tests/damagecount.py` counts for all compilers and options.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np

import walkback
from damaged import MACHINES, SHAPES, Damage, assembled, assembly, damaged, damages, functions
from walkback.dwarf.files import frame_sources
from walkback.proof.values import CFA_BASE, CFA_TARGET, Signature, Verdict
from walkback.sections.verified import Mismatch, Verified

Claim = tuple[int, ...]
"""What is counted from, loads, offsets, and whether there is a signature."""


class Proved:
    """The proof of an object by its functions, which are numbered as in its assembly."""

    def __init__(self, path: Path) -> None:
        self.verified: Verified = next(iter(walkback.verify(path)))
        self.proof = self.verified.proof
        [source, *_] = frame_sources(self.verified.elf)
        fdes = source.frames.fdes
        starts = self.verified.prover.image.addresses(fdes.start, source.frames.code_section)
        found = np.searchsorted(self.proof.ranges.start, starts).clip(max=max(len(self.proof.ranges.start) - 1, 0))
        self.ranges = np.where(self.proof.ranges.start[found] == starts, found, -1).tolist()
        self._found: dict[int, dict[int, Verdict]] = {}
        self._sets: dict[int, dict[int, Claim]] = {}

    @cached_property
    def _unit_of(self) -> dict[int, int]:
        """The unit of each range."""
        first, members = self.proof.units.first.tolist(), self.proof.units.members.tolist()
        return {number: unit for unit, (one, end) in enumerate(pairwise(first)) for number in members[one:end]}

    def instructions(self, number: int) -> dict[int, Verdict]:
        """The verdict at the offset of each instruction of a range that is reached."""
        if number not in self._found:
            for address, _, verdict, _ in self.proof.instructions(self._unit_of[number]):
                other = self.proof.range_of(address)
                self._found.setdefault(other, {})[address - int(self.proof.ranges.start[other])] = verdict
        return self._found.setdefault(number, {})

    def claims(self, number: int, offsets: list[int]) -> list[dict[int, Claim]]:
        """What the table claims at places of a range."""
        ranges = self.proof.ranges
        first, count = int(ranges.first_row[number]), int(ranges.rows[number])
        rows = first + np.searchsorted(ranges.row_offset[first : first + count], offsets, "right") - 1
        return [self._set(chosen) for chosen in ranges.row_claims[rows].tolist()]

    def _set(self, chosen: int) -> dict[int, Claim]:
        sets = self.proof.sets
        if chosen not in self._sets:
            first, end = sets.first[chosen : chosen + 2].tolist()
            target, base, depth, offset, signed = (
                column[first:end].tolist() for column in (sets.target, sets.base, sets.depth, sets.offset, sets.signed)
            )
            claims = zip(base, depth, offset, signed, strict=True)
            self._sets[chosen] = {
                one: (base, depth, *offset, signed)
                for one, (base, depth, offset, signed) in zip(target, claims, strict=True)
            }
        return self._sets[chosen]


@dataclass(slots=True)
class Tally:
    """What became of the damages."""

    cases: Counter[str] = field(default_factory=Counter)
    """Damages by outcome, and what else is counted.

    A damage is `found` if one of the instructions is where the rules differ; if only others are, it is found
    `elsewhere`. It is `harmless` if what the damaged rules say is right too, and `same` if no instruction that is
    reached has other rules. Otherwise it is `missed`. Of the `instructions` that certainly have wrong rules `told` are
    found. `false` are functions with an alarm at another instruction.

    Of what the compiler wrote there are `bytes` of instructions, of which some are `proved`, and `alarms`; `mistakes`
    are those that the compiler is known to make.
    """
    notes: list[str] = field(default_factory=list)
    """What is to be looked at."""

    @property
    def wrong(self) -> int:
        """How many damages made rules wrong."""
        return self.cases["found"] + self.cases["elsewhere"] + self.cases["missed"]


def count(compiler: str, lines: list[str], folder: Path, most: int | None = None) -> Tally:
    """Damage each directive of each function in each way; with `most` only so many, from all over the function."""
    tally = Tally()
    path = assembled(compiler, lines, folder / "whole.o")
    assert path is not None
    whole = Proved(path)
    note_whole(compiler, whole, tally)
    each = list(functions(lines))
    assert len(each) == len(whole.ranges)
    is_part = [any(".cold" in line for line in lines[max(first - 3, 0) : first]) for first, _ in each]
    for wanted in (False, True):
        chosen = [list(damages(lines, *one)) if part is wanted else [] for one, part in zip(each, is_part, strict=True)]
        for batch in zip_longest(*(some[:: len(some) // most + 1] if most else some for some in chosen)):
            some = {number: one for number, one in enumerate(batch) if one is not None}
            for part in accepted(compiler, lines, some, folder / "other.o"):
                judge(whole, Proved(folder / "other.o"), part, tally)
    return tally


def accepted(compiler: str, lines: list[str], chosen: dict[int, Damage], output: Path) -> Iterator[dict[int, Damage]]:
    """Damages of several functions, of which an object is made; each for itself if the assembler refuses them."""
    if assembled(compiler, damaged(lines, *chosen.values()), output) is not None:
        yield chosen
    elif len(chosen) > 1:
        half = len(chosen) // 2
        numbers = list(chosen)
        for part in (numbers[:half], numbers[half:]):
            yield from accepted(compiler, lines, {number: chosen[number] for number in part}, output)


def is_mistake(compiler: str, one: Mismatch) -> bool:
    """Whether a compiler is known to write this.

    GCC for AMD64 restores the frame pointer of a realigned frame before the last instruction, and leaves rules that
    count from it. Clang for s390x describes no epilogue. LLVM for AArch64 moves the store of the return address behind
    the rule for it.
    """
    if compiler == "aarch64-rustc":
        return one.what == "ra" and one.claimed.startswith("*(CFA") and one.computed == "unchanged"
    if compiler == "gcc":
        return one.what != "cfa" and one.claimed.startswith("*(rbp")
    return compiler.startswith("s390x-clang") and one.what == "cfa" and one.computed == "r15+160"


def note_whole(compiler: str, whole: Proved, tally: Tally) -> None:
    """An alarm on what the compiler wrote is false, unless the compiler is wrong."""
    verified = whole.verified
    tally.cases["bytes"] += verified.reached
    tally.cases["proved"] += verified.proved
    tally.cases["assumed"] += verified.assumed
    alarms = [one for one in verified.mismatches if not is_mistake(compiler, one)]
    tally.cases["alarms"] += len(alarms)
    tally.cases["mistakes"] += len(verified.mismatches) - len(alarms)
    tally.notes += [f"alarm {one.function} {one.address:x} {one.message}" for one in alarms]
    if verified.proved != verified.reached:
        tally.notes.append(f"unproved {verified.assumed} {verified.unknown} {verified.reasons}")


def judge(whole: Proved, other: Proved, chosen: dict[int, Damage], tally: Tally) -> None:
    """Hold what is found against where the rules differ."""
    places = {whole.ranges[number]: one.what for number, one in chosen.items()}
    alarms = set(whole.proof.mismatches[:, 0].tolist())
    tally.cases["false"] += len(set(other.proof.mismatches[:, 0].tolist()) - places.keys() - alarms)
    for number, what in places.items():
        before, after = whole.instructions(number), other.instructions(number)
        wrong = {offset for offset, verdict in after.items() if verdict is Verdict.WRONG}
        # What was wrong before, or cannot be reached, as jumps behind calls that do not return: `-O0` leaves them.
        others = {offset for offset, verdict in before.items() if verdict in {Verdict.WRONG, Verdict.ASSUMED}}
        wrong -= others
        right = [offset for offset in before if offset not in others]
        differs, certain = set(), set()
        for offset, one, another in zip(right, whole.claims(number, right), other.claims(number, right), strict=True):
            if one != another:
                differs.add(offset)
                if any(is_certain(target, one, another) for target in one.keys() | another.keys()):
                    certain.add(offset)
        if not differs:
            tally.cases["same"] += 1
            continue
        tally.cases["false"] += bool(wrong - differs)
        tally.cases["instructions"] += len(certain)
        tally.cases["told"] += len(certain & wrong)
        verdicts = {after.get(offset, Verdict.NOT_REACHED) for offset in differs}
        if wrong & differs:
            outcome = "found"
        elif wrong:
            outcome = "elsewhere"
        elif verdicts == {Verdict.PROVED} and not certain:
            outcome = "harmless"
        else:
            outcome = "missed"
        tally.cases[outcome] += 1
        if outcome in {"missed", "elsewhere"} or certain - wrong or wrong - differs:
            section, start = whole.verified.prover.section_of(int(whole.proof.ranges.start[number]))
            name = whole.verified.prover.symbols.describe(start, section)
            shown = (" ".join(f"{offset:x}" for offset in sorted(some)[:4]) for some in (differs, certain, wrong))
            tally.notes.append(f"{outcome}: {name}: {what}: {' | '.join(shown)}")


def is_certain(target: int, one: dict[int, Claim], another: dict[int, Claim]) -> bool:
    """Whether two claims cannot both be right, whatever the code does."""
    first, second = one.get(target), another.get(target)
    if first is None or second is None or first == second or first[:2] != second[:2]:
        return False
    if first[:5] == second[:5]:
        return {first[5], second[5]} == {Signature.NO, Signature.YES}
    base, depth = first[:2]
    return (target == CFA_TARGET and base >= 0 and depth == 0) or (base == CFA_BASE and depth == 1)


RUST = ("rustc", "aarch64-rustc")
FRAMES = ("-fPIC", "-fno-omit-frame-pointer")
SPECIAL: dict[str, list[tuple[str, ...]]] = {
    "gcc": [
        ("-O2", "-fstack-protector-all", "-mno-red-zone"),
        ("-O2", "-fstack-clash-protection", "-fcf-protection"),
        ("-O2", "-mstackrealign", "-fno-shrink-wrap"),
    ],
    "clang-19": [
        ("-O2", "-fstack-protector-all", "-mno-red-zone"),
        ("-O2", "-fstack-clash-protection", "-fcf-protection"),
        ("-O2", "-mstackrealign"),
    ],
    "aarch64-gcc": [
        ("-O2", "-mbranch-protection=standard"),
        ("-O0", "-mbranch-protection=pac-ret+leaf"),
        ("-O2", "-fstack-clash-protection", "-fstack-protector-all"),
    ],
    "aarch64-clang-19": [
        ("-O2", "-mbranch-protection=standard"),
        ("-O0", "-mbranch-protection=pac-ret+leaf"),
        ("-O2", "-fstack-clash-protection", "-fstack-protector-all"),
    ],
    "s390x-gcc": [("-O2", "-mbackchain"), ("-O2", "-fstack-clash-protection", "-fstack-protector-all")],
    "s390x-clang-19": [("-O2", "-mbackchain"), ("-O2", "-fstack-protector-all")],
}
"""Options that change frames, besides the level."""

Configuration = tuple[str, str, tuple[str, ...]]
"""A compiler, the ending of a source, and options."""


def configurations() -> Iterator[Configuration]:
    """All that is counted: the usual options first."""
    for level in ("-O2", "-O0", "-Os", "-O1", "-O3"):
        for compiler in (prefix + name for name in ("gcc", "clang-19") for prefix in MACHINES):
            for options in ((level,), (level, *FRAMES)):
                yield from ((compiler, ending, options) for ending in ("c", "cc"))
        yield from ((compiler, "rs", (f"-Copt-level={level[2:]}",)) for compiler in RUST)
    yield from ((compiler, "rs", ("-Copt-level=2", "-Cforce-frame-pointers=yes")) for compiler in RUST)
    for compiler, several in SPECIAL.items():
        yield from ((compiler, ending, options) for options in several for ending in ("c", "cc"))


def counted(configuration: Configuration, folder: Path) -> Tally:
    """The tally of one compiler, source and set of options."""
    compiler, ending, options = configuration
    source = SHAPES / f"shapes.{ending}"
    return count(compiler, assembly(compiler, *options, folder=folder, source=source), folder)


def main(wanted: list[str]) -> None:
    """Count and print a line for each configuration, those of the compilers wanted or of all; then their sums."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for compiler, ending, options in configurations():
        if wanted and compiler not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            tally = counted((compiler, ending, options), Path(folder))
        print(compiler, ending, *options, dict(tally.cases), flush=True)
        print(*(f"    {note}" for note in tally.notes), sep="\n", flush=True)
        sums.setdefault((compiler, ending), Counter()).update(tally.cases)
    for (compiler, ending), cases in sums.items():
        print(compiler, ending, dict(cases))


if __name__ == "__main__":
    main(sys.argv[1:])
