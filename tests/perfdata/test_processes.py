"""What processes have mapped and are called, from the records between samples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from walkback.capture.perfdata import Recording, vdso
from walkback.capture.perfdata.mappings import CodeMaps
from walkback.naming.modules import Modules

pytestmark = pytest.mark.kernel

KINDS = pb.IP | pb.TID | pb.TIME


@pytest.fixture
def builder() -> Builder:
    return Builder(attrs=[Attr(KINDS)])


class Read:
    """A recording with one batch of samples, in plain words."""

    def __init__(self, builder: Builder, tmp_path: Path) -> None:
        path = tmp_path / "perf.data"
        path.write_bytes(builder.file())
        self.modules = Modules()
        self.recording = Recording.open(path, self.modules)
        (self.batch,) = self.recording.batches()
        assert not self.recording.troubles
        self.comms = [self.recording.comms[i] for i in self.batch.comm]
        self.spaces = self.batch.samples.space.tolist()

    def rows(self, sample: int) -> list[tuple[int, int, str, int]]:
        """(start, last, module, bias) of what the process of a sample has mapped."""
        space = self.recording.spaces[self.spaces[sample]]
        names = ["" if number < 0 else self.modules[number].name for number in space.module.tolist()]
        return list(zip(space.start.tolist(), space.last.tolist(), names, space.bias.tolist(), strict=True))


def test_later_mappings_take_the_place_of_earlier_ones(builder: Builder, tmp_path: Path) -> None:
    builder.mmap2(1, 0x1000, 0x9000, 0, "/no/a", time=1)
    builder.sample(pid=1, tid=1, time=2)
    builder.mmap2(1, 0x3000, 0x2000, 0x5000, "/no/b", time=3)
    builder.sample(pid=1, tid=2, time=4)
    builder.mmap(1, 0x8000, 0x8000, 0, "/no/c", time=5)
    builder.sample(pid=1, tid=1, time=6)
    read = Read(builder, tmp_path)
    assert read.spaces == [0, 1, 2]
    assert read.rows(0) == [(0x1000, 0x9FFF, "/no/a", 0x1000)]
    assert read.rows(1) == [
        (0x1000, 0x2FFF, "/no/a", 0x1000),
        (0x3000, 0x4FFF, "/no/b", 2**64 - 0x2000),
        (0x5000, 0x9FFF, "/no/a", 0x1000),
    ]
    assert read.rows(2)[2:] == [(0x5000, 0x7FFF, "/no/a", 0x1000), (0x8000, 0xFFFF, "/no/c", 0x8000)]


def test_what_is_no_code_is_left_out(builder: Builder, tmp_path: Path) -> None:
    builder.mmap2(1, 0x1000, 0x1000, 0, "/no/data", prot=3)
    builder.mmap(1, 0x3000, 0x1000, 0, "/no/data", misc=pb.USER | pb.DATA)
    builder.mmap2(1, 0x5000, 0, 0, "/no/empty")
    builder.sample(pid=1, tid=1, time=2)
    builder.sample(pid=7, tid=7, time=2)
    assert Read(builder, tmp_path).spaces == [-1, -1]


def test_children_inherit_until_they_change(builder: Builder, tmp_path: Path) -> None:
    builder.comm(1, 1, "parent")
    builder.comm(1, 2, "thread")
    builder.mmap2(1, 0x1000, 0x1000, 0, "/no/a", time=1)
    builder.sample(pid=1, tid=1, time=2)
    builder.fork(5, 1, 5, 2, time=3)
    builder.fork(1, 1, 3, 2, time=3)
    builder.sample(pid=5, tid=5, time=4)
    builder.sample(pid=1, tid=3, time=4)
    builder.mmap2(5, 0x4000, 0x1000, 0, "/no/b", time=5)
    builder.sample(pid=5, tid=5, time=6)
    builder.sample(pid=1, tid=1, time=6)
    builder.comm(5, 5, "new", time=7, misc=pb.EXEC)
    builder.sample(pid=5, tid=5, time=8)
    builder.mmap2(5, 0x1000, 0x1000, 0, "/no/a", time=9)
    builder.sample(pid=5, tid=5, time=10)
    builder.fork(6, 5, time=11, misc=pb.FORK_EXEC)
    builder.sample(pid=6, tid=6, time=12)
    read = Read(builder, tmp_path)
    assert read.comms == ["parent", "thread", "thread", "thread", "parent", "new", "new", "new"]
    assert read.spaces == [0, 0, 0, 1, 0, -1, 0, -1]


def test_threads_without_a_name(builder: Builder, tmp_path: Path) -> None:
    builder.comm(1, 1, "name")
    builder.sample(pid=1, tid=2)
    builder.sample(pid=0, tid=0)
    builder.sample(pid=-1, tid=-1)
    assert Read(builder, tmp_path).comms == [":2", "swapper", ":-1"]


def test_processes_that_ended_are_forgotten(builder: Builder, tmp_path: Path) -> None:
    for pid in range(1, 600):
        builder.comm(pid, pid, f"p{pid}")
        builder.exit(pid)
        builder.exit(pid)
    builder.sample(pid=1, tid=1)
    builder.sample(pid=599, tid=599)
    assert Read(builder, tmp_path).comms == [":1", "p599"]


def test_endless_forks(builder: Builder, tmp_path: Path) -> None:
    for _ in range(50):
        builder.fork(1, 2)
        builder.fork(2, 1)
        builder.fork(3, 3)
    builder.sample(pid=1, tid=1)
    Read(builder, tmp_path)


NAMES = ["//anon", "/dev/zero (deleted)", "[heap]", "[stack:5]", "/memfd:jit (deleted)", "[anon:code]", "/SYSV00000000"]


@pytest.mark.parametrize("name", NAMES)
def test_memory_of_no_file_has_no_module(builder: Builder, name: str, tmp_path: Path) -> None:
    builder.mmap2(1, 0x1000, 0x1000, 0x1000, name)
    builder.mmap2(1, 0x2000, 0x1000, 0x2000, name)
    builder.sample(pid=1, tid=1)
    assert Read(builder, tmp_path).rows(0) == [(0x1000, 0x2FFF, "", 0)]


def test_build_ids(builder: Builder, tmp_path: Path) -> None:
    builder.build_ids = [("/no/b", b"B" * 20), ("/no/c", b"C" * 8), ("[kernel.kallsyms]", b"K" * 20)]
    builder.mmap(-1, 0xFFFFFFFF81000000, 0x1000000, 5, "[kernel.kallsyms]_text", misc=pb.KERNEL)
    builder.mmap2(-1, 0xFFFFFFFFC0000000, 0x1000, 0, "[module]", misc=pb.KERNEL, build_id=b"M" * 20)
    builder.mmap(-1, 0, 2**64 - 1, 0, "[guest.kernel.kallsyms]", misc=4)
    for i, name in enumerate(["/no/a", "/no/b", "/no/c", "/no/d (deleted)", "/no/b (deleted)"]):
        build_id = b"A" * 20 if i == 0 else None
        builder.mmap2(1, (i + 1) * 0x1000, 0x1000, 0x1000, name, build_id=build_id)
    builder.sample(pid=1, tid=1)
    read = Read(builder, tmp_path)
    found = [(module.name, module.build_id) for module in (read.modules[i] for i in range(len(read.modules)))]
    ids = [("/no/a", b"A" * 20), ("/no/b", b"B" * 20), ("/no/c", b"C" * 8), ("/no/d (deleted)", None)]
    assert found == ids
    assert [(one.name, one.build_id) for one in read.recording.kernel] == [
        ("[kernel.kallsyms]", b"K" * 20),
        ("[module]", b"M" * 20),
    ]


def test_the_vdso_is_that_of_this_kernel(builder: Builder, tmp_path: Path) -> None:
    image = vdso.own_image()
    if image is None or os.uname().machine != "x86_64":
        pytest.skip("needs a vDSO for AMD64")
    builder.mmap2(1, 0x7000, 0x1000, 0, "[vdso]")
    builder.mmap2(2, 0x7000, 0x1000, 0, "[vdso]", build_id=b"other kernel's")
    builder.sample(pid=1, tid=1)
    builder.sample(pid=2, tid=2)
    read = Read(builder, tmp_path)
    own, other = (read.modules[int(read.recording.spaces[space].module[0])] for space in read.spaces)
    assert own.elf is not None
    assert own.name == other.name == "[vdso]"
    assert other.elf is None


def test_a_file_that_is_there(builder: Builder, tmp_path: Path) -> None:
    path = str(Path("/proc/self/exe").resolve())
    builder.mmap2(1, 0x400000, 0x1000, 0x0, path)
    builder.sample(pid=1, tid=1)
    read = Read(builder, tmp_path)
    assert read.modules[0].elf is not None
    assert read.rows(0)[0][3] == read.modules[0].bias(0x400000, 0)


@pytest.mark.parametrize("seed", range(20))
def test_mappings_are_what_was_mapped_last(seed: int) -> None:
    import random

    chance = random.Random(seed)
    expected: dict[Any, Any]
    maps, expected = CodeMaps(), {}
    for _ in range(60):
        start = chance.randrange(100)
        last = start + chance.randrange(20)
        module, bias = chance.randrange(3), chance.randrange(2)
        maps.add(start, last, module, bias)
        expected |= dict.fromkeys(range(start, last + 1), (module, bias))
        assert maps.covers(start, last, module, bias)
        space = maps.space()
        found: dict[Any, Any] = {}
        for one in zip(
            space.start.tolist(), space.last.tolist(), space.module.tolist(), space.bias.tolist(), strict=True
        ):
            assert one[0] > max(found, default=-1)
            found |= dict.fromkeys(range(one[0], one[1] + 1), one[2:])
        assert found == expected
