"""Compressed sections give what was compressed, as objcopy and pyelftools have it; bombs and damage are errors."""

from __future__ import annotations

import lzma
import random
import shutil
import struct
import subprocess
import tracemalloc
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elfbuilder import ElfBuilder
from peers import peer
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError
from walkback.elf import ElfFile, compressed, layout, relocations_for

zstandard = pytest.importorskip("zstandard")

ORDERS = pytest.mark.parametrize("order", ["little", "big"])
METHODS = pytest.mark.parametrize("method", [1, 2])
PACK = {1: zlib.compress, 2: lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data)}
PLAIN = b"walk back " * 50


def chdr(order: ByteOrder, method: int, size: int, stream: bytes) -> bytes:
    return struct.pack(("<" if order == "little" else ">") + "IIQQ", method, 0, size, 1) + stream


def packed(method: int, plain: bytes = PLAIN, *, order: ByteOrder = "little", size: int | None = None) -> bytes:
    return chdr(order, method, len(plain) if size is None else size, PACK[method](plain))


def zdebug(plain: bytes) -> bytes:
    return b"ZLIB" + len(plain).to_bytes(8, "big") + zlib.compress(plain)


def parse(
    contents: bytes, *, order: ByteOrder = "little", name: str = ".debug_frame", flags: int = layout.SHF_COMPRESSED
) -> ElfFile:
    builder = ElfBuilder(order)
    builder.section(name, contents, flags=flags)
    return ElfFile(bytes(builder.build()), "test.o")


def fails(contents: bytes, match: str, **options: Any) -> None:
    with pytest.raises(ElfError, match=rf"section 1 \.z?debug_frame .*(?:{match})") as caught:
        parse(contents, **options).section_data(1)
    assert str(caught.value).startswith("test.o: offset 0x")


class TestContents:
    @ORDERS
    @METHODS
    @pytest.mark.parametrize("plain", [b"", b"x", PLAIN, bytes(3_000_000)])
    def test_they_are_those_that_were_compressed(self, order: ByteOrder, method: int, plain: bytes) -> None:
        elf = parse(packed(method, plain, order=order), order=order)
        assert bytes(elf.section_data(1)) == plain
        assert elf.section_data(1).readonly

    @METHODS
    def test_they_are_decompressed_once(self, method: int) -> None:
        elf = parse(packed(method))
        assert elf.section_data(1) is elf.section_data(1)

    @METHODS
    def test_they_stay_valid_when_the_file_is_closed(self, method: int) -> None:
        with parse(packed(method)) as elf:
            contents = elf.section_data(1)
        assert bytes(contents) == PLAIN

    def test_several_frames_of_zstd_are_one_after_the_other(self) -> None:
        stream = PACK[2](b"one ") + PACK[2](b"two ") + PACK[2](bytes(2_000_000))
        assert bytes(parse(chdr("little", 2, 2_000_008, stream)).section_data(1)[:9]) == b"one two \0"

    @ORDERS
    def test_the_old_style_goes_by_name_and_magic(self, order: ByteOrder) -> None:
        contents = zdebug(PLAIN)
        assert bytes(parse(contents, order=order, name=".zdebug_frame", flags=0).section_data(1)) == PLAIN
        assert bytes(parse(contents, order=order, flags=0).section_data(1)) == contents
        assert bytes(parse(b"plain", name=".zdebug_frame", flags=0).section_data(1)) == b"plain"

    @METHODS
    def test_tables_may_be_compressed(self, method: int) -> None:
        builder = ElfBuilder()
        target = builder.section(".debug_frame", bytes(64))
        symtab = builder.symtab()
        source = builder.relocations(target, symtab, [(8 * n, 1, 1, n) for n in range(8)])
        expected = relocations_for(ElfFile(bytes(builder.build()), "test.o"), target).table
        section = builder.sections[source]
        section.data = packed(method, section.data)
        section.fields["sh_flags"] = layout.SHF_COMPRESSED
        found = relocations_for(ElfFile(bytes(builder.build()), "test.o"), target).table
        assert found.tolist() == expected.tolist()
        assert len(found) == 8


