"""Core files made by hand: what each note means, and what damage does."""

from __future__ import annotations

import os
import random
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from capture.corebuilder import WORDS, CoreBuilder
from effort import rounds
from elfbuilder import ElfBuilder
from walkback.base.arch import AARCH64, S390X, ByteOrder
from walkback.base.errors import UnreadableError
from walkback.capture.core.file import CoreFile
from walkback.capture.core.linkmap import LinkMap
from walkback.elf import ElfFile
from walkback.naming.modules import Modules
from walkback.stacks.stacks import End
from walkback.walking.walker import Walker


def opened(builder: bytearray | bytes | CoreBuilder, **options: Any) -> CoreFile:
    data = builder.build() if isinstance(builder, CoreBuilder) else builder
    return CoreFile(ElfFile(data, "core"), Modules(), **options)


def test_registers_of_amd64() -> None:
    # user_regs_struct, each register with its own number in it
    names = [
        "r15",
        "r14",
        "r13",
        "r12",
        "rbp",
        "rbx",
        "r11",
        "r10",
        "r9",
        "r8",
        "rax",
        "rcx",
        "rdx",
        "rsi",
        "rdi",
        "orig",
        "rip",
        "cs",
        "eflags",
        "rsp",
    ]
    words = [0x1000 + i for i in range(len(names))]
    snapshot = opened(CoreBuilder().thread(7, words, 11)).sample()
    row = snapshot.samples.registers[0].tolist()
    dwarf = [
        "rax",
        "rdx",
        "rcx",
        "rbx",
        "rsi",
        "rdi",
        "rbp",
        "rsp",
        "r8",
        "r9",
        "r10",
        "r11",
        "r12",
        "r13",
        "r14",
        "r15",
        "rip",
    ]
    assert row[:17] == [0x1000 + names.index(name) for name in dwarf]
    assert row[32] == row[16]
    assert int(snapshot.samples.known[0]) == (1 << 17) - 1 | 1 << 32 | 1 << 33
    assert (snapshot.tids, snapshot.signal, snapshot.signalled) == ([7], 11, 0)


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_registers_of_aarch64(byteorder: ByteOrder) -> None:
    core = CoreBuilder("AArch64", byteorder).thread(7, [0x100 + i for i in range(34)])
    core.note(0x406, core.pack("QQ", 0xFF000000000000, 0x7F000000000000), "LINUX")
    snapshot = opened(core).sample()
    assert snapshot.machine is AARCH64
    assert snapshot.byteorder == byteorder
    row = snapshot.samples.registers[0].tolist()
    assert row[:32] == [0x100 + i for i in range(32)]
    assert row[32] == 0x120
    assert int(snapshot.samples.known[0]) == (1 << 33) - 1
    assert snapshot.pac_mask == 0x7F000000000000
    assert (snapshot.signal, snapshot.signalled) == (0, -1)


def test_registers_of_s390x() -> None:
    core = CoreBuilder("s390x", "big").thread(7, [0xAAAA, 0xBBBB, *(0x100 + i for i in range(16))])
    core.note(2, core.pack("II16Q", 5, 0, *(0x200 + i for i in range(16))))
    core.thread(8, [0, 0xCCCC])
    snapshot = opened(core).sample()
    assert snapshot.machine is S390X
    row = snapshot.samples.registers[0].tolist()
    assert row[:16] == [0x100 + i for i in range(16)]
    assert row[16:32] == [0x200 + i for i in (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)]
    assert row[32] == 0xBBBB
    # Only the first thread has floating point registers here.
    assert snapshot.samples.known.tolist() == [(1 << 33) - 1, (1 << 16) - 1 | 1 << 32]


