"""Real recordings, and everything that perf itself reads out of them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfbuilder as pb
from perfdata.running import perf
from walkback.capture.perfdata import Recording
from walkback.naming.modules import Modules
from walkback.symbols.kallsyms import KERNEL

pytestmark = [pytest.mark.kernel, pytest.mark.peers]

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long x;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) x += i * x; }
__attribute__((noinline)) void deep(int d)
{
    char b[64];
    memset(b, d, 64);
    if (d) deep(d - 1); else leaf(900);
    x += b[3];
}
void *work(void *name)
{
    struct timespec now = {0, 0}, begun;
    pthread_setname_np(pthread_self(), name);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    for (int i = 0; (now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec < 100000000; i++) {
        deep(i % 30);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
    return 0;
}
int main(void)
{
    pthread_t t[2];
    pthread_create(t, 0, work, "first"); pthread_create(t + 1, 0, work, "second");
    work("main one"); pthread_join(t[0], 0); pthread_join(t[1], 0);
    if (fork() == 0) {
        work("child");
        execlp("sh", "sh", "-c", "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; /bin/true", (char *)0);
    }
    wait(0);
    return 0;
}
"""
WAYS = {
    "group": ("-e", "{cpu-clock,page-faults,context-switches}:S", "--call-graph", "dwarf,1024"),
    "threads": ("--threads", "--call-graph", "dwarf,1024"),
    "threads-compressed": ("--threads", "-z", "--call-graph", "dwarf,1024"),
    "plain": ("--call-graph", "dwarf,8192"),
    "compressed": ("-z", "--call-graph", "dwarf,2048"),
    "fp": ("--call-graph", "fp"),
    "no-chains": ("-d", "--phys-data"),
    "build-ids": ("--buildid-mmap", "--call-graph", "dwarf,1024"),
    "events": ("-e", "task-clock", "-e", "page-faults", "--call-graph", "dwarf,1024", "-c", "500000"),
    "frequent": ("-m", "4", "--call-graph", "dwarf,4096", "--sample-cpu", "--weight", "--transaction"),
    "branches": ("--user-regs=ip,sp,bp", "--call-graph", "dwarf,1024", "--intr-regs=ip,ax"),
}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("perf")
    (folder / "prog.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "-pthread", "-o", folder / "prog", folder / "prog.c"], check=True)
    return folder / "prog"


@pytest.fixture(scope="session")
def recorded(program: Path) -> Callable[[str], Path]:
    """Records the program in one of the ways, once."""
    paths = {}

    def record(way: str) -> Path:
        if way not in paths:
            paths[way] = program.with_name(f"{way}.data")
            done = perf("record", *options(way), "-o", paths[way], "--", program)
            if done.returncode or not paths[way].exists():
                pytest.skip(f"perf cannot record so here: {done.stderr.decode()[-200:]}")
        return paths[way]

    return record


def options(way: str) -> Any:
    chosen = WAYS[way]
    events = () if "-e" in chosen else ("-e", "cpu-clock")
    clock = () if "-c" in chosen else ("-F", "2999")
    return "-N", *events, *clock, *chosen


def read(source: Any, **more: Any) -> Any:
    recording = Recording.open(source, Modules(), **more)
    batches = list(recording.batches())
    assert not recording.troubles
    assert recording.counts.damaged == recording.counts.unknown_ids == recording.counts.unknown_records == 0
    return recording, batches


REGISTERS = {
    "AX": 0, "DX": 1, "CX": 2, "BX": 3, "SI": 4, "DI": 5, "BP": 6, "SP": 7, "IP": 32,
    **{f"R{number}": number for number in range(8, 16)},
}  # fmt: skip


def as_perf_prints(recording: Any, batches: Iterable[Any], *, registers: bool = True) -> Iterator[Any]:
    """What `perf script -F comm,tid,time,cpu,event,period[,uregs]` prints of the samples."""
    for batch in batches:
        for i in range(len(batch)):
            row, known = batch.samples.registers[i].tolist(), int(batch.samples.known[i])
            found = {name: row[number] for name, number in REGISTERS.items() if known >> number & 1}
            seconds, rest = divmod(int(batch.time[i]), 10**9)
            yield (
                recording.comms[batch.comm[i]],
                int(batch.pid[i]),
                int(batch.tid[i]),
                f"{seconds}.{rest:09}",
                int(batch.period[i]),
                recording.events[batch.event[i]],
                found if registers else {},
            )


LINE = re.compile(r"^\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(?:\[\d+\]\s+)?(\d+\.\d+):\s+(\d+)\s+(\S+?):\s*(.*)$")


def printed(path: Path, *, registers: bool = True) -> Iterator[Any]:
    fields = "comm,pid,tid,time,period,event" + (",uregs" if registers else "")
    done = perf("script", "-i", path, "--ns", "-G", "-F", fields)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.decode().splitlines():
        match = LINE.match(line)
        assert match, line
        comm, pid, tid, time, period, event, rest = match.groups()
        values = {name: int(value, 16) for name, value in re.findall(r"(\w+):0x([0-9a-f]+)", rest)}
        found = {name: value for name, value in values.items() if name in REGISTERS}
        yield comm, int(pid), int(tid), time, int(period), event, found


@pytest.mark.parametrize("way", WAYS)
def test_every_sample_is_what_perf_reads(way: str, recorded: Callable[[str], Path]) -> None:
    recording = recorded(way)
    has_registers = way not in {"fp", "no-chains"}
    expected = list(printed(recording, registers=has_registers))
    found = list(as_perf_prints(*read(recording), registers=has_registers))
    assert len(found) == len(expected) > 20
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert [one[3] for one in found] == [one[3] for one in expected]


@pytest.mark.parametrize("way", ["plain", "compressed", "events"])
def test_a_pipe_gives_the_same(way: str, program: Path) -> None:
    piped = perf("record", *options(way), "-o", "-", "--", program)
    path = program.with_name(f"{way}.pipe")
    path.write_bytes(piped.stdout)
    expected = list(printed(path))
    assert len(expected) > 20
    found = list(as_perf_prints(*read(path)))
    assert sorted(found, key=str) == sorted(expected, key=str)
    with path.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
        assert list(as_perf_prints(*read(cat.stdout))) == found


@pytest.mark.parametrize("way", ["plain", "compressed"])
def test_stacks_are_the_bytes_that_perf_dumps(way: str, recorded: Callable[[str], Path]) -> None:
    recording = recorded(way)
    dump = perf("script", "-D", "-i", recording).stdout.decode(errors="replace")
    expected = dict(dumped_stacks(dump))
    _, batches = read(recording)
    count = 0
    for batch in batches:
        memory = batch.samples.memory
        for i in range(len(batch)):
            size, offset = int(memory.size[i]), int(memory.offset[i])
            assert batch.samples.end_segment[i] - batch.samples.first_segment[i] == (size > 0)
            if size:
                assert memory.start[i] == batch.samples.registers[i, 7]
                contents = bytes(memory.buffer[offset : offset + size])
                assert contents in expected[int(batch.tid[i]), int(batch.time[i])]
                count += 1
    assert count > 20


def dumped_stacks(dump: str) -> Iterator[Any]:
    """The bytes of each sample as `perf script -D` prints them, by thread and time."""
    contents = bytearray()
    for line in dump.splitlines():
        if re.match(r"^\.  [0-9a-f]{4,}:", line):
            contents += bytes.fromhex(line.split(":", 1)[1][:49].strip())
        elif match := re.search(
            r"(?:^| )(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(.*?\): \d+/(\d+): ", line
        ):
            yield (int(match[2]), int(match[1])), bytes(contents)
        elif ": event: " in line:
            contents = bytearray()


def test_call_chains_are_those_of_perf(recorded: Callable[[str], Path]) -> None:
    recording = recorded("fp")
    expected = list(dumped_chains(perf("script", "-D", "-i", recording).stdout.decode(errors="replace")))
    found = []
    for batch in read(recording)[1]:
        for i in range(len(batch)):
            chain = batch.chain_pc[batch.chain_first[i] : batch.chain_first[i + 1]].tolist()
            kernel = batch.chain_kernel[batch.chain_first[i] : batch.chain_first[i + 1]].tolist()
            found.append((int(batch.tid[i]), int(batch.time[i]), chain))
            inside = sum(kernel)
            # The kernel's part comes first. Behind the place in the program frame pointers lead anywhere.
            assert kernel == [True] * inside + [False] * (len(chain) - inside)
            assert all(address >= 2**63 for address in chain[:inside])
            assert all(address < 2**63 for address in chain[inside : inside + 1])
    assert found == expected
    assert any(any(address >= 2**63 for address in one[2]) for one in found)


def dumped_chains(dump: str) -> Iterator[Any]:
    """Each sample's call chain as `perf script -D` prints it, without the marks between its parts."""
    chain: list[int] | None = None
    for line in dump.splitlines():
        if match := re.search(
            r"(?:^| )(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(.*?\): \d+/(\d+): ", line
        ):
            chain = []
            yield int(match[2]), int(match[1]), chain
        elif match := re.match(r"^\.{5} +\d+: ([0-9a-f]{16})$", line):
            assert chain is not None
            chain += [address for address in (int(match[1], 16),) if address < 2**64 - 4095]


@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"fp", "no-chains"}))
def test_each_program_counter_is_mapped_where_perf_says(way: str, recorded: Callable[[str], Path]) -> None:
    recording = recorded(way)
    out = perf("script", "-i", recording, "--ns", "-F", "tid,time,ip,dso", "-G", "--no-inline").stdout.decode()
    expected = {}
    for line in out.splitlines():
        tid, time, ip, name = line.split(maxsplit=3)
        expected[int(tid), time.rstrip(":")] = int(ip, 16), name.strip("()")
    modules = Modules()
    found = Recording.open(recording, modules)
    seen = set()
    for batch in found.batches():
        for i in range(len(batch)):
            seconds, rest = divmod(int(batch.time[i]), 10**9)
            ip, name = expected[int(batch.tid[i]), f"{seconds}.{rest:09}"]
            pc = int(batch.samples.registers[i, 32])
            if ip != pc or not batch.samples.known[i] >> 32 & 1:
                continue  # interrupted in the kernel
            space = found.spaces[batch.samples.space[i]]
            row = int(np.searchsorted(space.last, np.uint64(pc)))
            assert space.start[row] <= pc <= space.last[row]
            its = modules[int(space.module[row])]
            assert its.name == name
            assert its.elf is not None, its.trouble
            assert its.elf.is_code(np.array([(pc - int(space.bias[row])) % 2**64], np.uint64)).all()
            seen.add(Path(name).name)
    assert {"prog"} <= seen
    assert found.hostname == os.uname().nodename
    assert found.os_release == os.uname().release
    # perf looks up the build IDs of what samples were in.
    expects_id = "compressed" not in way and any(name == KERNEL for _, name in expected.values())
    assert any(one.name == KERNEL and (one.build_id or not expects_id) for one in found.kernel)