class TestDamage:
    @METHODS
    def test_a_wrong_size_is_an_error(self, method: int) -> None:
        fails(packed(method, size=len(PLAIN) - 1), f"holds more than the {len(PLAIN) - 1} bytes")
        fails(packed(method, size=0), "holds more than the 0 bytes")
        fails(packed(method, size=len(PLAIN) + 1), f"holds {len(PLAIN)} bytes instead of {len(PLAIN) + 1}")

    @METHODS
    def test_a_cut_stream_is_an_error(self, method: int) -> None:
        whole = packed(method)
        for length in range(24, len(whole) - 4):
            fails(whole[:length], "stream|instead of")

    @pytest.mark.parametrize("length", [0, 1, 23])
    def test_a_cut_header_is_an_error(self, length: int) -> None:
        fails(packed(1)[:length], "ends within its compression header")
        fails(zdebug(PLAIN)[: min(4 + length, 11)], "ends within", name=".zdebug_frame", flags=0)

    @pytest.mark.parametrize("method", [0, 3, 2**32 - 1])
    def test_an_unknown_method_is_an_error(self, method: int) -> None:
        fails(chdr("little", method, 4, b"abcd"), f"unknown method \\({method:#x}\\)")

    @METHODS
    def test_other_bytes_are_not_a_stream(self, method: int) -> None:
        fails(chdr("little", method, 4, b"neither of the two"), "broken z(lib|std) stream")

    @METHODS
    def test_random_damage_is_an_error_or_harmless(self, method: int) -> None:
        chance = random.Random(method)
        original = packed(method)
        for _ in range(1000):
            data = bytearray(original)
            for _ in range(chance.randint(1, 3)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                assert len(parse(bytes(data)).section_data(1)) < 100_000
            except ElfError as error:
                assert str(error).startswith("test.o: offset ")  # noqa: PT017


@cache
def gigabyte(method: int) -> bytes:
    """A bomb: a gigabyte of zeros, made without holding them."""
    part = bytes(1 << 20)
    packer = zlib.compressobj(9) if method == 1 else zstandard.ZstdCompressor().compressobj()
    return b"".join([packer.compress(part) for _ in range(1024)]) + packer.flush()


class TestBombs:
    @pytest.mark.whole
    @METHODS
    def test_a_large_one_that_claims_little_takes_little(self, method: int) -> None:
        contents = chdr("little", method, 1000, gigabyte(method))
        tracemalloc.start()
        fails(contents, "holds more than the 1000 bytes")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3_000_000 + 5 * len(contents)

    @pytest.mark.whole
    @METHODS
    def test_a_large_one_that_says_so_is_refused_by_its_claim(self, method: int) -> None:
        fails(chdr("little", method, 1 << 30, gigabyte(method)), f"claims {1 << 30} bytes, of at most")

    @METHODS
    @pytest.mark.parametrize("claim", [60 << 20, 2**40, 2**64 - 1])
    def test_a_small_one_that_claims_much_takes_little(self, method: int, claim: int) -> None:
        contents = chdr("little", method, claim, PACK[method](PLAIN))
        tracemalloc.start()
        fails(contents, "claims|instead of")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3_000_000

    def test_many_sections_do_not_come_to_more_than_the_limit(self) -> None:
        builder = ElfBuilder()
        stream = packed(1, bytes(20 << 20))
        for number in range(4):
            builder.section(f".debug_{number}", stream, flags=layout.SHF_COMPRESSED)
        builder.section(".debug_0_again", b"", flags=layout.SHF_COMPRESSED)
        image = builder.build()
        image.section(5, "sh_offset", image.labels[".debug_0"]).section(5, "sh_size", len(stream))
        elf = ElfFile(bytes(image), "test.o")
        assert 60 << 20 < compressed.limit_of(len(elf.data)) < 80 << 20
        assert [len(elf.section_data(number)) for number in (1, 2, 3)] == [20 << 20] * 3
        with pytest.raises(ElfError, match=r"section 4 .* claims"):
            elf.section_data(4)
        assert elf.section_data(5) is elf.section_data(1), "one range is read once"

    def test_an_xz_stream_is_held_to_the_limit(self) -> None:
        stream = memoryview(lzma.compress(bytes(1 << 20)))
        assert compressed.decompress_xz(stream, 1 << 20) == bytes(1 << 20)
        with pytest.raises(ElfError, match="more than 1048575 bytes"):
            compressed.decompress_xz(stream, (1 << 20) - 1)
        for length in range(0, len(stream), 7):
            with pytest.raises(ElfError, match="xz stream"):
                compressed.decompress_xz(stream[:length], 1 << 20)

    def test_an_xz_stream_that_wants_too_much_memory_is_refused(self) -> None:
        stream = bytearray(lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]))
        place = stream.index(b"\x21\x01") + 2  # the filter's one property, its dictionary size
        stream[place] = 36  # 1 GiB
        block = stream[12:20]
        stream[20:24] = zlib.crc32(bytes(block)).to_bytes(4, "little")
        assert lzma.decompress(bytes(stream), memlimit=2 << 30) == b"x"
        with pytest.raises(ElfError, match=r"[Mm]emory"):
            compressed.decompress_xz(memoryview(bytes(stream)), 100)