def test_the_process_and_its_signal() -> None:
    core = CoreBuilder().process(42, b"sixteen-bytes-xx", b"/bin/sixteen -v ").thread(43, []).thread(42, [], 11)
    core.note(0x53494749, core.pack("iiixxxxQ", 11, 0, 1, 0xDEAD).ljust(128, b"\0"))
    snapshot = opened(core).sample()
    assert (snapshot.pid, snapshot.command, snapshot.arguments) == (42, "sixteen-bytes-xx", "/bin/sixteen -v")
    assert snapshot.tids == [43, 42]
    assert (snapshot.signal, snapshot.signalled, snapshot.fault) == (11, 1, 0xDEAD)


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_frame_pointers_of_big_endian_aarch64(byteorder: ByteOrder) -> None:
    stack = 0x7F0000000000
    core = CoreBuilder("AArch64", byteorder)
    frames = [(stack + 0x20, 0x400104), (stack + 0x40, 0x400208), (0, 0x40030C)]
    contents = b"".join(core.pack("QQ", fp, lr).ljust(0x20, b"\0") for fp, lr in frames)
    words = [0] * 34
    words[29], words[30], words[31], words[32] = stack, 0x400104, stack, 0x400010
    core.thread(1, words).load(stack, contents).load(0x400000, b"", size=0x1000, flags=5)
    source = opened(core)
    walker = Walker(source.machine, source.byteorder, lambda _: None, only="fp")
    stacks = source.sample(walker).stacks
    assert stacks.pc.tolist() == [0x400010, 0x400104, 0x400208, 0x40030C]
    assert End(stacks.end[0]) in {End.ZERO, End.COMPLETE}


def test_memory_is_read_across_segments() -> None:
    core = CoreBuilder().thread(1, []).load(0x3000, b"c" * 16, flags=4).load(0x1000, b"a" * 16, size=4096)
    core.load(0x2000, b"b" * 4096)
    data = core.build()
    source = opened(data)
    memory = source.memory
    assert memory.stored_start.tolist() == [0x1000, 0x2000, 0x3000]
    assert memory.read(0x2FFE, 100) == b"bb" + b"c" * 16
    assert memory.read(0x100F, 100) == b"a"
    assert memory.read(0x1010, 1) == b""
    assert memory.read(0x2000, 4097) == b"b" * 4096 + b"c"
    assert memory.cut_at(0x1800) == 0x1010
    assert memory.cut_at(0x2800) == 0
    assert memory.cut_at(0x9000) == 0
    assert memory.is_writable(0x3000) is False
    assert memory.is_writable(0x9000) is None


def test_a_stack_longer_than_what_is_read_at_first_is_walked_to_its_end() -> None:
    frames, step = 3000, 512
    stack = 0x10000
    contents = bytearray(frames * step + 16)
    for number in range(frames):
        struct.pack_into("<QQ", contents, number * step, stack + (number + 1) * step, 0x400100 + number)
    words = [0] * 27
    words[4], words[16], words[19] = stack, 0x400010, stack
    core = (
        CoreBuilder().thread(1, words).load(stack, bytes(contents), flags=6).load(0x400000, b"", size=0x1000, flags=5)
    )
    source = opened(core)
    walker = Walker(source.machine, source.byteorder, lambda _: None, only="fp", max_stack=10_000)
    snapshot = source.sample(walker)
    assert len(snapshot.samples.memory.buffer) < len(contents) / 4
    assert snapshot.stacks.pc.tolist() == [0x400010, *range(0x400100, 0x400100 + frames)]


def test_overlapping_segments_are_parted() -> None:
    core = CoreBuilder().thread(1, []).load(0x1000, b"a" * 0x100).load(0x1080, b"b" * 0x100).load(0x1010, b"c" * 8)
    core.load(2**64 - 16, b"d" * 64)
    memory = opened(core).memory
    assert memory.stored_start.tolist() == [0x1000, 0x1100, 2**64 - 16]
    assert memory.stored_size.tolist() == [0x100, 0x80, 15]


def test_a_stack_that_is_cut_is_told() -> None:
    words = [0] * 20
    words[19] = 0x1008
    core = CoreBuilder().thread(1, words).load(0x1000, b"a" * 64, size=0x1000)
    assert opened(core).sample().samples.cut.tolist() == [0x1040]
    whole = core.load(0x5000, bytes(100)).build()
    snapshot = opened(whole[:-70]).sample()
    assert snapshot.troubles[0] == "the core file is cut short: 70 bytes of memory are missing"


