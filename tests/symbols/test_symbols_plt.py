"""Entries of procedure linkage tables have the names that objdump gives them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from elfbuilder import ElfBuilder
from peers import have, peer, run
from walkback.elf import ElfFile
from walkback.symbols.plt import PltNames

CALLS = {
    "": "call a@plt\ncall b@plt\ncall *both@GOTPCREL(%rip)\ncall both\n",
    "aarch64-": "bl a\nbl b\nbl both\nadrp x0, :got:both\nldr x0, [x0, :got_lo12:both]\n",
    "s390x-": "brasl %r14,a@PLT\nbrasl %r14,b@PLT\nbrasl %r14,both@PLT\nlarl %r1,both@GOTENT\n",
}


def told(objdump: str, path: Path) -> dict[int, str]:
    done = subprocess.run([objdump, "-d", path], capture_output=True, text=True, check=True)
    return {int(at, 16): name for at, name in re.findall(r"^([0-9a-f]+) <(.*@plt)>:", done.stdout, re.MULTILINE)}


def agree(path: Path, objdump: str) -> int:
    """How many entries have the name that objdump says, which all have, from their first to their last byte."""
    elf = ElfFile(path)
    expected = told(objdump, path)
    start = np.array(sorted(expected), np.uint64)
    table = PltNames(elf)
    for away in (0, 3, 7):
        names, begins = table.locate(start + np.uint64(away))
        assert names == [expected[address] for address in start.tolist()]
        assert begins.tolist() == start.tolist()
    for section in (".plt", ".plt.sec", ".plt.got"):
        for index in elf.sections_named(section):
            begin, size = (int(elf.sections[field][index]) for field in ("addr", "size"))
            asked = np.arange(begin, begin + size, dtype=np.uint64)
            names, begins = table.locate(asked)
            found = {place: name for place, name in zip(begins.tolist(), names, strict=True) if name is not None}
            assert found.items() <= expected.items()
            before, _ = table.locate(np.array([begin - 1, begin + size], np.uint64))
            assert all(name is None or name in expected.values() for name in before)
    return len(expected)


@pytest.mark.peers
class TestObjdump:
    @pytest.mark.parametrize(
        ("machine", "options"),
        [
            *[(machine, options) for machine in CALLS for options in ((), ("-z", "now"))],
            ("", ("-z", "ibtplt")),
            ("aarch64-", ("-z", "force-bti")),
        ],
    )
    def test_shared_objects_of_gnu_ld(self, tmp_path: Path, machine: str, options: tuple[str, ...]) -> None:
        (tmp_path / "a.s").write_text(f".globl f\n.type f, %function\nf:\n{CALLS[machine]}.size f, .-f\n")
        run(f"{machine}as-2.44", "a.s", "-o", "a.o", cwd=tmp_path, check=True)
        run(f"{machine}ld-2.44", "-shared", *options, "a.o", "-o", "a.so", cwd=tmp_path, check=True)
        assert agree(tmp_path / "a.so", peer(f"{machine}objdump-2.44")) >= 2

    @pytest.mark.parametrize("linker", ["ld.lld", "mold", "gold-2.44"])
    def test_shared_objects_of_other_linkers(self, tmp_path: Path, linker: str) -> None:
        (tmp_path / "a.s").write_text(f".globl f\n.type f, %function\nf:\n{CALLS['']}.size f, .-f\n")
        run("as-2.44", "a.s", "-o", "a.o", cwd=tmp_path, check=True)
        run(linker, "-shared", "a.o", "-o", "a.so", cwd=tmp_path, check=True)
        names, _ = PltNames(ElfFile(tmp_path / "a.so")).locate(np.arange(0, 0x8000, dtype=np.uint64))
        assert {"a@plt", "b@plt"} <= set(names)
        if linker != "mold":  # whose entries objdump does not know
            agree(tmp_path / "a.so", peer("objdump-2.44"))

    @pytest.mark.parametrize("program", ["ls", "bash", "perl", "gcc"])
    def test_programs_of_this_machine(self, program: str) -> None:
        path = shutil.which(program)
        if path is None or not have("objdump-2.44"):
            pytest.skip(f"needs {program}")
        agree(Path(path), peer("objdump-2.44"))


class TestDamage:
    @pytest.mark.parametrize("machine", [62, 183, 22, 243])
    @pytest.mark.parametrize("size", [0, 1, 3, 5, 6, 7, 33, 4096])
    def test_any_bytes(self, machine: int, size: int) -> None:
        rng = np.random.default_rng(size)
        contents = rng.choice(np.array([0xFF, 0x25, 0xC0, 0x10, 0x90, 0x11, 0xF9, 0x42], np.uint8), size).tobytes()
        builder = ElfBuilder(kind=3, machine=machine)
        builder.section(".plt", contents, flags=6, addr=2**64 - 0x800, entsize=16)
        table = PltNames(ElfFile(bytes(builder.build()), "x"))
        assert table.locate(np.array([0, 1, 2**64 - 0x800], np.uint64))[0] == [None] * 3

    def test_a_damaged_relocation_section(self) -> None:
        builder = ElfBuilder(kind=3)
        plt = builder.section(".plt", b"\xff\x25\x02\x00\x00\x00" + bytes(10), flags=6, addr=0x1000, entsize=16)
        symtab = builder.symtab(".dynsym", 11)
        symbol = builder.symbol(symtab, "f", 0)
        entries = [(0x1008, 7, symbol, 0), (0x1008, 7, 99, 0)]
        number = builder.relocations(plt, symtab, entries, name=".rela.plt")
        builder.sections[number].fields["sh_flags"] = 2
        image = builder.build()
        asked = np.array([0xFFF, 0x1000, 0x100F, 0x1010], np.uint64)
        names, start = PltNames(ElfFile(bytes(image), "x")).locate(asked)
        assert names == [None, "f@plt", "f@plt", None]
        assert start.tolist() == [0, 0x1000, 0x1000, 0]
        image.section(number, "sh_entsize", 5)
        assert PltNames(ElfFile(bytes(image), "x")).locate(asked)[0] == [None] * 4
