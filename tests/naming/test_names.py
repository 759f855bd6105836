"""Names and lines of frames, beside those of perf."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from walkback.naming.modules import Modules
from walkback.naming.names import FrameNames, Names
from walkback.symbols.kallsyms import KERNEL, Kallsyms, kernel_build_id

SOURCE = """
#include <string>
#include <cstdio>
#include <cstdlib>
namespace ns {
template<class T> struct Box { __attribute__((noinline)) unsigned spin(T n, const std::string &s); };
template<class T> unsigned Box<T>::spin(T n, const std::string &s) {
    volatile unsigned x = 1;
    for (T i = 0; i < n; i++) x = x * 3 + s.size();
    return x;
}
}
__attribute__((noinline)) unsigned work(ns::Box<long> *b, long n) { return b->spin(n, "abc") + 1; }
int main(int argc, char **argv) { ns::Box<long> b; printf("%u\\n", work(&b, argc > 1 ? atol(argv[1]) : 1)); }
"""


@pytest.fixture(scope="module")
def prog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("g++") or not shutil.which("nm"):
        pytest.skip("needs g++ and nm")
    folder = tmp_path_factory.mktemp("names")
    (folder / "a.cc").write_text(SOURCE)
    subprocess.run(["g++", "-g", "-O1", "a.cc", "-o", "prog"], cwd=folder, check=True)
    return folder / "prog"


def functions(prog: Path) -> dict[str, tuple[int, int]]:
    """Place and size by mangled name."""
    output = subprocess.run(["nm", "-S", prog], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in output.splitlines()]
    return {words[3]: (int(words[0], 16), int(words[1], 16)) for words in lines if len(words) == 4}


def asked(modules: Modules, *frames: tuple[int, int], **options: Any) -> FrameNames:
    names = Names(modules, **options)
    module = np.array([number for number, _ in frames], np.int32)
    return names.find(module, np.array([address for _, address in frames], np.uint64))


class TestModules:
    def test_symbols_offsets_and_modules(self, prog: Path) -> None:
        modules = Modules()
        number = modules.file(str(prog))
        missing = modules.file(f"{prog}.gone")
        known = functions(prog)
        work, main = known["_Z4workPN2ns3BoxIlEEl"][0], known["main"][0]
        spin = known["_ZN2ns3BoxIlE4spinElRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"][0]
        frames = [(number, spin), (missing, 5), (number, work + 3), (-1, 77), (number, main), (number, 2**64 - 1)]
        found = asked(modules, *frames)
        assert found.symbol == ["ns::Box<long>::spin", None, "work", None, "main", None]
        assert found.offset.tolist() == [0, 0, 3, 0, 0, 0]
        assert found.module == [str(prog), f"{prog}.gone", str(prog), "", str(prog), str(prog)]
        assert found.lines is None
        assert found.file == [None] * 6
        assert found.line == [0] * 6
        full = asked(modules, (number, work), parameters=True)
        assert full.symbol == ["work(ns::Box<long>*, long)"]
        assert asked(modules, (number, work), demangle=False).symbol == ["_Z4workPN2ns3BoxIlEEl"]

    def test_entries_of_the_linkage_table(self, prog: Path) -> None:
        modules = Modules()
        number = modules.file(str(prog))
        output = subprocess.run(["objdump", "-d", prog], capture_output=True, text=True, check=True).stdout
        place = int(re.findall(r"^([0-9a-f]+) <printf@plt>:", output, re.MULTILINE)[0], 16)
        found = asked(modules, (number, place), (number, place + 5))
        assert found.symbol == ["printf@plt", "printf@plt"]
        assert found.offset.tolist() == [0, 5]

    @pytest.mark.skipif(not shutil.which("addr2line"), reason="needs addr2line")
    def test_lines(self, prog: Path) -> None:
        modules = Modules()
        number = modules.file(str(prog))
        start, _ = functions(prog)["main"]
        found = asked(modules, (number, start), (-1, 5), (number, 1), lines=True)
        assert [Path(file).name if file else None for file in found.file] == ["a.cc", None, None]
        assert found.line == [14, 0, 0]
        assert found.lines is not None
        assert found.lines[0][-1].function == "main"

    def test_trouble_is_told(self, prog: Path, tmp_path: Path) -> None:
        modules = Modules()
        names = Names(modules)
        (tmp_path / "text").write_text("text")
        numbers = [modules.file(str(tmp_path / "none")), modules.file(str(tmp_path / "text")), modules.file(str(prog))]
        found = names.find(np.array(numbers), np.array([1, 2, 3], np.uint64))
        assert found.symbol == [None] * 3
        assert names.troubles == {
            str(tmp_path / "none"): "No such file or directory",
            str(tmp_path / "text"): "this is not an ELF file",
        }

    def test_damaged_symbols_have_no_names(self, prog: Path, tmp_path: Path) -> None:
        from walkback.elf import ElfFile

        elf = ElfFile(prog)
        contents = bytearray(elf.data[:])
        section = elf.sections[elf.sections_of_type(2)[0]]
        offset, size = int(section["offset"]), int(section["size"])
        for place in range(offset, offset + size, 24):
            contents[place : place + 4] = b"\xff\xff\xff\x7f"
        (tmp_path / "damaged").write_bytes(contents)
        modules = Modules()
        names = Names(modules)
        number = modules.file(str(tmp_path / "damaged"))
        main = functions(prog)["main"][0]
        assert names.find(np.array([number]), np.array([main], np.uint64)).symbol == [None]
        assert "no string" in names.troubles[str(tmp_path / "damaged")]

    def test_nothing_is_asked(self) -> None:
        found = Names(Modules(), lines=True).find(np.zeros(0, np.int32), np.zeros(0, np.uint64))
        assert (found.symbol, found.module, found.lines) == ([], [], [])


class TestOthers:
    def test_kernel_names_need_the_same_kernel(self, tmp_path: Path) -> None:
        (tmp_path / "kallsyms").write_text(
            "ffffffff81000000 T _text\nffffffff81000100 t _RNvC6_123foo3bar\nffffffffc0000000 t f\t[ext4]\n"
            "ffffffffc0001000 t g\t[ext4]\n"
        )
        table = Kallsyms(tmp_path / "kallsyms")
        address = np.array([0xFFFFFFFF81000004, 0xFFFFFFFF81000104, 0xFFFFFFFFC0000001, 5], np.uint64)
        module, kernel = np.full(4, -1, np.int32), np.ones(4, np.bool_)
        for recorded in (None, b"other"):
            found = Names(Modules(), kernel=recorded, kallsyms=table).find(module, address, kernel=kernel)
            assert found.symbol == [None] * 4
            assert found.module == [KERNEL] * 4
        ours = kernel_build_id()
        if ours is None:
            pytest.skip("this kernel has no build ID")
        found = Names(Modules(), kernel=ours, kallsyms=table).find(module, address, kernel=kernel)
        assert found.symbol == ["_text", "123foo::bar", "f", None]
        assert found.module == [KERNEL, KERNEL, "[ext4]", KERNEL]
        assert found.offset.tolist() == [4, 4, 1, 0]

    def test_perf_maps_are_those_of_the_process(self) -> None:
        path = Path(f"/tmp/perf-{os.getpid()}.map")
        try:
            path.write_text("7000 100 JIT:f x\n")
            names = Names(Modules())
            module, pid = np.array([-1, -1, -1, -1]), np.array([os.getpid(), 2**22 + 5, os.getpid(), 0])
            address = np.array([0x7010, 0x7010, 0x7100, 0x7010], np.uint64)
            found = names.find(module, address, pid=pid)
            assert found.symbol == ["JIT:f x", None, None, None]
            assert found.offset.tolist() == [0x10, 0, 0, 0]
            assert found.module == [str(path), "", "", ""]
            with path.open("a") as file:
                file.write("7100 100 g\n7100 100 cut o")
            assert names.find(module, address, pid=pid).symbol == ["JIT:f x", None, "g", None]
            path.write_text("7000 200 h\n")
            assert names.find(module, address, pid=pid).symbol == ["JIT:f x", None, "g", None]
            names.forget_perf_maps()
            assert names.find(module, address, pid=pid).symbol == ["h", None, "h", None]
            kernel = np.array([True, False, False, False])
            assert names.find(module, address, pid=pid, kernel=kernel).symbol == [None, None, "h", None]
        finally:
            path.unlink()


@pytest.mark.skipif(not shutil.which("perf"), reason="needs perf")
def test_perf_says_the_same(prog: Path, tmp_path: Path) -> None:
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "500", "--call-graph", "dwarf", "-o", "data"]
    if subprocess.run([*record, prog, "100000000"], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("perf cannot record here")
    script = ["perf", "script", "-i", "data", "--no-inline", "-F", "ip,sym,symoff,dso", "--show-mmap-events"]
    output = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    maps = re.findall(r"\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) .*?\]: r-xp (/.*)", output)
    assert maps
    modules = Modules()
    numbers, addresses, expected = [], [], []
    for ip, symbol, offset, file in set(
        re.findall(r"^\s+([0-9a-f]+) (.*)\+0x([0-9a-f]+) \((/.*)\)$", output, re.MULTILINE)
    ):
        number, address = modules.file(file), int(ip, 16)
        for start, size, page_offset, path in maps:
            if path == file and int(start, 16) <= address < int(start, 16) + int(size, 16):
                address = (address - modules[number].bias(int(start, 16), int(page_offset, 16))) % 2**64
        numbers.append(number)
        addresses.append(address)
        # Some perfs show the versions of symbols.
        expected.append((symbol.partition("@")[0], int(offset, 16)))
    found = Names(modules).find(np.array(numbers), np.array(addresses, np.uint64))
    mine = list(zip(found.symbol, found.offset.tolist(), strict=True))
    # Of several names of one address perf may choose another.
    assert {name for name, _ in expected} >= {"main", "work", "ns::Box<long>::spin"}
    differing = [(ours, theirs) for ours, theirs in zip(mine, expected, strict=True) if ours != theirs]
    assert [one for one in differing if one[0][1] != one[1][1]] == []
    assert len(differing) <= 2
