"""Python's trampolines by what a perf map says: a file with their code, made by hand, and recordings of a process."""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import perfbuilder as pb
from elfbuilder import ElfBuilder
from perfdata.built import walkable
from walkback.base.arch import AMD64
from walkback.capture.perfdata import Recording
from walkback.capture.trampolines import Trampolines, within
from walkback.capture.unwinding import Unwinding
from walkback.naming.modules import Modules
from walkback.stacks.stacks import How
from walkback.walking.samples import Space
from walking.copied import AMD64_FORMS, python_file

if TYPE_CHECKING:
    from perfbuilder import Builder

PID = 2**22 + 2 * os.getpid()  # of no process, and of no other run of these tests
"""No process can have it."""
CODE = AMD64_FORMS["sub"].code
"""11 bytes."""
FILE, ARENA, STACK = 0x5000_0000_0000, 0x7F00_0000_0000, 0x7FFF_0000_0000
RBP, RSP, RIP = 6, 7, 8


@pytest.fixture
def perf_map() -> Iterator[Path]:
    path = Path(f"/tmp/perf-{PID}.map")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        Path(f"/tmp/perf-{PID + 1}.map").unlink(missing_ok=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_bytes(python_file(AMD64, CODE))
    return path


def line(number: int, *, size: int = 11, away: int = 11, name: str = "py::f{}:/x.py", base: int = ARENA) -> str:
    return f"{base + number * away:x} {size:x} {name.format(number)}\n"


def rows(file: Path, modules: Modules | None = None) -> list[tuple[int, int]]:
    """Where the trampolines are from the first to the last address of each row."""
    modules = modules or Modules()
    number = modules.file(str(file))
    found = Trampolines(modules, AMD64).of(PID, lambda: [number, -1])
    assert (found.start[1:] > found.last[:-1]).all()
    assert not found.bias.any()
    return list(zip(found.start.tolist(), found.last.tolist(), strict=True))


class TestRows:
    def test_copies_that_follow_each_other_are_one_row(self, file: Path, perf_map: Path) -> None:
        perf_map.write_text("".join(line(number) for number in (2, 0, 1, 3, 3, 7)))
        assert rows(file) == [(ARENA, ARENA + 43), (ARENA + 77, ARENA + 87)]

    def test_what_is_between_them_has_no_rules(self, file: Path, perf_map: Path) -> None:
        perf_map.write_text("".join(line(number, away=16) for number in range(3)))
        assert rows(file) == [(ARENA, ARENA + 42)]

    @pytest.mark.parametrize(
        "text",
        [
            line(0, size=12),
            line(0, size=0),
            line(0, name="f{}:/x.py"),
            line(0, name="spy::f{}"),
            line(0).replace(" b ", " ffffffffffffffff "),
            line(0, base=2**64 - 16),
            line(0).rstrip("\n"),
            "b py::f:/x.py\n",
            "",
        ],
    )
    def test_what_does_not_fit_does_not_count(self, file: Path, perf_map: Path, text: str) -> None:
        perf_map.write_text(text)
        assert rows(file) == []

    def test_lines_that_contradict_each_other_do_not_count(self, file: Path, perf_map: Path) -> None:
        shifted = line(1).replace(f"{ARENA + 11:x}", f"{ARENA + 16:x}")
        perf_map.write_text("".join([line(0), line(1), shifted, line(2), line(200), line(200)]))
        assert rows(file) == [(ARENA, ARENA + 10), (ARENA + 2200, ARENA + 2210)]

    def test_without_the_code_there_is_nothing_to_go_by(self, tmp_path: Path, perf_map: Path) -> None:
        perf_map.write_text(line(0))
        (tmp_path / "other").write_bytes(bytes(ElfBuilder().build().data))
        (tmp_path / "text").write_bytes(b"no program")
        for name in ("other", "text", "none"):
            assert rows(tmp_path / name) == []

    @pytest.mark.parametrize("code", [b"\xff\xe0" * 4, b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x10\xc3", bytes(11)])
    def test_code_whose_rules_cannot_be_proved_has_none(self, tmp_path: Path, perf_map: Path, code: bytes) -> None:
        """A jump, one that returns with the wrong stack, and no code at all."""
        path = tmp_path / "python"
        path.write_bytes(python_file(AMD64, code))
        perf_map.write_text(line(0, size=len(code)))
        assert rows(path) == []

    @pytest.mark.parametrize("size", [0, -1, 4096])
    def test_symbols_that_are_no_borders_of_code_have_none(self, tmp_path: Path, perf_map: Path, size: int) -> None:
        path = tmp_path / "python"
        path.write_bytes(python_file(AMD64, CODE, size=size))
        perf_map.write_text(line(0, size=max(size, 1) % 256))
        assert rows(path) == []

    def test_of_two_pythons_each_has_its_own_size(self, file: Path, tmp_path: Path, perf_map: Path) -> None:
        other, like = tmp_path / "other", tmp_path / "like"
        other.write_bytes(python_file(AMD64, AMD64_FORMS["push"].code))
        like.write_bytes(python_file(AMD64, CODE[:4] + b"\xff\xd2" + CODE[6:]))  # it calls what is in another register
        perf_map.write_text(line(0) + line(9, size=8))
        modules = Modules()
        numbers = [modules.file(str(one)) for one in (file, other, like)]
        trampolines = Trampolines(modules, AMD64)
        assert trampolines.of(PID, lambda: numbers[:1]).start.tolist() == [ARENA]
        assert trampolines.of(PID, lambda: numbers[:2]).start.tolist() == [ARENA, ARENA + 99]
        assert trampolines.of(PID, lambda: numbers).start.tolist() == [ARENA + 99]

    def test_a_process_that_runs_adds_to_its_own(self, file: Path, perf_map: Path) -> None:
        modules = Modules()
        number = modules.file(str(file))
        trampolines = Trampolines(modules, AMD64)
        assert len(trampolines.of(PID, lambda: [number]).start) == 0
        perf_map.write_text(line(0) + line(1)[:-2])
        assert len(trampolines.of(PID, lambda: [number]).start) == 0
        trampolines.renew()
        first = trampolines.of(PID, lambda: [number])
        assert first.last.tolist() == [ARENA + 10]
        trampolines.renew()
        assert trampolines.of(PID, lambda: [number]) is first
        perf_map.write_text(line(0) + line(1))
        trampolines.renew()
        assert trampolines.of(PID, lambda: [number]).last.tolist() == [ARENA + 21]
        perf_map.unlink()
        trampolines.renew()
        assert trampolines.of(PID, lambda: [number]).last.tolist() == [ARENA + 21]
        assert trampolines.of(0, lambda: [number]) is trampolines.of(-5, lambda: [number])

    @pytest.mark.whole
    def test_a_map_without_end_takes_a_bounded_time(self, file: Path, perf_map: Path) -> None:
        """Millions of lines, in no order, few of which follow each other: counted in rows and in seconds."""
        chosen = random.Random(3)
        numbers = [chosen.randrange(1 << 40) for _ in range(1 << 18)]
        perf_map.write_text("".join(line(number) for number in numbers) * 10)
        begun = time.process_time()
        assert len(rows(file)) == 4096
        assert time.process_time() - begun < 60

    @pytest.mark.parametrize("seed", range(20))
    def test_damaged_maps_harm_nobody(self, file: Path, perf_map: Path, seed: int) -> None:
        chosen = random.Random(seed)
        text = bytearray("".join(line(number, away=chosen.choice((11, 16))) for number in range(200)).encode())
        for _ in range(chosen.randrange(1, 200)):
            text[chosen.randrange(len(text))] = chosen.choice(b"0123456789abcdef \n\0\xff")
        perf_map.write_bytes(text)
        assert all(last >= start for start, last in rows(file))


def test_only_what_is_within_memory_counts() -> None:
    code = Space.of([10, 30, 50], [19, 39, 59], [1, 2, 3], [0, 0, 0])
    start, last = np.array([0, 15, 35, 56], np.uint64), np.array([12, 31, 40, 99], np.uint64)
    found = within(code, start, last)
    assert found.start.tolist() == [10, 15, 30, 35, 56]
    assert found.last.tolist() == [12, 19, 31, 39, 59]
    assert found.module.tolist() == [1, 1, 2, 2, 3]
    assert not len(within(code, start[:0], last[:0]).start)


# Recordings


def recording(file: Path) -> Builder:
    """Of a process that has mapped the file, then memory for code."""
    made = walkable()
    made.mmap2(PID, FILE, 0x1000, 0, os.fspath(file), time=1)
    made.mmap2(PID, ARENA, 0x1000, 0, "//anon", time=2)
    return made


def sample(made: Builder, place: int, words: list[int], *, pid: int = PID, time: int = 3) -> None:
    registers = {RIP: place, RSP: STACK, RBP: 0}
    made.sample(pid=pid, tid=pid, time=time, registers=registers, stack=struct.pack(f"<{len(words)}Q", *words))


def stacks(made: Builder, folder: Path) -> list[list[tuple[str, How]]]:
    path = folder / "perf.data"
    path.write_bytes(made.file())
    found = []
    for batch in Unwinding(path, cache=False, lines=False):
        labels = [batch.frames.label(number) for number in batch.frame.tolist()]
        frames = list(zip(labels, map(How, batch.how.tolist()), strict=True))
        found += [frames[begin:end] for begin, end in zip(batch.first[:-1], batch.first[1:], strict=True)]
    return found


def test_a_walk_goes_through_each_place_of_each_copy(file: Path, perf_map: Path, tmp_path: Path) -> None:
    perf_map.write_text("".join(line(number) for number in range(4)))
    made = recording(file)
    for number in range(4):
        caller = ARENA + 11 * ((number + 1) % 4) + 6
        for offset, depth in ((0, 0), (4, 1), (6, 1), (10, 0)):
            sample(made, ARENA + 11 * number + offset, [7] * depth + [caller, 7, FILE + 0x80, 0])
    found = stacks(made, tmp_path)
    assert len(found) == 16
    for row, frames in enumerate(found):
        number = row // 4
        names = [f"py::f{number}:/x.py", f"py::f{(number + 1) % 4}:/x.py"]
        assert [name for name, _ in frames[:2]] == names
        assert [how for _, how in frames[:3]] == [How.REGISTERS, How.CODE, How.CODE]


def test_only_memory_that_is_in_no_file_has_them(file: Path, perf_map: Path, tmp_path: Path) -> None:
    """A map that was left by another process, or that lies, does not change what the file's own code is."""
    perf_map.write_text(
        "".join(line(number, base=base) for number in range(4) for base in (FILE, ARENA, ARENA + 0x2000))
    )
    made = recording(file)
    sample(made, FILE, [0])
    path = tmp_path / "perf.data"
    path.write_bytes(made.file())
    modules = Modules()
    opened = Recording.open(path, modules)
    list(opened.batches())
    (space,) = opened.spaces
    names = [modules[number].name if number >= 0 else "" for number in space.module.tolist()]
    assert names == [os.fspath(file), f"/tmp/perf-{PID}.map", ""]
    assert space.start.tolist() == [FILE, ARENA, ARENA + 44]


def test_what_was_mapped_last_holds(file: Path, perf_map: Path, tmp_path: Path) -> None:
    """Memory that is mapped again is looked at again; where a file takes its place, the file has it."""
    perf_map.write_text(line(0) + line(0, base=ARENA + 0x1000))
    made = recording(file)
    caller = [7, FILE + 0x80, 0]
    sample(made, ARENA + 4, caller)
    made.mmap2(PID, ARENA, 0x2000, 0, "//anon", time=4)
    sample(made, ARENA + 0x1004, caller, time=5)
    made.mmap2(PID, ARENA, 0x1000, 0, "/no/file", time=6)
    sample(made, ARENA + 4, caller, time=7)
    found = stacks(made, tmp_path)
    assert [one[0][0] for one in found] == ["py::f0:/x.py", "py::f0:/x.py", "[file]"]
    assert [one[1][1] for one in found[:2]] == [How.CODE, How.CODE]


def test_a_child_has_those_of_its_parent(file: Path, perf_map: Path, tmp_path: Path) -> None:
    """It has a map of its own, which names only what it has made itself; a program that it becomes has none."""
    perf_map.write_text(line(0))
    Path(f"/tmp/perf-{PID + 1}.map").write_text(line(0, base=ARENA + 0x8000, name="py::own:/x.py"))
    made = recording(file)
    made.fork(PID + 1, PID, time=4)
    made.mmap2(PID + 1, ARENA + 0x8000, 0x1000, 0, "//anon", time=5)
    sample(made, ARENA + 0x8004, [7, ARENA + 6, 7, FILE + 0x80, 0], pid=PID + 1, time=6)
    made.comm(PID + 1, PID + 1, "other", misc=pb.EXEC, time=7)
    made.mmap2(PID + 1, ARENA, 0x1000, 0, "//anon", time=8)
    sample(made, ARENA + 4, [7, ARENA + 6, 0], pid=PID + 1, time=9)
    inherited, alone = stacks(made, tmp_path)
    assert [name for name, _ in inherited[:2]] == ["py::own:/x.py", "py::f0:/x.py"]
    assert [how for _, how in inherited[1:3]] == [How.CODE, How.CODE]
    assert How.CODE not in {how for _, how in alone}
