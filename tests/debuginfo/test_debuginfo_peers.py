"""Lines and inlined calls against LLVM's and GNU's programs, of what several compilers build for three machines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from debuginfo.linedprograms import CXX, FORMS, FORTRAN_SOURCE, C, built, clang, rust
from debuginfo.symbolizers import addr2line, gdb, llvm_symbolizer, plain, some_code
from peers import have, peer
from walkback.debuginfo import DebugLines
from walkback.elf import ElfFile
from walkback.symbols.demangle import without_parameters

if TYPE_CHECKING:
    from walkback.symbols.sourceline import SourceLine

FORTRAN = next(filter(None, map(shutil.which, ("gfortran", "gfortran-12"))), "")
pytestmark = pytest.mark.peers


def compared(path: Path, theirs: list[tuple[SourceLine, ...]], asked: np.ndarray) -> int:
    """Holds answers against those of another program; returns how many calls were inlined."""
    mine = DebugLines(ElfFile(path)).find(asked)
    for address, own, other in zip(asked.tolist(), mine, theirs, strict=True):
        is_known = len(own) > 1 or any(line.line for line in own)
        ours, its = plain(own if is_known else ()), plain(other)
        assert [one[:2] for one in ours] == [one[:2] for one in its], hex(address)
        # Where there is no symbol's name, others leave out the namespace.
        assert all(a[2] == b[2] or a[2].endswith(f"::{b[2]}") for a, b in zip(ours, its, strict=True)), hex(address)
    return sum(len(lines) - 1 for lines in mine if lines)


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
@pytest.mark.parametrize(("compiler", "source", "name"), [("gcc", C, "a.c"), ("g++", CXX, "a.cc")], ids=["C", "C++"])
def test_gcc(tmp_path: Path, compiler: str, source: str, name: str, form: tuple[str, ...]) -> None:
    path = built(tmp_path, compiler, *form, source=source, name=name)
    asked = some_code(ElfFile(path), 2000)
    assert compared(path, llvm_symbolizer(peer("llvm-symbolizer"), path, asked), asked) > 50


def test_namespaces_and_types_are_in_names_that_no_symbol_has(tmp_path: Path) -> None:
    path = built(tmp_path, "g++", "-gdwarf-5", source=CXX, name="a.cc")
    elf = ElfFile(path)
    found = DebugLines(elf).find(some_code(elf, 5000))
    names = {line.function for lines in found for line in lines}
    assert {"outer::(anonymous namespace)::square", "outer::(anonymous namespace)::total"} <= names


LAMBDAS = """
#include <algorithm>
#include <vector>
struct Left { template <class F> int each(F f) { int n = 0; for (int i = 0; i < 99; i++) n += f(i); return n; } };
__attribute__((noinline)) int encode(std::vector<int> &v) {
  std::for_each(v.begin(), v.end(), [&](int &x) { for (int i = 0; i < 99; i++) x = x * 3 + i; });
  return v[0];
}
__attribute__((noinline)) int decode(std::vector<int> &v) { return Left().each([&](int i) { return v[i % 9] ^ i; }); }
int main() { std::vector<int> v(1000, 1); return encode(v) + decode(v); }
"""


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_lambdas_are_named_by_the_function_that_has_them(tmp_path: Path, form: tuple[str, ...]) -> None:
    elf = ElfFile(built(tmp_path, "g++", *form, source=LAMBDAS, name="a.cc"))
    found = DebugLines(elf).find(some_code(elf, 5000))
    names = {line.function for lines in found for line in lines}
    assert {"encode::{lambda}::operator()", "decode::{lambda}::operator()"} <= names


@pytest.mark.parametrize("program", ["addr2line-2.40", "addr2line-new"])
@pytest.mark.parametrize("form", [("-gdwarf-3",), ("-gdwarf-4",), ("-gdwarf-5",)], ids=" ".join)
def test_addr2line(tmp_path: Path, form: tuple[str, ...], program: str) -> None:
    """Of C, as it gives inlined calls in C++ the names of others, and reads neither split units nor those of types."""
    path = built(tmp_path, "gcc", *form)
    asked = some_code(ElfFile(path), 2000)
    assert compared(path, addr2line(peer(program), path, asked), asked) > 50


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_gdb_has_the_same_functions(tmp_path: Path, form: tuple[str, ...]) -> None:
    """Also the outermost ones, of which LLVM has the symbol, and with their namespaces."""
    path = built(tmp_path, "g++", *form, source=CXX, name="a.cc")
    asked = some_code(ElfFile(path), 2000)
    theirs = gdb(peer("gdb"), path, asked)
    found = [
        [line.function or "" for line in lines if line.function] for lines in DebugLines(ElfFile(path)).find(asked)
    ]
    shown = [[without_parameters(line.function or "") for line in lines] for lines in theirs]
    assert [[without_parameters(name) for name in names] for names in found] == shown
    assert sum(len(names) - 1 for names in found if names) > 50


@pytest.mark.skipif(not FORTRAN, reason="needs gfortran")
@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_fortran(tmp_path: Path, form: tuple[str, ...]) -> None:
    """Functions of modules, and one in another function."""
    path = built(tmp_path, FORTRAN, *form, source=FORTRAN_SOURCE, name="a.f90")
    asked = some_code(ElfFile(path), 2000)
    assert compared(path, llvm_symbolizer(peer("llvm-symbolizer"), path, asked), asked) > 50


@pytest.mark.parametrize("form", [one for one in FORMS if "-flto" not in one], ids=" ".join)
def test_clang(tmp_path: Path, form: tuple[str, ...]) -> None:
    path = clang(tmp_path, *form)
    asked = some_code(ElfFile(path), 2000)
    assert compared(path, llvm_symbolizer(peer("llvm-symbolizer"), path, asked), asked) > 30


@pytest.mark.parametrize("machine", ["aarch64", "s390x"])
@pytest.mark.parametrize("form", [("-gdwarf-4",), ("-gdwarf-5",)], ids=" ".join)
def test_other_machines(tmp_path: Path, machine: str, form: tuple[str, ...]) -> None:
    """There are no headers and libraries for them."""
    own = "\n".join(line for line in C.splitlines() if not line.startswith("#include"))
    declared = "void *malloc(unsigned long); int printf(const char *, ...); void abort(void);\n"
    declared += "void qsort(void *, unsigned long, unsigned long, int (*)(const void *, const void *));\n"
    (tmp_path / "a.c").write_text(declared + own.replace('fprintf(stderr, "too many\\n"); ', ""))
    for command in (
        [peer(f"{machine}-gcc"), "-O2", *form, "-S", "a.c", "-o", "a.s"],
        [peer(f"{machine}-as-2.40"), "a.s", "-o", "a.o"],
        [peer(f"{machine}-ld-2.40"), "-e", "main", "--unresolved-symbols=ignore-all", "a.o", "-o", "prog"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    path = tmp_path / "prog"
    asked = some_code(ElfFile(path), 2000)
    assert compared(path, llvm_symbolizer(peer("llvm-symbolizer"), path, asked), asked) > 50


def test_rust(tmp_path: Path) -> None:
    path = rust(tmp_path)
    asked = some_code(ElfFile(path), 5000)
    assert compared(path, llvm_symbolizer(peer("llvm-symbolizer"), path, asked), asked) > 2000


@pytest.mark.parametrize("version", ["4", "5"])
def test_what_dwz_moved_is_found(tmp_path: Path, version: str) -> None:
    dwz = peer("dwz")
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(built(tmp_path / name, "g++", f"-gdwarf-{version}", source=CXX, name="a.cc"))
    asked = some_code(ElfFile(paths[0]), 2000)
    before = DebugLines(ElfFile(paths[0])).find(asked)
    command = [dwz, "-5"] if version == "5" else [dwz]
    done = subprocess.run([*command, "-m", tmp_path / "common", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    elf = ElfFile(paths[0])
    assert {".gnu_debugaltlink", ".debug_sup"} & set(elf.section_names())
    after = DebugLines(elf).find(asked)
    assert [[line[:2] for line in lines] for lines in after] == [[line[:2] for line in lines] for lines in before]
    named = [[line.function for line in lines] for lines in after]
    assert named == [[line.function for line in lines] for lines in before]
    (tmp_path / "common").unlink()
    reader = DebugLines(ElfFile(paths[0]))
    assert reader.trouble is None
    lost = reader.find(asked)
    assert [lines[-1].line for lines in lost if lines] == [lines[-1].line for lines in before if lines]
    assert all(line.function for lines in lost for line in lines[:-1])
    assert sum(map(len, lost)) < sum(map(len, before))
    assert reader.trouble == f"no inlined calls: {tmp_path / 'common'} is not there"


@pytest.mark.skipif(not shutil.which("dwp"), reason="needs dwp")
def test_a_package_of_many_units(tmp_path: Path) -> None:
    if not have("llvm-symbolizer"):
        peer("llvm-symbolizer")
    (tmp_path / "a.cc").write_text(CXX)
    (tmp_path / "b.c").write_text(C.replace("int main", "int other"))
    for name, compiler in (("a.cc", "g++"), ("b.c", "gcc")):
        options = ["-O2", "-gdwarf-4", "-gsplit-dwarf", "-c", name]
        subprocess.run([compiler, *options], cwd=tmp_path, check=True)
    subprocess.run(["g++", "a.o", "b.o", "-o", "prog"], cwd=tmp_path, check=True)
    path = tmp_path / "prog"
    asked = some_code(ElfFile(path), 2000)
    theirs = llvm_symbolizer(peer("llvm-symbolizer"), path, asked)
    subprocess.run(["dwp", "-e", "prog", "-o", "prog.dwp"], cwd=tmp_path, check=True)
    for part in tmp_path.glob("*.dwo"):
        part.unlink()
    assert compared(path, theirs, asked) > 30
