"""What single-stepping sees, beside what `walkback verify` says: a table, and every contradiction.

Each program of three machines is stepped through, with a stack of its calls beside it. Wherever the rules of an
instruction are proved they have to give what stepping knows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from steppedprograms import PROGRAMS, prepared
from stepping import Seen, Stepper, proof_of_code
from walkback.proof.values import Verdict

_COUNTS = ("steps", "judged", "places", "proved, contradicted", "other, contradicted", "wrong, never")
_RIGHT = (Verdict.PROVED, Verdict.ASSUMED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", action="store_true", help="hold tables made from the code alone against it")
    parser.add_argument("--only", default="", help="part of the machine and title of the programs")
    options = parser.parse_args()
    print(f"| machine | program | {' | '.join(_COUNTS)} |")
    print(f"|---|---|{'---:|' * len(_COUNTS)}")
    totals: dict[str, Counter[str]] = {}
    lines: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as name:
        stepper = Stepper(Path(name), proof_of_code if options.code else None)
        for program in PROGRAMS:
            if options.only not in f"{program.machine} {program.title}":
                continue
            try:
                machine, command = prepared(program, Path(name))
            except pytest.skip.Exception as reason:
                print(program.machine, program.title, reason, file=sys.stderr)
                continue
            seen = stepper.step(machine, program.most, *command, begin=program.begin)
            row = _row(seen)
            totals.setdefault(machine.name, Counter()).update({**row, "programs": 1})
            print(_line(machine.name, program.title, row), flush=True)
            for place in seen.places:
                if place.contradicted or place.verdict in {Verdict.WRONG, Verdict.NOT_REACHED}:
                    lines[str(place)] = None
    for machine_name, row in totals.items():
        print(_line(machine_name, f"{row['programs']} programs", row))
    print(*lines, sep="\n", file=sys.stderr)
    return int(any(row["proved, contradicted"] for row in totals.values()))


def _row(seen: Seen) -> dict[str, int]:
    proved = len(seen.contradictions(*_RIGHT))
    return {
        "steps": seen.steps,
        "judged": seen.judged,
        "places": len(seen.places),
        "proved, contradicted": proved,
        "other, contradicted": sum(1 for place in seen.places if place.contradicted) - proved,
        "wrong, never": len(seen.agreeing(Verdict.WRONG)),
    }


def _line(machine: str, title: str, row: dict[str, int]) -> str:
    return f"| {machine} | {title} | {' | '.join(str(row[name]) for name in _COUNTS)} |"


if __name__ == "__main__":
    sys.exit(main())
