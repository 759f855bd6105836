"""The same recording walked by every kind of table: the same stacks, but for code that SFrame cannot express."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from peers import peer
from recordings.perfprograms import PROGRAMS, USUAL
from recordings.perfscript import ours, record
from walkback.stacks.stacks import End, How

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are for this machine"),
]

LOADER = "ld-linux-x86-64.so.2"
VARIANTS = ("new", "2.44", "grafted", "derived")
"""SFrame by the newest GNU as and ld (version 3), by those of binutils 2.44 (2), by `walkback add`, and in memory."""

INEXPRESSIBLE = {
    # The C library's start files have call frame information only, and version 3 of SFrame is the program's own.
    "_start": ("new", "2.44"),
    # Realigned stacks: the CFA is saved where r10 points, which only flexible rows of version 3 can say.
    "aligned": ("2.44",),
    "many": ("2.44",),
    # Registers are loaded from the jump buffer, by DWARF expressions.
    "__longjmp": VARIANTS,
}
"""Functions at which walks by SFrame alone end, and where."""


def of_gcc(name: str) -> str:
    """A file that the compiler links with."""
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    if not Path(done.stdout.strip()).exists():
        pytest.skip(f"the compiler has no {name}")
    return done.stdout.strip()


def built(folder: Path, name: str, variant: str) -> Path:
    """A program with the tables of a kind."""
    program = PROGRAMS[name]
    options = [one for one in program.options if not one.startswith("-Wl")]
    (folder / "program.c").write_text(program.text)
    command: list[str | Path] = [
        "gcc",
        *USUAL,
        *options,
        "-fPIE",
        "-S",
        "-o",
        folder / "program.s",
        folder / "program.c",
    ]
    subprocess.run(command, check=True)
    version = variant if variant in {"new", "2.44"} else "2.40"
    tables = ["--gsframe"] if variant in {"new", "2.44"} else []
    command = [peer(f"as-{version}"), *tables, "-o", folder / "program.o", folder / "program.s"]
    subprocess.run(command, capture_output=True, check=True)
    inputs: list[str | Path] = [
        of_gcc(one) for one in ("Scrt1.o", "crti.o", "libc.so.6", "libc_nonshared.a", LOADER, "crtn.o")
    ]
    inputs.insert(2, folder / "program.o")
    command = [peer(f"ld-{version}"), "-pie", "--eh-frame-hdr", "--build-id", "-z", "lazy"]
    command += ["-dynamic-linker", f"/lib64/{LOADER}", "-o", folder / "program", *inputs]
    subprocess.run(command, capture_output=True, check=True)
    if variant == "grafted":
        command = [
            sys.executable,
            "-m",
            "walkback",
            "add",
            folder / "program",
            "-o",
            folder / "grafted",
        ]
        subprocess.run(command, capture_output=True, check=True)
        return folder / "grafted"
    return folder / "program"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["recursion", "aligned", "signals", "jumps"])
def test_stacks_are_the_same_by_every_table(name: str, variant: str, tmp_path: Path) -> None:
    program = built(tmp_path, name, variant)
    recording = record(tmp_path / "perf.data", [program], dump=PROGRAMS[name].dump, rate=299)
    reference, by_sframe, best = ours(recording, only="cfi"), ours(recording, only="sframe"), ours(recording)
    assert len(reference) > 20
    ends: Counter[str] = Counter()
    for whole, sframe, auto in zip(reference, by_sframe, best, strict=True):
        places = [frame.place for frame in whole.frames]
        assert [frame.place for frame in auto.frames][: len(places)] == places
        assert auto.end == whole.end or whole.end is End.NO_TABLE
        found = [frame.place for frame in sframe.frames]
        if found == places and sframe.end == whole.end:
            ends["same"] += 1
            continue
        at = sframe.frames[-1].symbol.partition("@")[0]
        assert found == places[: len(found)], at
        assert variant in INEXPRESSIBLE.get(at, ()), (at, sframe.end, len(found), len(places))
        assert sframe.end is End.NO_TABLE
        ends[at] += 1
    own = Counter(
        frame.how for one in by_sframe for inner, frame in zip(one.frames, one.frames[1:], strict=False)
        if inner.module == str(program) and not frame.exact
    )  # fmt: skip
    print(name, variant, dict(ends), dict(own))
    assert set(own) == {How.DERIVED if variant == "derived" else How.SFRAME}
    assert ends["same"] > 0 or (name, variant) == ("aligned", "2.44")
    assert any(frame.module == str(program) and frame.how is How.SFRAME for one in best for frame in one.frames) == (
        variant != "derived"
    )


def test_compare_counts_what_is_the_same(tmp_path: Path) -> None:
    """`--compare` says of these recordings what the stacks say."""
    from walkback.capture.methods import accuracy

    program = built(tmp_path, "recursion", "grafted")
    recording = record(tmp_path / "perf.data", [program], dump=PROGRAMS["recursion"].dump, rate=299)
    reference, by_sframe = ours(recording, only="cfi"), ours(recording, only="sframe")
    user = [
        [[frame.place for frame in one.frames if not frame.kernel] for one in stacks]
        for stacks in (reference, by_sframe)
    ]
    auto, sframe, cfi = accuracy(recording, ("auto", "sframe", "cfi"))
    walked = sum(one.end is not End.NO_REGISTERS for one in reference)
    assert (auto.stacks, sframe.stacks, cfi.stacks) == (walked,) * 3
    assert cfi.frames == cfi.agreeing == cfi.reference_frames == sum(map(len, user[0]))
    assert cfi.exact == walked
    assert sframe.frames == sum(map(len, user[1]))
    same = sum(one == other for one, other in zip(*user, strict=True))
    assert sframe.exact == same
    assert auto.exact == walked