@pytest.mark.parametrize("form", ["file", "pipe"])
@pytest.mark.parametrize("machine", pb.MASKS)
def test_built_recordings_are_what_perf_reads(machine: str, form: str, tmp_path: Path) -> None:
    """What the other tests build is perf.data as perf understands it, in either byte order."""
    kinds = pb.IDENTIFIER | pb.IP | pb.TID | pb.TIME | pb.ADDR | pb.ID | pb.STREAM_ID | pb.CPU | pb.PERIOD
    kinds |= pb.CALLCHAIN | pb.REGS_USER | pb.STACK_USER | pb.WEIGHT | pb.DATA_SRC | pb.PHYS_ADDR
    # perf 6.1 swaps the bytes of files with small attributes only, and of pipes with those of its own size.
    size = 112 if form == "file" else 128
    attrs = [pb.Attr(kinds, name, (number,), pb.MASKS[machine], 64, size=size) for name, number in (("a", 7), ("b", 8))]
    builder = pb.Builder("big" if machine == "s390x" else "little", machine, attrs)
    builder.comm(1, 1, "hello", time=1)
    builder.fork(1, 1, 2, 1, time=2)
    builder.mmap2(1, 0x1000, 0x1000, 0, "/no/a", time=2)
    for i in range(9):
        values: dict[str, Any] = {
            "ip": 0x1100 + i,
            "cpu": i,
            "period": i + 1,
            "time": 10**9 + (i ^ 1),
            "stack": b"abcdefgh" * 8,
        }
        registers = {bit: bit + 100 for bit in range(34)}
        builder.sample(i % 2, pid=1, tid=1 + i % 2, chain=[5, 6], registers=registers, **values)
        if i % 3 == 2:
            builder.finished_round()
    path = tmp_path / "perf.data"
    path.write_bytes(getattr(builder, form)())
    found = list(as_perf_prints(*read(path), registers=False))
    assert len(found) == 9
    expected = list(printed(path, registers=False))
    if (machine, form) == ("s390x", "pipe"):  # perf 6.1 takes the halves of words the wrong way round there
        expected = [(comm, tid, pid, *rest) for comm, pid, tid, *rest in expected]
    assert found == expected
