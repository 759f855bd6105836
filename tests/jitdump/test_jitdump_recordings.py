"""Recordings that name dumps: which code holds when, for which process, and after what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import perfbuilder as pb
from jitdump.dumpbuilder import DumpBuilder
from perfbuilder import Attr, Builder
from walkback.capture.unwinding import Unwinding

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.base.arch import ByteOrder

KINDS = pb.IP | pb.TID | pb.TIME | pb.CALLCHAIN
ORDERS: list[tuple[ByteOrder, str, int]] = [("little", "x86_64", 62), ("big", "s390x", 22)]


class Recorded:
    """A recording beside a dump."""

    def __init__(self, folder: Path, dump: DumpBuilder, *, machine: str = "x86_64", monotonic: bool = True) -> None:
        self.dump = folder / "jit-7.dump"
        self.dump.write_bytes(bytes(dump))
        attr = Attr(KINDS, monotonic=monotonic)
        self.builder = Builder(dump.byteorder, machine, attrs=[attr])
        self.troubles: list[str] = []

    def map_dump(self, time: int, pid: int = 7) -> None:
        self.builder.mmap2(pid, 0x9000, 0x1000, 0, str(self.dump), time=time)

    def sample(self, time: int, address: int, pid: int = 7) -> None:
        self.builder.sample(pid=pid, tid=pid, time=time, chain=[pb.CONTEXT_USER, address])

    def names(self) -> list[str | None]:
        """The name of each sample."""
        path = self.dump.with_name("perf.data")
        path.write_bytes(self.builder.file())
        unwinding = Unwinding(path, threads=1)
        found = [batch.frames.symbol[number] for batch in unwinding for number in batch.frame.tolist()]
        self.troubles = unwinding.troubles
        return found


@pytest.mark.parametrize(("byteorder", "machine", "number"), ORDERS)
def test_code_holds_until_other_code_takes_its_place(
    byteorder: ByteOrder, machine: str, number: int, tmp_path: Path
) -> None:
    dump = DumpBuilder(byteorder, number).load(b"f", 0x1000, bytes(32), 1).load(b"g", 0x2000, bytes(32), 2)
    dump.load(b"h", 0x1010, bytes(8), 3).move(0x1010, 0x2000, 8, 3).load(b"f", 0x1000, bytes(32), 4)
    # f at 110, g at 120, h in f at 130, h in g at 140, f over all at 150
    recorded = Recorded(tmp_path, dump, machine=machine)
    recorded.map_dump(100)
    expected: list[str] = []
    for time, names in (
        (125, ("f", "f", "f", "g", "g")),
        (130, ("f", "h", "f", "g", "g")),
        (145, ("f", "h", "f", "h", "g")),
        (150, ("f", "f", "f", "h", "g")),
    ):
        for address in (0x1008, 0x1012, 0x1018, 0x2002, 0x2009):
            recorded.sample(time, address)
        expected += names
    assert recorded.names() == expected
    assert not recorded.troubles


def test_what_came_last_holds_where_times_cannot_be_compared(tmp_path: Path) -> None:
    for flags, monotonic in ((1, True), (0, False)):
        dump = DumpBuilder(flags=flags).load(b"f", 0x1000, bytes(32)).load(b"g", 0x1000, bytes(32))
        recorded = Recorded(tmp_path, dump, monotonic=monotonic)
        recorded.map_dump(100)
        recorded.sample(115, 0x1008)
        assert recorded.names() == ["g"]


def test_anonymous_memory_does_not_hide_code_and_files_do(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, DumpBuilder().load(b"f", 0x1000, bytes(32)).load(b"g", 0x1040, bytes(32)))
    recorded.map_dump(100)
    recorded.builder.mmap2(7, 0x1000, 0x1000, 0, "//anon", time=200)
    recorded.sample(210, 0x1008)
    recorded.sample(210, 0x1048)
    recorded.builder.mmap2(7, 0x1000, 0x1000, 0, "/no/file", time=220)
    recorded.sample(230, 0x1008)
    assert recorded.names() == ["f", "g", None]


def test_children_have_the_code_and_other_programs_and_processes_do_not(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, DumpBuilder().load(b"f", 0x1000, bytes(32)).load(b"g", 0x1000, bytes(32)))
    recorded.map_dump(100)
    recorded.builder.fork(8, 7, time=112)
    for pid in (7, 8, 9):
        recorded.sample(115, 0x1008, pid)
    recorded.builder.comm(7, 7, "other", time=116, misc=pb.EXEC)
    for pid in (7, 8):
        recorded.sample(125, 0x1008, pid)
    assert recorded.names() == ["f", "f", None, None, "f"]


def test_a_dump_that_is_mapped_again_and_again_is_followed_once(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, DumpBuilder().load(b"f", 0x1000, bytes(32)).load(b"g", 0x1000, bytes(32)))
    for time in range(100, 110):
        recorded.map_dump(time)
    recorded.sample(115, 0x1008)
    recorded.sample(125, 0x1008)
    assert recorded.names() == ["f", "g"]


def test_dumps_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, DumpBuilder(records=b"\0" * 16))
    recorded.map_dump(100)
    recorded.sample(115, 0x1008)
    for number in range(200):
        recorded.builder.mmap2(7, 0x9000, 0x1000, 0, f"{tmp_path}/none/jit-{number}.dump", time=120)
    recorded.sample(125, 0x1008)
    assert recorded.names() == [None, None]
    first, second, *_ = recorded.troubles
    assert first == f"{recorded.dump}: at 0x28 is a record of 0 bytes; nothing behind it is read"
    assert second == f"{tmp_path}/none/jit-0.dump: No such file or directory"
    assert len(recorded.troubles) == 100


def test_links_are_not_followed(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, DumpBuilder().load(b"f", 0x1000, bytes(32)))
    recorded.dump.rename(tmp_path / "elsewhere")
    recorded.dump.symlink_to(tmp_path / "elsewhere")
    recorded.map_dump(100)
    recorded.sample(115, 0x1008)
    assert recorded.names() == [None]
    assert recorded.troubles == [f"{recorded.dump}: Too many levels of symbolic links"]