SOURCE = """
int printf(const char *, ...);
struct node { struct node *next; int value; };
static int sum(struct node *n) { int s = 0; for (; n; n = n->next) s += n->value; return s; }
int main(int argc, char **argv) { struct node a = {0, argc}, b = {&a, 2}; return printf("%d", sum(&b)); }
"""
COMPILERS = {"": "gcc", "aarch64-": "aarch64-gcc", "s390x-": "s390x-gcc"}


@pytest.fixture(scope="module", params=COMPILERS, ids=lambda prefix: prefix or "amd64")
def with_debug_information(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The prefix of the peers, and an object."""
    compiler = COMPILERS[request.param]
    if compiler == "gcc" and not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("debug")
    (folder / "a.c").write_text(SOURCE)
    command = compiler if compiler == "gcc" else peer(compiler)
    subprocess.run([command, "-g", "-S", "a.c", "-o", "a.s"], cwd=folder, check=True)
    subprocess.run([peer(f"{request.param}as-2.40"), "a.s", "-o", "a.o"], cwd=folder, check=True)
    return request.param, folder / "a.o"


@pytest.mark.peers
class TestPeers:
    @pytest.mark.parametrize("method", ["zlib", "zstd", "zlib-gnu"])
    @pytest.mark.parametrize("version", ["2.40", "new"])
    def test_sections_that_objcopy_compressed_are_as_before(
        self, with_debug_information: tuple[str, Path], tmp_path: Path, method: str, version: str
    ) -> None:
        prefix, plain = with_debug_information
        out = tmp_path / "packed.o"
        objcopy = peer(f"{prefix}objcopy-{version}")
        done = subprocess.run(
            [objcopy, f"--compress-debug-sections={method}", plain, out], capture_output=True, check=False
        )
        if b"not built with zstd" in done.stderr:
            pytest.skip(f"{objcopy} has no zstd")
        assert done.returncode == 0, done.stderr
        with ElfFile(plain) as ours, ElfFile(out) as theirs:
            compared = 0
            for index, name in enumerate(theirs.section_names()):
                flag = int(theirs.sections["flags"][index]) & layout.SHF_COMPRESSED
                if flag or name.startswith(".zdebug"):
                    (same,) = ours.sections_named(name.replace(".zdebug", ".debug"))
                    assert bytes(theirs.section_data(index)) == bytes(ours.section_data(same))
                    compared += 1
            assert compared >= 2

    @pytest.mark.parametrize("method", ["zlib", "zstd"])
    def test_sections_that_llvm_compressed_are_as_before(
        self, with_debug_information: tuple[str, Path], tmp_path: Path, method: str
    ) -> None:
        _, plain = with_debug_information
        out = tmp_path / "packed.o"
        command: list[str | Path] = [peer("llvm-objcopy"), f"--compress-debug-sections={method}", plain, out]
        done = subprocess.run(command, capture_output=True, check=False)
        if b"not built with" in done.stderr or b"not available" in done.stderr or b"LLVM_ENABLE_ZSTD" in done.stderr:
            pytest.skip(f"llvm-objcopy has no {method}")
        assert done.returncode == 0, done.stderr
        with ElfFile(plain) as ours, ElfFile(out) as theirs:
            chosen = np.flatnonzero(theirs.sections["flags"] & np.uint64(layout.SHF_COMPRESSED)).tolist()
            for index in chosen:
                (same,) = ours.sections_named(theirs.section_name(index))
                assert bytes(theirs.section_data(index)) == bytes(ours.section_data(same))
            assert len(chosen) >= 2


def debug_files() -> list[Path]:
    """Some of the separate debug files of this machine, which distributions compress."""
    return sorted(Path("/usr/lib/debug/.build-id").glob("??/*.debug"))[::12]


@pytest.mark.parametrize("path", debug_files(), ids=lambda path: path.stem[:8])
def test_debug_files_of_the_machine_are_read_as_pyelftools_reads_them(path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file, ElfFile(path) as elf:
        for index, section in enumerate(elffile.ELFFile(file).iter_sections()):
            if section.compressed:
                assert bytes(elf.section_data(index)) == section.data()
