"""Names that processes and the kernel tell of themselves."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from walkback.symbols.kallsyms import KERNEL, Kallsyms, kernel_build_id
from walkback.symbols.perfmap import PerfMap, read_perf_map


def at(*addresses: int) -> np.ndarray:
    return np.array(addresses, np.uint64)


class TestPerfMap:
    def test_names_with_spaces_and_both_ways_to_write_numbers(self) -> None:
        table = PerfMap(b"1000 10 LazyCompile:~f a.js:1\n0x00001010 0x8 g\nABC0 4 h\r\n")
        names, start = table.locate(at(0xFFF, 0x1000, 0x100F, 0x1010, 0x1018, 0xABC3))
        assert names == [None, "LazyCompile:~f a.js:1", "LazyCompile:~f a.js:1", "g", None, "h"]
        assert start.tolist() == [0, 0x1000, 0x1000, 0x1010, 0, 0xABC0]

    def test_damaged_lines_are_passed_over(self) -> None:
        lines = [
            b"",
            b"f",
            b"10 f",
            b"-1 2 f",
            b"10  ",
            b"1g 2 f",
            b"11111111111111111 1 f",
            b"\xff\x00",
            b"20 8 \xffz",
        ]
        table = PerfMap(b"\n".join(lines) + b"\n")
        assert table.locate(at(0x10, 0x20))[0] == [None, "\\xffz"]
        assert len(table) == 1

    def test_the_later_wins_and_sizes_stop_at_the_end_of_memory(self) -> None:
        table = PerfMap(b"100 100 old\n140 10 new\n100 10 newer\nfffffffffffffff0 ffffffffffffffff top\n50 0 empty\n")
        names, start = table.locate(at(0x100, 0x110, 0x13F, 0x140, 0x150, 0x1FF, 0x200, 2**64 - 2, 0x50))
        assert names == ["newer", "old", "old", "new", "old", "old", None, "top", None]
        assert start.tolist() == [0x100, 0x100, 0x100, 0x140, 0x100, 0x100, 0, 2**64 - 16, 0]

    def test_an_empty_one(self) -> None:
        assert PerfMap(b"").locate(at(1, 2)) == ([None, None], pytest.approx([0, 0]))


class TestReadPerfMap:
    @pytest.fixture
    def host(self, tmp_path: Path) -> Path:
        for folder in ("proc/7/root/tmp", "tmp"):
            (tmp_path / folder).mkdir(parents=True)
        return tmp_path

    def read(self, host: Path) -> list[str | None]:
        return read_perf_map(7, host / "proc", host / "tmp").locate(at(0x1000))[0]

    def test_the_file_of_a_process(self, host: Path) -> None:
        assert self.read(host) == [None]
        (host / "tmp/perf-7.map").write_text("1000 10 here\n1000 10 cut o")
        assert self.read(host) == ["here"]

    def test_in_a_container_it_has_another_number(self, host: Path) -> None:
        (host / "tmp/perf-7.map").write_text("1000 10 another's\n")
        (host / "proc/7/status").write_text("Name:\tx\nNSpid:\t7\t3\n")
        (host / "proc/7/root/tmp/perf-3.map").write_text("1000 10 inside\n")
        assert self.read(host) == ["inside"]

    def test_links_folders_and_pipes_are_not_read(self, host: Path) -> None:
        (host / "real").write_text("1000 10 secret\n")
        (host / "tmp/perf-7.map").symlink_to(host / "real")
        assert self.read(host) == [None]
        (host / "proc/7/root/tmp/perf-7.map").mkdir()
        assert self.read(host) == [None]
        (host / "tmp/perf-7.map").unlink()
        os.mkfifo(host / "tmp/perf-7.map")
        assert self.read(host) == [None]

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
    def test_only_files_of_its_user_of_us_and_of_root_count(self, host: Path) -> None:
        path = host / "tmp/perf-7.map"
        path.write_text("1000 10 f\n")
        os.chown(path, 1234, 1234)
        assert self.read(host) == [None]
        os.chown(host / "proc/7", 1234, 1234)
        assert self.read(host) == ["f"]


LINES = b"""ffffffff81000000 T _text
ffffffff81000000 T startup
ffffffff81000100 t local
0000000000000000 T hidden
ffffffff81000200 D data
short
ffffffff81000300 W weak
fffffffg81000400 T bad
ffffffffc0000000 t in_module\t[ext4]
ffffffffc0000100 t last\t[ext4]
"""


class TestKallsyms:
    def test_text_symbols_by_address(self, tmp_path: Path) -> None:
        (tmp_path / "kallsyms").write_bytes(LINES)
        names, start, modules = Kallsyms(tmp_path / "kallsyms").locate(
            at(0, 0xFFFFFFFF81000000, 0xFFFFFFFF81000250, 0xFFFFFFFF81000301, 0xFFFFFFFFC0000005, 2**64 - 1)
        )
        assert names == [None, "_text", "local", "weak", "in_module", None]
        assert start.tolist() == [0, *(0xFFFFFFFF81000000 + n for n in (0, 0x100, 0x300)), 0xFFFFFFFFC0000000, 0]
        assert modules == [KERNEL, KERNEL, KERNEL, KERNEL, "[ext4]", KERNEL]

    @pytest.mark.parametrize("contents", [None, b"", b"x", b"0000000000000000 T f\n" * 3, bytes(100), b"\n" * 9])
    def test_there_may_be_no_names(self, tmp_path: Path, contents: bytes | None) -> None:
        if contents is not None:
            (tmp_path / "kallsyms").write_bytes(contents)
        assert Kallsyms(tmp_path / "kallsyms").locate(at(5))[0] == [None]

    def test_the_running_kernel(self, tmp_path: Path) -> None:
        kernel = Kallsyms()
        assert kernel.build_id == kernel_build_id()
        assert kernel_build_id(tmp_path / "none") is None
        (tmp_path / "notes").write_bytes(b"\xff" * 40)
        assert kernel_build_id(tmp_path / "notes") is None
        known = [line.split() for line in Path("/proc/kallsyms").read_text().splitlines()]
        listed = [(int(words[0], 16), words[2]) for words in known if words[1] in "TtWw" and int(words[0], 16)]
        if len(listed) < 2:
            pytest.skip("kernel addresses are hidden here")
        names, start, _ = kernel.locate(at(*(address for address, _ in listed[:500])))
        assert start.tolist() == [address for address, _ in listed[:500]]
        assert set(zip(start.tolist(), names, strict=True)) <= set(listed)
