"""Lines and inlined calls of programs that the host's compiler builds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from walkback.debuginfo import DebugLines
from walkback.elf import ElfFile, FileSearch
from walkback.symbols import SymbolIndex

pytestmark = pytest.mark.kernel

SOURCE = """\
#define INLINE static inline __attribute__((always_inline))
INLINE int inner(volatile int *x) {
    return *x * 3;
}
INLINE int middle(volatile int *x) {
    int y = inner(x);
    return y + 1;
}
__attribute__((noinline)) int outer(volatile int *x) {
    return middle(x) + 1;
}
int main(int argc, char **argv) { return outer(&argc); }
"""
LINES_OF_OUTER = {3, 6, 7, 9, 10, 11}
DEEPEST = [(3, "inner"), (6, "middle"), (10, "outer")]
FORMS = [
    *(["-gdwarf-2"], ["-gdwarf-3"], ["-gdwarf-4"], ["-gdwarf-5"], ["-g1"], ["-g", "-gz"]),
    *(["-gdwarf-4", "-gsplit-dwarf"], ["-gdwarf-5", "-gsplit-dwarf"], ["-g", "-fdebug-types-section"]),
    ["-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"],
    *(["-g", "-gdwarf64"], ["-g", "-flto"], ["-g", "-ffunction-sections", "-Wl,--gc-sections"]),
]


def built(folder: Path, *options: str, name: str = "a.c") -> Path:
    (folder / name).write_text(SOURCE)
    command = ["gcc", "-O1", "-fno-ipa-icf", "-Wl,--build-id", *(options or ("-g",)), name, "-o", "prog"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "prog"


def code_of(elf: ElfFile, name: str = "outer") -> np.ndarray:
    ((_, start),) = SymbolIndex(elf).lookup(name)
    table = elf.symbols(elf.sections_of_type(2)[0])
    (size,) = table["size"][(table["value"] == start) & (table["size"] > 0)]
    return np.arange(start, start + int(size), dtype=np.uint64)


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_each_form_has_lines_and_inlined_calls(tmp_path: Path, form: list[str]) -> None:
    elf = ElfFile(built(tmp_path, *form))
    found = DebugLines(elf).find(code_of(elf))
    assert all(found)
    assert {Path(line.file or "").name for lines in found for line in lines} == {"a.c"}
    assert {line.line for lines in found for line in lines} <= LINES_OF_OUTER
    assert {lines[-1].function for lines in found} == {"outer"}
    assert DEEPEST in [[(line.line, line.function) for line in lines] for lines in found]


def test_paths_begin_with_the_folder_of_the_compiler(tmp_path: Path) -> None:
    elf = ElfFile(built(tmp_path))
    (lines,) = DebugLines(elf).find(code_of(elf)[:1])
    assert lines[0].file == str(tmp_path / "a.c")


def test_many_addresses_in_any_order_have_each_their_own(tmp_path: Path) -> None:
    elf = ElfFile(built(tmp_path))
    asked = code_of(elf)
    lines = DebugLines(elf)
    found = lines.find(asked)
    order = np.random.default_rng(1).integers(0, len(asked), 200)
    assert lines.find(asked[order]) == [found[number] for number in order.tolist()]
    assert lines.find(np.array([0, 1, 2**64 - 1], np.uint64)) == [(), (), ()]
    assert lines.find(asked[:0]) == []


def test_the_separate_debug_file(tmp_path: Path) -> None:
    prog = built(tmp_path)
    elf = ElfFile(prog)
    asked = code_of(elf)
    expected = DebugLines(elf).find(asked)
    build_id = elf.build_id.hex()
    place = tmp_path / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", prog, place], check=True)
    subprocess.run(["strip", prog, "-o", tmp_path / "bare"], check=True)
    bare = ElfFile(tmp_path / "bare")
    assert DebugLines(bare).find(asked) == [()] * len(asked)
    assert DebugLines(bare, FileSearch(debug_roots=[tmp_path / "root"])).find(asked) == expected
    assert all(expected)


def test_split_units_that_are_nowhere_are_named_and_lines_are_there(tmp_path: Path) -> None:
    elf = ElfFile(built(tmp_path, "-g", "-gsplit-dwarf"))
    (part,) = tmp_path.glob("*.dwo")
    part.unlink()
    lines = DebugLines(elf)
    assert lines.missing == []
    found = lines.find(code_of(elf))
    assert lines.missing == [part.name]
    assert lines.trouble == f"no inlined calls: {part.name} is not there"
    assert all(found)
    assert {line.line for lines in found for line in lines} <= LINES_OF_OUTER


def test_split_units_of_another_build_are_not_believed(tmp_path: Path) -> None:
    elf = ElfFile(built(tmp_path, "-g", "-gsplit-dwarf"))
    (part,) = tmp_path.glob("*.dwo")
    source = tmp_path / "other.c"
    source.write_text("int outer(void) { return 1; }\n")
    subprocess.run(["gcc", "-g", "-gsplit-dwarf", "-c", source, "-o", tmp_path / "other.o"], check=True)
    (tmp_path / "other.dwo").replace(part)
    lines = DebugLines(elf)
    lines.find(code_of(elf))
    assert lines.missing == [part.name]
    assert lines.trouble == f"no inlined calls: {part.name} is of another build"
    part.write_bytes(b"garbage")
    lines = DebugLines(elf)
    lines.find(code_of(elf))
    assert lines.trouble == f"no inlined calls: {part.name} cannot be read"


def test_split_units_that_moved_with_the_program(tmp_path: Path) -> None:
    elf = ElfFile(built(tmp_path, "-g", "-gsplit-dwarf"))
    expected = DebugLines(elf).find(code_of(elf))
    away = tmp_path / "away"
    away.mkdir()
    for path in (tmp_path / "prog", *tmp_path.glob("*.dwo")):
        path.replace(away / path.name)
    lines = DebugLines(ElfFile(away / "prog"))
    assert lines.find(code_of(elf)) == expected
    assert not lines.missing


@pytest.mark.skipif(not shutil.which("dwp"), reason="needs dwp")
def test_split_units_in_a_package(tmp_path: Path) -> None:
    prog = built(tmp_path, "-gdwarf-4", "-gsplit-dwarf")
    elf = ElfFile(prog)
    expected = DebugLines(elf).find(code_of(elf))
    subprocess.run(["dwp", "-e", prog, "-o", f"{prog}.dwp"], cwd=tmp_path, check=True)
    for path in tmp_path.glob("*.dwo"):
        path.unlink()
    lines = DebugLines(ElfFile(prog))
    assert lines.find(code_of(elf)) == expected
    assert not lines.missing


@pytest.mark.parametrize("damage", ["empty", "cut", "header"])
def test_a_package_that_cannot_be_read_is_named_if_nothing_else_has_the_units(tmp_path: Path, damage: str) -> None:
    prog = built(tmp_path, "-g", "-gsplit-dwarf")
    elf = ElfFile(prog)
    expected = DebugLines(elf).find(code_of(elf))
    (part,) = tmp_path.glob("*.dwo")
    data = bytearray(part.read_bytes())
    if damage == "header":  # its sections are nowhere
        data[0x28:0x30] = (1 << 40).to_bytes(8, "little")
    package = tmp_path / "prog.dwp"
    package.write_bytes({"empty": b"", "cut": bytes(data[:200]), "header": bytes(data)}[damage])
    lines = DebugLines(elf)
    assert (lines.find(code_of(elf)), lines.trouble) == (expected, None)
    part.unlink()
    lines = DebugLines(elf)
    assert all(lines.find(code_of(elf)))
    assert lines.trouble == f"no inlined calls: {package} cannot be read"


def test_where_dwz_moved_the_rest_may_be_damaged(tmp_path: Path) -> None:
    prog = built(tmp_path)
    (tmp_path / "link").write_bytes(b"other\0identifier")
    subprocess.run(["objcopy", "--add-section", f".gnu_debugaltlink={tmp_path / 'link'}", prog], check=True)
    data = bytearray(prog.read_bytes())
    elf = ElfFile(bytes(data))
    (index,) = elf.sections_named(".gnu_debugaltlink")
    header = int.from_bytes(data[0x28:0x30], "little") + 64 * index
    data[header + 24 : header + 32] = (1 << 40).to_bytes(8, "little")
    lines = DebugLines(ElfFile(bytes(data)))
    assert all(lines.find(code_of(elf)))
    assert "where dwz moved some of it is not known: " in (lines.trouble or "")


@pytest.mark.parametrize("name", ["0x12 34\n0x0.c", "-e.c", "a:7.c", "\udcff\"'.c", "?? (discriminator 2).c"])
def test_odd_names_of_sources(tmp_path: Path, name: str) -> None:
    source = tmp_path / "in" / name
    source.parent.mkdir()
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-c", f"./{name}", "-o", tmp_path / "a.o"], cwd=source.parent, check=True)
    subprocess.run(["gcc", tmp_path / "a.o", "-o", tmp_path / "prog"], check=True)
    elf = ElfFile(tmp_path / "prog")
    found = DebugLines(elf).find(code_of(elf))
    assert {Path(line.file or "").name for lines in found for line in lines} == {name}


def test_files_without_debugging_information_have_no_lines() -> None:
    elf = ElfFile("/proc/self/exe")
    image = ElfFile(elf.data, "[vdso]")
    assert DebugLines(image).find(np.array([0x1000], np.uint64)) == [()]