def program(tmp_path: Path, name: str, build_id: bytes, addr: int = 0) -> Path:
    elf = ElfBuilder(kind=3, entry=0x1234)
    note = struct.pack("<III4s", 4, len(build_id), 3, b"GNU\0") + build_id
    elf.section(".note.gnu.build-id", note, kind=7, addr=addr, addralign=4)
    image = elf.build()
    path = tmp_path / name
    path.write_bytes(bytes(image))
    return path


def test_errors_are_one_clear_line() -> None:
    core = CoreBuilder().thread(1, []).build()
    other = bytearray(core)
    struct.pack_into("<H", other, 18, 243)
    with pytest.raises(
        UnreadableError, match=r"^core: this is a core file of machine 243; supported are AMD64, AArch64"
    ):
        opened(bytes(other))
    struct.pack_into("<HH", other, 16, 2, 62)
    with pytest.raises(UnreadableError, match=r"^core: this ELF file is not a core file$"):
        opened(bytes(other))
    with pytest.raises(UnreadableError, match=r"^core: the core file has no thread's registers$"):
        opened(CoreBuilder())
    with pytest.raises(UnreadableError, match=r"no thread's registers; it is cut short$"):
        opened(core[:200])
    with pytest.raises(UnreadableError, match="dump of a kernel"):
        opened(CoreBuilder().note(0, b"OSRELEASE=6.1", "VMCOREINFO").thread(1, []))
    with pytest.raises(UnreadableError, match="32-bit"):
        opened(core[:4] + b"\1" + core[5:])


def elf_of(modules: Modules, number: int) -> ElfFile | None:
    return modules[number].elf


def test_damaged_notes_leave_those_before_them() -> None:
    core = CoreBuilder().thread(1, []).thread(2, []).note(1, bytes(100)).note(3, bytes(7))
    core.notes += core.pack("III", 5, 2**31, 1) + b"CORE"
    snapshot = opened(core).sample()
    assert snapshot.tids == [1, 2]
    assert [one.partition(" (")[0] for one in snapshot.troubles[:3]] == [
        "a note of type 0x1 is too short",
        "a note of type 0x3 is too short",
        "damaged notes: a note reaches beyond the end of its section",
    ]


def test_damaged_lists_of_files() -> None:
    claims = CoreBuilder().thread(1, [])
    claims.note(0x46494C45, claims.pack("QQ", 2**61, 4096) + bytes(48))
    assert "too short" in opened(claims).sample().troubles[0]
    nameless = CoreBuilder().thread(1, [])
    nameless.note(0x46494C45, nameless.pack("QQ6Q", 2, 4096, 0x1000, 0x2000, 0, 0x3000, 0x4000, 1) + b"/one\0")
    source = opened(nameless)
    assert [one.path for one in source.notes.files] == ["/one"]
    assert "before the names of all" in source.troubles[0]
    strange = (
        CoreBuilder().thread(1, []).files((0x2000, 0x1000, 0, b"/back"), (0, 2**64 - 1, 2**60, b"/all"), page=2**63)
    )
    assert [one.path for one in opened(strange).notes.files] == ["/all"]


def test_a_list_of_libraries_that_has_no_end(tmp_path: Path) -> None:
    order = struct.Struct("<QQQQ")
    memory = {0x1000: struct.pack("<QQQQ", 21, 0x2000, 0, 0), 0x2000: struct.pack("<QQ", 1, 0x3000)}
    memory[0x3000] = order.pack(1, 0, 2, 0x4000)
    memory[0x4000] = order.pack(3, 0x5000, 4, 0x3000)
    memory[0x5000] = b"n" * 100000

    def read(address: int, size: int) -> bytes:
        for start, contents in memory.items():
            if start <= address < start + len(contents):
                return contents[address - start : address - start + size]
        return b""

    reader = LinkMap(read, "little")
    found = list(reader.libraries(0x1000))
    assert [(one.bias, one.dynamic) for one in found] == [(1, 2), (3, 4)]
    assert reader.trouble == "the dynamic linker's list of libraries is damaged at 0x3000"
    assert len(found[1].name) < 10000
    memory[0x2000] = struct.pack("<QQ", 1, 0x99999999)
    assert list(reader.libraries(0x1000)) == []
    assert "damaged at 0x99999999" in reader.trouble
    del memory[0x2000]
    assert list(reader.libraries(0x1000)) == []
    assert "not in memory" in reader.trouble
    endless = LinkMap(lambda address, size: b"\1" * size, "little")
    assert list(endless.libraries(0x1000)) == []


