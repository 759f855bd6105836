"""Lines and inlined calls against LLVM's and GNU's programs, of what several compilers build for three machines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from debuginfo.symbolizers import addr2line, llvm_symbolizer, plain, some_code
from peers import have, peer
from walkback.debuginfo import DebugLines
from walkback.elf import ElfFile

if TYPE_CHECKING:
    from walkback.symbols.sourceline import SourceLine

C = """\
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#define INLINE static inline __attribute__((always_inline))
struct cell { int key; struct cell *next; };
INLINE int hash(const char *text) { int h = 7; while (*text) h = h * 31 + *text++; return h & 63; }
INLINE struct cell *put(struct cell **at, int key) {
    struct cell *one = malloc(sizeof *one);
    one->key = key; one->next = *at; *at = one;
    return one;
}
__attribute__((noinline)) int count(struct cell *one) { int n = 0; for (; one; one = one->next) n++; return n; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
    static struct cell *table[64];
    int keys[64], i;
    for (i = 0; i < argc; i++) put(&table[hash(argv[i])], i);
    for (i = 0; i < 64; i++) keys[i] = count(table[i]);
    qsort(keys, 64, sizeof *keys, compare);
    if (argc > 9) { fprintf(stderr, "too many\\n"); abort(); }
    return printf("%d\\n", keys[63]);
}
"""
CXX = """\
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace outer { namespace {
struct Cell { int value; int get() const { return value * 3; } };
inline int square(int x) { return x * x + 1; }
int total(std::vector<int> &all) { int sum = 0; for (auto x : all) sum += square(x); return sum; }
}
template <class T> T twice(T x) {
    auto made = [&](T y) { std::string text(y, 'a'); return T(text.size()) + x; };
    return made(x) + square(x);
}
}
int main(int argc, char **) {
    std::vector<int> all;
    std::map<std::string, int> names;
    for (int i = 0; i < argc * 100; i++) { all.push_back(outer::square(i) ^ argc); names[std::to_string(i)] = i; }
    std::sort(all.begin(), all.end());
    outer::Cell cell{argc};
    return outer::total(all) + outer::twice(argc) + cell.get() + int(names.size());
}
"""
RUST = """\
fn square(x: &i32) -> i32 { x * x }
fn main() {
    let all: Vec<i32> = (0..100).collect();
    let sum: i32 = all.iter().map(square).filter(|x| x % 3 == 0).sum();
    let text: String = all.iter().map(|x| x.to_string()).collect();
    println!("{} {}", sum, text);
}
"""
FORMS = [
    *(("-gdwarf-3",), ("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-4", "-gsplit-dwarf"), ("-gdwarf-5", "-gsplit-dwarf")),
    *(("-g", "-flto"), ("-g", "-fdebug-types-section"), ("-g", "-ffunction-sections", "-Wl,--gc-sections")),
]
pytestmark = pytest.mark.peers


def built(folder: Path, compiler: str, *options: str, source: str = C, name: str = "a.c") -> Path:
    (folder / name).write_text(source)
    subprocess.run([compiler, "-O2", *options, name, "-o", "prog"], cwd=folder, check=True, capture_output=True)
    return folder / "prog"


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


@pytest.mark.parametrize("program", ["addr2line-2.40", "addr2line-new"])
@pytest.mark.parametrize("form", [("-gdwarf-3",), ("-gdwarf-4",), ("-gdwarf-5",)], ids=" ".join)
def test_addr2line(tmp_path: Path, form: tuple[str, ...], program: str) -> None:
    """Of C, as it gives inlined calls in C++ the names of others, and reads neither split units nor those of types."""
    path = built(tmp_path, "gcc", *form)
    asked = some_code(ElfFile(path), 2000)
    assert compared(path, addr2line(peer(program), path, asked), asked) > 50


@pytest.mark.parametrize("form", [one for one in FORMS if "-flto" not in one], ids=" ".join)
def test_clang(tmp_path: Path, form: tuple[str, ...]) -> None:
    clang = peer("clang-19")
    (tmp_path / "a.c").write_text(C)
    headers = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, check=True, text=True)
    options = [one for one in form if not one.startswith("-Wl")]
    command = [clang, "-O2", *options, "-isystem", headers.stdout.strip(), "-c", "a.c", "-o", "a.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    path = tmp_path / "prog"
    subprocess.run(["gcc", tmp_path / "a.o", "-o", path], check=True)
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
    (tmp_path / "a.rs").write_text(RUST)
    rustc = [peer("rustc"), "-O", "-g", "a.rs", "-o", "prog"]
    subprocess.run(rustc, cwd=tmp_path, check=True, capture_output=True)
    path = tmp_path / "prog"
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
    lost = DebugLines(ElfFile(paths[0])).find(asked)
    assert [[line.line for line in lines] for lines in lost] == [[line.line for line in lines] for lines in before]
    assert None in {line.function for lines in lost for line in lines}


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
