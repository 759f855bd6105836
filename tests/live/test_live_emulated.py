"""Programs of other machines, whose cores an emulator writes: walked here, and by gdb-multiarch."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulation import LOADER, built, core_of, root
from live.crashes import WAYS, told
from live.debuggers import Gdb
from live.subjects import HERE, Judge, pcs
from peers import peer
from walkback.capture.stacks import Stopper
from walkback.elf import FileSearch
from walkback.stacks.stacks import END_WORDS, End

pytestmark = pytest.mark.peers
FLAGS = ("-O2", "-w", "-fno-optimize-sibling-calls", "-fno-inline")
OVERFLOW = 1 << 20
"""Bytes of stack for the program that overflows it."""


@pytest.fixture(scope="module", params=LOADER)
def arch(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def gdb(arch: str) -> Iterator[Gdb]:
    with Gdb("gdb-multiarch") as one:
        yield one


@pytest.fixture(scope="module")
def program(arch: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Where a program stands that is moved when it is loaded, an emulator's core does not tell gdb.
    return built(tmp_path_factory.mktemp(arch) / "crash", arch, HERE / "crash.c", *FLAGS, pie=False)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_frames_as_gdb(arch: str, way: str, program: Path, gdb: Gdb, tmp_path: Path) -> None:
    core = core_of(tmp_path, arch, program, way, stack=OVERFLOW)
    stopper = Stopper(core, exe=program, search=FileSearch(sysroot=root(arch)), max_stack=1 << 20, inline=False)
    shot = stopper.shoot()
    assert not shot.snapshot.troubles
    assert shot.snapshot.signalled == 0
    assert {END_WORDS[end] for end in shot.stacks.end.tolist()} == {"complete"}
    theirs = gdb.of_core(core, program, root(arch))
    labels = shot.labels(0)
    assert labels[-4:-2] == ["main", labels[-3]]
    assert labels[-1] == "_start"
    if way.endswith(("handler", "handlers")):
        # The emulator leaves the code that a handler returns to out of the core, and gdb knows it by its bytes.
        mine, first = pcs(shot)[shot.snapshot.tids[0]], labels.index("<signal handler called>")
        assert theirs[shot.snapshot.tids[0]][:first] == mine[:first]
        _judge_handlers(way, [label.partition(".")[0] for label in labels[first:]])
        theirs[shot.snapshot.tids[0]] = mine
    judge = Judge(stopper)
    judge.compare(shot, theirs, "gdb")
    assert judge.counts == {"gdb: equal": 4}, told(shot)
    if way == "overflow":
        assert labels.count("endless") > 1000


def _judge_handlers(way: str, labels: list[str]) -> None:
    """What was interrupted, and what called that, as the program has it."""
    deep = ["deep"] * 6
    if way == "handler":
        assert labels[1:10] == ["faulty", "in_handler", *deep, "main"]
    elif way == "handlers":
        parts = " ".join(labels).split("<signal handler called>")
        assert "raise nested" in parts[1]
        assert re.search("raise in_handlers deep deep deep deep deep deep main ", parts[2])
    else:
        end = len(labels) - 1 - labels[::-1].index("endless")
        assert set(labels[1:end]) == {"endless"}
        assert end > 1000
        assert labels[end + 1 : end + 10] == ["overflowed", "in_overflow", *deep, "main"]


def test_signed_return_addresses(gdb: Gdb, arch: str, tmp_path: Path) -> None:
    if arch != "aarch64":
        pytest.skip("only AArch64 signs return addresses")
    flags = (*FLAGS, "-mbranch-protection=pac-ret+leaf")
    program = built(tmp_path / "crash", arch, HERE / "crash.c", *flags, pie=False)
    found = {}
    for cpu in ("max", "cortex-a53"):
        folder = tmp_path / cpu
        folder.mkdir()
        core = core_of(folder, arch, program, "callback", cpu=cpu)
        stopper = Stopper(core, exe=program, search=FileSearch(sysroot=root(arch)))
        shot = stopper.shoot()
        assert {END_WORDS[end] for end in shot.stacks.end.tolist()} == {"complete"}
        # The emulator does not tell which bits of an address are its signature.
        assert not shot.snapshot.pac_mask
        found[cpu] = [shot.labels(thread) for thread in (0, 1, 3)]
        judge = Judge(stopper)
        theirs = gdb.of_core(core, program, root(arch))
        if cpu == "max":
            # Without that gdb cannot walk out of a function that signs.
            ours = pcs(shot)
            assert all(ours[tid][: len(stack)] == stack for tid, stack in theirs.items())
            assert sum(map(len, theirs.values())) < sum(map(len, ours.values()))
        else:
            judge.compare(shot, theirs, "gdb")
            assert judge.counts == {"gdb: equal": 4}
    assert found["max"] == found["cortex-a53"]


@pytest.mark.parametrize("handler", [False, True])
@pytest.mark.parametrize("bare", ["aarch64", "aarch64_be", "s390x"])
def test_programs_without_a_c_library(bare: str, handler: bool, tmp_path: Path) -> None:
    arch, order = bare.removesuffix("_be"), ["-mbig-endian"] if bare.endswith("_be") else []
    program = tmp_path / "bare"
    flags = ["-O2", "-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables", *(["-DHANDLER"] if handler else [])]
    command: list[str | Path] = [
        peer(f"{arch}-gcc"),
        *order,
        *flags,
        "-ffreestanding",
        "-fno-pie",
        "-S",
        "-o",
        tmp_path / "bare.s",
    ]
    subprocess.run([*command, HERE / "bare.c"], check=True)
    order = ["-EB"] if order else []
    subprocess.run([peer(f"{arch}-as-2.40"), *order, "-o", tmp_path / "bare.o", tmp_path / "bare.s"], check=True)
    linker = [peer(f"{arch}-ld-2.40"), *(["-EB", "-m", "aarch64linuxb"] if order else []), "--build-id"]
    subprocess.run([*linker, "--eh-frame-hdr", "-o", program, tmp_path / "bare.o"], check=True)
    core = core_of(tmp_path, bare, program)
    stopper = Stopper(core, exe=program)
    shot = stopper.shoot()
    assert not shot.snapshot.troubles
    assert shot.snapshot.byteorder == ("little" if bare == "aarch64" else "big")
    outer = ["leaf", *["middle"] * 7, "begin", "_start"]
    inner = ["leaf", *["middle"] * 4, "handler", "<signal handler called>"] if handler else []
    assert shot.labels(0) == inner + outer, told(shot)
    assert END_WORDS[End(int(shot.stacks.end[0]))] == "complete"
    with Gdb("gdb-multiarch") as gdb:
        theirs = gdb.of_core(core, program)
    ours = pcs(shot)
    if handler:
        # The emulator leaves the code that a handler returns to out of the core, and gdb knows it by its bytes.
        theirs, ours = ({tid: stack[: len(inner) - 1] for tid, stack in one.items()} for one in (theirs, ours))
    assert list(ours.values()) == list(theirs.values())