@pytest.mark.parametrize("count", [5000, 70000])
def test_very_many_segments(count: int) -> None:
    core = CoreBuilder().thread(1, [0] * 19 + [0x10000 * count])
    for i in range(count, 0, -1):
        core.load(0x10000 * i, struct.pack("<Q", i), flags=6 if i % 2 else 5)
    data = core.build()
    source = opened(data)
    assert len(source.memory.stored_start) == count
    assert source.memory.read(0x10000 * 77, 8) == struct.pack("<Q", 77)
    assert len(source.space.start) == count // 2
    cut = opened(data[: 64 + 56 * (count + 1) + len(core.notes) + 80])
    assert len(cut.memory.stored_start) == 10
    assert "cut short" in cut.troubles[0]


def test_a_sparse_huge_core(tmp_path: Path) -> None:
    core = CoreBuilder().thread(1, []).load(0x10000, b"", size=0)
    data = bytearray(core.build())
    size = 1 << 40
    struct.pack_into("<QQ", data, 64 + 56 + 32, size, size)
    path = tmp_path / "core"
    path.write_bytes(data)
    try:
        os.truncate(path, len(data) + size)
    except OSError:
        pytest.skip("the file system has no files of that size")
    source = CoreFile.open(path, Modules())
    assert source.memory.read(0x10000 + size - 8, 16) == bytes(8)
    assert source.sample().troubles == ["the core file says neither what files were mapped nor where its program was"]


def rich_core(byteorder: ByteOrder = "little", machine: str = "AMD64") -> CoreBuilder:
    """A core with everything in it."""
    core = CoreBuilder(machine, byteorder).process(1, b"name", b"name -x")
    for tid in (1, 2):
        core.thread(tid, [0x7000 + 8 * i for i in range(WORDS[machine])], 6)
        core.note(2, bytes(512))
    core.note(0x53494749, core.pack("iii", 11, 0, 1).ljust(128, b"\0"))
    core.auxiliary(phdr=0x1040, phnum=2, base=0x4000, entry=0x1100, execfn=0x7100, vdso=0x5000)
    core.files((0x1000, 0x2000, 0, b"/nowhere/program"), (0x4000, 0x5000, 1, b"/nowhere/library"))
    core.load(0x1000, bytes(ElfBuilder(kind=3).build().data), size=0x1000, flags=5)
    core.load(0x5000, bytes(0x100), flags=5).load(0x7000, bytes(range(256)) * 4)
    return core


@pytest.mark.parametrize(("machine", "byteorder"), [("AMD64", "little"), ("AArch64", "big"), ("s390x", "big")])
def test_every_beginning_of_a_core_is_read_or_refused(machine: str, byteorder: ByteOrder) -> None:
    data = rich_core(byteorder, machine).build()
    read, refused = 0, []
    for size in range(1, len(data), 7):
        try:
            opened(data[:size]).sample()
            read += 1
        except UnreadableError as error:
            refused.append(str(error))
    assert not any("\n" in one for one in refused)
    assert read > 50


@pytest.mark.soak
@pytest.mark.parametrize(("machine", "byteorder"), [("AMD64", "little"), ("AArch64", "big"), ("s390x", "big")])
def test_hostile_cores_are_read_or_refused(machine: str, byteorder: ByteOrder) -> None:
    data = rich_core(byteorder, machine).build()
    draw = random.Random(5)
    refused = []
    for _ in range(rounds(700, quick=150)):
        damaged = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 5))):
            place, width = draw.randrange(16, len(data) - 8), draw.choice((1, 1, 4, 8))
            value = draw.choice((0, 1, 0xFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, draw.getrandbits(64)))
            damaged[place : place + width] = (value & 256**width - 1).to_bytes(width, byteorder)
        try:
            source = opened(damaged)
        except UnreadableError as error:
            refused.append(str(error))
            continue
        source.sample(Walker(source.machine, source.byteorder, partial(elf_of, source.modules)))
    assert not any("\n" in one for one in refused)
