"""Call chains that the kernel walks later, made by hand: no kernel here does so, but perf reads them as well."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from perfdata.built import read
from walkback.base.arch import ByteOrder

DEFERRED = 2**64 - 640
MS = 1_000_000
"""perf prints microseconds."""
KERNEL_PC = 2**64 - 0x7000_0000


def recording(byteorder: ByteOrder = "little") -> Builder:
    """Two threads; the first is interrupted twice before it goes back."""
    builder = Builder(byteorder, "x86_64", [Attr(pb.IP | pb.TID | pb.TIME | pb.CALLCHAIN | pb.PERIOD, deferred=True)])
    builder.comm(5, 5, "program", time=1)
    builder.mmap2(5, 0x400000, 0x1000, 0, "/nowhere/program", time=2)
    for tid, cookie, time in ((5, 91, 10), (5, 91, 11), (6, 92, 12), (5, 93, 13)):
        chain = [pb.CONTEXT_KERNEL, KERNEL_PC + time, DEFERRED, cookie]
        builder.sample(ip=KERNEL_PC + time, pid=5, tid=tid, time=time * MS, chain=chain, misc=pb.KERNEL)
    chained(builder, 91, [0x400010, 0x400020], tid=5, time=20)
    chained(builder, 92, [0x400030], tid=6, time=21)
    builder.sample(ip=0x400044, pid=5, tid=5, time=30 * MS, chain=[pb.CONTEXT_USER, 0x400044, 0x400055])
    return builder


def chained(builder: Builder, cookie: int, chain: list[int], *, tid: int, time: int) -> None:
    words = [cookie, len(chain) + 1, pb.CONTEXT_USER, *chain]
    builder.record(22, pb.USER, builder.words(words) + builder.trailer(5, tid, time * MS))


CHAINS = {
    10: [KERNEL_PC + 10, 0x400010, 0x400020],
    11: [KERNEL_PC + 11, 0x400010, 0x400020],
    12: [KERNEL_PC + 12, 0x400030],
    13: [KERNEL_PC + 13],  # the recording ends before its thread goes back
    30: [0x400044, 0x400055],
}


@pytest.mark.kernel
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_each_sample_gets_the_rest_of_its_chain(byteorder: ByteOrder, tmp_path: Path) -> None:
    builder = recording(byteorder)
    for contents in (builder.file(), builder.pipe()):
        found, batches = read(contents, tmp_path)
        assert found.counts.damaged == found.counts.unknown_records == 0
        chains = {}
        for batch in batches:
            for i, time in enumerate((batch.time // MS).tolist()):
                begin, end = batch.chain_first[i : i + 2].tolist()
                chains[time] = batch.chain_pc[begin:end].tolist()
                assert batch.chain_kernel[begin:end].tolist() == [pc >= KERNEL_PC for pc in chains[time]]
        assert chains == CHAINS


def test_a_chain_that_contradicts_its_size_is_left_out(tmp_path: Path) -> None:
    builder = recording()
    builder.record(22, pb.USER, builder.words([94, 1 << 40, 1]))
    builder.record(22, pb.USER, builder.words([95]))
    found, _ = read(builder.file(), tmp_path)
    assert found.counts.damaged == 2


@pytest.mark.skipif(shutil.which("perf-new") is None, reason="perf 7 is not there")
def test_perf_sees_the_same(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(recording().file())
    command = ["perf-new", "script", "-i", "perf.data", "-F", "time,ip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = {}
    for one in done.stdout.strip().split("\n\n"):
        time, *lines = one.splitlines()
        theirs[round(float(time.strip().rstrip(":")) * 1e3)] = [int(line.split()[0], 16) for line in lines]
    assert theirs.pop(13) == [*CHAINS[13], 93]  # perf takes the cookie of what never came for an address
    assert theirs == {time: chain for time, chain in CHAINS.items() if time != 13}
