"""Who made a file: every kind of evidence, which of them wins, and real programs of many compilers."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elfbuilder import ElfBuilder
from identify.sampled import ARCHITECTURES, opened, sampled
from peers import run
from unitbuilder import DATA2, LANGUAGE, NAME, PRODUCER, SKELETON, STRING, TAG_SKELETON, UnitBuilder
from walkback.elf import ElfFile
from walkback.elf.search import debug_file
from walkback.identify.compilers import Compiler, known_compiler
from walkback.identify.producers import Origin, origin

GCC_LINE = "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
OLD_GCC_LINE = "GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)"
CLANG_LINE = "clang version 21.1.8 ( 21.1.8-1.module_el8.10.0+4172+b6b13d75)"
RUST_LINE = "rustc version 1.95.0 (59807616e 2026-04-14)"
LLD_LINE = "Linker: LLD 22.1.2 (/checkout/src/llvm-project/llvm 1cb4e3833c1919c2e6fb579a23ac0e2b22587b7e)"
GO_INFO = b"\xff Go buildinf:\x08\x02" + bytes(16) + b"\x08go1.24.4\x05more"
MAIN = "int g(int); int main(int a, char **b) { return g(a) + (b != 0); } int g(int a) { return a * 3; }\n"
LOOPS = (
    "int h(int, int); int k(int a, int b) { for (int i = 0; i < a; i++) if (h(a, b) > i) return h(b, i); return b; }\n"
)


# One kind of evidence after the other, in files that are made


def made(
    *comment: str,
    symbols: list[str] | tuple[Any, ...] = (),
    sections: list[tuple[str, bytes]] | tuple[Any, ...] = (),
    dynamic: bool = False,
    kind: int = 3,
) -> Origin:
    """What a file tells that has these entries in `.comment`, these names of functions, and these sections."""
    builder = ElfBuilder(kind=kind)
    text = builder.code()
    if comment:
        builder.section(".comment", b"".join(entry.encode() + b"\0" for entry in comment))
    if symbols:
        symtab = builder.symtab(".dynsym", 11) if dynamic else builder.symtab()
        for number, name in enumerate(symbols):
            undefined = name.startswith("?")
            builder.symbol(symtab, name.removeprefix("?"), 8 * number, section=0 if undefined else text, size=8)
    for name, data in sections:
        builder.section(name, data)
    return origin(ElfFile(bytes(builder.build()), "made"), ())


def test_nothing_tells_nothing() -> None:
    assert made() == Origin("unknown", None, None, (), "unknown", None)


@pytest.mark.parametrize(
    ("comment", "expected", "language"),
    [
        ([GCC_LINE], "GCC 12.2.0", "C"),
        ([OLD_GCC_LINE, GCC_LINE], "GCC 12.2.0", "C"),
        (["GCC: (x) 9.5.0", "GCC: (x) 10.2.1"], "GCC 10.2.1", "C"),
        ([GCC_LINE, CLANG_LINE], "Clang 21.1.8", "C"),
        ([CLANG_LINE, RUST_LINE, GCC_LINE], "rustc 1.95.0", "Rust"),
        ([GCC_LINE, "ldc version 1.40.0"], "LDC 1.40.0", "D"),
        (["$Id: x 1.2 $"], "unknown None", "unknown"),
    ],
)
def test_the_start_up_code_of_gcc_does_not_win(comment: list[str], expected: str, language: str) -> None:
    found = made(*comment, LLD_LINE)
    assert f"{found.producer} {found.version}" == expected
    assert (found.language, found.linker) == (language, "LLD 22.1.2")
    assert found.producers == tuple(sorted(str(one) for one in map(known_compiler, comment) if one))


@pytest.mark.parametrize(
    ("names", "language", "producer"),
    [
        (["_RNvCs1234_7mycrate3foo"], "Rust", "rustc"),
        (["_ZN4core3fmt17h0123456789abcdefE", "main"], "Rust", "rustc"),
        (["_ZN3foo3barEv", "_Znwm"], "C++", "unknown"),
        (["?__gxx_personality_v0"], "C++", "unknown"),
        (["_ZN4core3fmt17h0123456789abcdefE", "_ZN3a1bEv", "_ZN3a1cEv"], "C++", "unknown"),
        (["camlStdlib__Map.update_580"], "OCaml", "OCaml"),
        (["stg_upd_frame_info"], "Haskell", "GHC"),
        (["$s14_Builtin_float7FLT_MINSfvg"], "Swift", "Swift"),
        (["_D3std5stdio4File6rewindMFNfZv"], "D", "unknown"),
        (["?__gdc_personality_v0"], "D", "GCC"),
        (["?__gccgo_personality_v0"], "Go", "GCC"),
        (["?__gnat_rcheck_CE_Range_Check"], "Ada", "GCC"),
        (["?__gnu_objc_personality_v0"], "Objective-C", "unknown"),
        (["__crystal_malloc"], "Crystal", "Crystal"),
        (["?_gfortran_st_write"], "Fortran", "unknown"),
        # What only stands beside such names.
        (["_gfortran_st_write"], "unknown", "unknown"),
        (["caml_copy_string", "_REGISTER", "main", "_D", "gnat", "?dgemm_"], "unknown", "unknown"),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True], ids=["symtab", "dynsym"])
def test_names_of_symbols_tell_languages(dynamic: bool, names: list[str], language: str, producer: str) -> None:
    found = made(symbols=names, dynamic=dynamic)
    assert (found.language, found.producer) == (language, producer)
    assert found.evidence == ("symbols" if producer != "unknown" else None)


def test_names_as_fortran_has_them_leave_the_language_open() -> None:
    fortran = [f"dg{letter}mm_" for letter in "abcdefghij"]
    assert made(GCC_LINE, symbols=fortran).language == "unknown"
    assert made(GCC_LINE, symbols=[f"?{name}" for name in fortran]).language == "C"
    # Libraries of C offer theirs under both names.
    assert made(GCC_LINE, symbols=[*fortran, *(name.rstrip("_") for name in fortran)]).language == "C"


def test_a_language_by_its_symbols_wins_over_the_compilers_of_its_run_time_library() -> None:
    found = made(GCC_LINE, symbols=["camlDune__exe__Main.entry"])
    assert (found.producer, found.version, found.evidence) == ("OCaml", None, "symbols")
    assert found.producers == ("GCC 12.2.0", "OCaml")
    found = made(GCC_LINE, symbols=["?__gnat_rcheck_CE_Range_Check"])
    assert (found.producer, found.version, found.evidence, found.language) == ("GCC", "12.2.0", ".comment", "Ada")


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        (".go.buildinfo", GO_INFO, Origin("Go", "1.24.4", ".go.buildinfo", ("Go 1.24.4",), "Go", "Go")),
        (".go.buildinfo", GO_INFO[:40], Origin("Go", None, ".go.buildinfo", ("Go",), "Go", "Go")),
        (
            ".go.buildinfo",
            GO_INFO.replace(b"\x08\x02", b"\x08\x00"),
            Origin("Go", None, ".go.buildinfo", ("Go",), "Go", "Go"),
        ),
        (".note.go.buildid", b"", Origin("Go", None, ".note.go.buildid", ("Go",), "Go", "Go")),
        (".gopclntab", b"", Origin("Go", None, ".gopclntab", ("Go",), "Go", "Go")),
        ("__minfo", b"", Origin("unknown", None, None, (), "D", None)),
        (
            ".fpcdata",
            b"FPC 3.2.2+dfsg-22 [2023/09/04] for x86_64 - Linux\0",
            Origin("Free Pascal", "3.2.2", "sections", ("Free Pascal 3.2.2",), "Pascal", None),
        ),
        (".fpcdata", b"\xff", Origin("unknown", None, None, (), "unknown", None)),
        ("swift5_typeref", b"", Origin("Swift", None, "sections", ("Swift",), "Swift", None)),
        (
            ".debug_gdb_scripts",
            b"\1gdb_load_rust_pretty_printers.py\0",
            Origin("rustc", None, "sections", ("rustc",), "Rust", None),
        ),
        (".debug_gdb_scripts", b"\1/usr/share/another.py\0", Origin("unknown", None, None, (), "unknown", None)),
        (
            ".rodata",
            b"at /usr/src/rustc-1.85.0/library/core/src/lib.rs",
            Origin("rustc", "1.85.0", "strings", ("rustc 1.85.0",), "Rust", None),
        ),
        (
            ".rodata",
            b"/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std",
            Origin("rustc", None, "strings", ("rustc",), "Rust", None),
        ),
        (
            ".rodata",
            b"/usr/lib/s390x-linux-ghc-9.6.6/base",
            Origin("GHC", "9.6.6", "strings", ("GHC 9.6.6",), "Haskell", None),
        ),
        (".rodata", b"(GHC version %s for %s)", Origin("GHC", None, "strings", ("GHC",), "Haskell", None)),
        (".rodata", b"rustc and ghc are compilers", Origin("unknown", None, None, (), "unknown", None)),
        (
            ".note.gnu.gold-version",
            b"\4\0\0\0\x09\0\0\0\4\0\0\0GNU\0gold 1.16\0\0\0",
            Origin("unknown", None, None, (), "unknown", "gold 1.16"),
        ),
    ],
)
def test_sections_and_what_run_time_libraries_say_tell(name: str, data: bytes, expected: Origin) -> None:
    assert made(sections=[(name, data)]) == expected


def test_the_version_of_a_compiler_is_taken_from_its_run_time_library() -> None:
    library = (".rodata", b"at /build/rustc-1.83.0-src/library/core/src/lib.rs")
    found = made(GCC_LINE, symbols=["_RNvCs1234_7mycrate3foo"], sections=[library])
    assert (found.producer, found.version, found.evidence) == ("rustc", "1.83.0", "symbols")


# What compilers on this machine, and those that are brought, really make


def compiled(tmp_path: Path, *arguments: str) -> None:
    subprocess.run(arguments, cwd=tmp_path, check=True)


def of(path: Path, debug: bool = False) -> Origin:
    elf, sources = opened(path)
    return origin(elf, sources, debug_file(elf) if debug else None)


def gcc_version() -> str:
    done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(("compiler", "name", "language"), [("gcc", "a.c", "C"), ("g++", "a.cc", "C++")])
def test_programs_of_gcc_tell_by_what_is_left_in_them(compiler: str, name: str, language: str, tmp_path: Path) -> None:
    more = "void *operator new(unsigned long);\nvoid *n() { return new int; }\n" if name == "a.cc" else ""
    (tmp_path / name).write_text(MAIN + 'extern "C" int puts(const char *);\n' * bool(more) + more)
    compiled(tmp_path, compiler, "-g", name, "-o", "a")
    told = ("GCC", gcc_version())
    found = of(tmp_path / "a")
    assert (found.producer, found.version, found.evidence, found.language) == (*told, "DW_AT_producer", language)
    compiled(tmp_path, "strip", "-g", "a", "-o", "b")
    found = of(tmp_path / "b")
    assert (found.producer, found.version, found.evidence, found.language) == (*told, ".comment", language)
    assert found.linker is None


def test_a_stripped_file_tells_by_its_style_and_its_debug_file_by_more(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("".join(LOOPS.replace("k(", f"k{number}(") for number in range(4)))
    compiled(tmp_path, "gcc", "-O2", "-g", "-shared", "-fPIC", "-Wl,--build-id=sha1", "a.c", "-o", "a.so")
    compiled(tmp_path, "objcopy", "--only-keep-debug", "a.so", "a.debug")
    compiled(tmp_path, "strip", "-R", ".comment", "-R", ".note.gnu.build-id", "a.so", "-o", "b.so")
    assert of(tmp_path / "b.so") == Origin("GCC", None, "frames", ("GCC",), "C", None)
    elf, sources = opened(tmp_path / "b.so")
    found = origin(elf, sources, ElfFile(tmp_path / "a.debug"))
    assert (found.producer, found.version, found.evidence, found.language) == (
        "GCC",
        gcc_version(),
        "DW_AT_producer",
        "C",
    )
    compiled(
        tmp_path, "strip", "-g", "a.debug", "-o", "c.debug"
    )  # as if all but the symbols and notes had been left out
    found = origin(elf, sources, ElfFile(tmp_path / "c.debug"))
    assert (found.producer, found.version, found.evidence) == ("GCC", gcc_version(), ".comment")


def test_hand_written_units_do_not_count_beside_compiled_ones(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(MAIN)
    for number in range(3):
        (tmp_path / f"s{number}.s").write_text(f".text\n.globl s{number}\ns{number}: ret\n")
    compiled(tmp_path, "gcc", "-g", "a.c", *(f"s{number}.s" for number in range(3)), "-o", "a")
    found = of(tmp_path / "a")
    assert (found.producer, found.language) == ("GCC", "C")
    assert any(one.startswith("GNU as ") for one in found.producers)
    compiled(tmp_path, "gcc", "-g", "-c", "s0.s", "-o", "s.o")
    found = of(tmp_path / "s.o")
    assert (found.producer, found.evidence, found.language) == ("GNU as", "DW_AT_producer", "Assembly")
    compiled(tmp_path, "as", "s0.s", "-o", "s.o")
    assert of(tmp_path / "s.o").producer == "unknown"


def test_units_of_gcc_in_start_up_code_do_not_hide_another_compiler(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(MAIN)
    compiled(tmp_path, "gcc", "-g", "-c", "a.c")
    (tmp_path / "b.s").write_text(f'.ident "{CLANG_LINE}"\n')
    compiled(tmp_path, "as", "b.s", "-o", "b.o")
    compiled(tmp_path, "ld", "-r", "a.o", "b.o", "-o", "both.o")
    found = of(tmp_path / "both.o")
    assert (found.producer, found.version, found.evidence) == ("Clang", "21.1.8", ".comment")
    assert found.producers == ("Clang 21.1.8", f"GCC {gcc_version()}")
    many = [f"a{number}.o" for number in range(10)]
    for name in many:
        (tmp_path / "c.c").write_text(f"int {name[:-2]};\n")
        compiled(tmp_path, "gcc", "-g", "-c", "c.c", "-o", name)
    compiled(tmp_path, "ld", "-r", *many, "b.o", "-o", "all.o")
    assert of(tmp_path / "all.o").producer == "GCC"


def test_the_language_is_that_of_most_units_that_say_one() -> None:
    builder = UnitBuilder()
    for count, producer, language in (
        (4, "GNU AS 2.40", b"\x01\x80"),
        (3, "GNU C++17 12.2.0 -O2", b"\xff\x0f"),  # a language that is not known
        (2, "clang version 17.0.0", b"\x04\0"),
        (1, "GNU C17 12.2.0", b"\x0c\0"),
    ):
        for _ in range(count):
            attributes = [(PRODUCER, STRING, producer.encode() + b"\0"), (LANGUAGE, DATA2, language)]
            builder.unit(4, attributes)
    builder.unit(5, [(NAME, STRING, b"x.dwo\0")], kind=SKELETON, tag=TAG_SKELETON)
    found = origin(ElfFile(bytes(builder.image()), "made"), ())
    assert found == Origin(
        "GCC", "12.2.0", "DW_AT_producer", ("Clang 17.0.0", "GCC 12.2.0", "GNU as 2.40"), "C++", None
    )


@pytest.mark.peers
def test_linkers_leave_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(MAIN)
    compiled(tmp_path, "gcc", "-c", "a.c")
    for name, expected in (
        *(("ld.lld", "LLD "), ("gold-2.40", "gold 1.16"), ("gold-2.44", "gold 1.16"), ("mold", "mold ")),
        *(("ld-2.40", None), ("ld-2.44", None), ("ld-new", None)),
    ):
        machine = ["-m", "elf_x86_64"] if name == "mold" else []
        run(name, *machine, "-shared", "a.o", "-o", "a.so", cwd=tmp_path, check=True)
        found = of(tmp_path / "a.so").linker
        assert found == expected or (expected and found and re.fullmatch(rf"{expected}\d+\.\d+(\.\d+)?", found)), name


@pytest.mark.peers
@pytest.mark.parametrize(
    ("pattern", "architectures", "expected"),
    [
        ("usr/bin/hello", ("amd64",), ("GCC", None, "frames", "C")),
        ("usr/bin/gperf", ARCHITECTURES, ("GCC", None, "frames", "C++")),
        ("usr/bin/hexyl", ARCHITECTURES, ("rustc", r"1\.\d+\.\d+", "sections", "Rust")),
        ("usr/lib/llvm-*/lib/libunwind.so.*", ("amd64", "arm64"), ("LLVM", None, "frames", None)),
        ("usr/lib/llvm-*/lib/libc++.so.*", ("s390x",), ("LLVM", None, "frames", "C++")),
        ("usr/bin/age", ("amd64",), ("Go", r"1\.\d+(\.\d+)?", ".go.buildinfo", "Go")),
        ("usr/bin/cppo", ("amd64",), ("OCaml", None, "symbols", "OCaml")),
        ("usr/bin/alex", ("amd64",), ("GHC", r"9\.\d+\.\d+", "strings", "Haskell")),
        ("usr/bin/dub", ("amd64",), ("LLVM", None, "frames", "D")),
        ("usr/bin/ddrescueview", ("amd64",), ("Free Pascal", r"3\.\d+\.\d+", "sections", "Pascal")),
        ("usr/lib/x86_64-linux-gnu/blas/libblas.so.3.*", ("amd64",), ("GCC", None, "frames", "unknown")),
    ],
)
def test_programs_of_a_distribution_are_known_without_their_comments(
    pattern: str, architectures: tuple[str, ...], expected: tuple[str, str | None, str, str | None]
) -> None:
    producer, version, evidence, language = expected
    for architecture in architectures:
        found = of(sampled(architecture, pattern))
        assert (found.producer, found.evidence) == (producer, evidence)
        assert found.version is None if version is None else re.fullmatch(version, found.version or "")
        assert language in {None, found.language}
        assert found.producers == (str(Compiler(producer, found.version)),)


@pytest.mark.parametrize("options", [[], ["-C", "strip=symbols"], ["-g"]], ids=["plain", "stripped", "debug"])
def test_programs_of_rust_are_of_rust(options: list[str], tmp_path: Path) -> None:
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("needs rustc")
    (tmp_path / "a.rs").write_text('fn main() { println!("{}", std::env::args().count()); }\n')
    compiled(tmp_path, rustc, *options, "a.rs")
    done = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=True)
    found = of(tmp_path / "a")
    assert (found.producer, found.language) == ("rustc", "Rust")
    assert done.stdout.startswith(f"rustc {found.version}")


@pytest.mark.parametrize("architecture", ["amd64", "arm64", "s390x"])
@pytest.mark.parametrize("flags", ["", "-s -w", "-s -w -buildid="], ids=["plain", "stripped", "bare"])
def test_programs_of_go_are_of_go(
    flags: str, architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go")
    # A package without imports needs little of the standard library compiled.
    (tmp_path / "a.go").write_text('package main\n\nfunc main() { println("hi") }\n')
    for name, value in (("GOARCH", architecture), ("CGO_ENABLED", "0"), ("GO111MODULE", "off")):
        monkeypatch.setenv(name, value)
    compiled(tmp_path, go, "build", f"-ldflags={flags}", "-o", "a", "a.go")
    found = of(tmp_path / "a")
    assert (found.producer, found.language, found.linker) == ("Go", "Go", "Go")
    assert found.evidence == (".go.buildinfo" if flags else "DW_AT_producer")
    done = subprocess.run([go, "version"], capture_output=True, text=True, check=True)
    assert f"go{found.version} " in done.stdout


# What is hostile


def test_damaged_files_tell_what_they_can_and_never_raise(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("struct S { virtual ~S(); };\nS *f() { return new S; }\n" + LOOPS)
    compiled(tmp_path, "g++", "-O2", "-g", "-shared", "-fPIC", "a.cc", "-o", "a.so")
    builder = ElfBuilder(kind=3)
    symtab = builder.symtab()
    for name in ("_gfortran_st_write", "dgemm_", "_ZN1aE"):
        builder.symbol(symtab, name, 0)
    builder.section(".go.buildinfo", GO_INFO)
    builder.section(".comment", GCC_LINE.encode())
    builder.section(".fpcdata", b"FPC 3.2.2")
    chance = random.Random(11)
    for data in ((tmp_path / "a.so").read_bytes(), bytes(builder.build())):
        elf, sources = ElfFile(data, "whole"), opened(tmp_path / "a.so")[1]
        for _ in range(400):
            damaged = bytearray(data)
            start = chance.choice((0x10, len(data) * 3 // 4, len(data) - 64 * len(elf.sections)))
            for _ in range(chance.randrange(1, 10)):
                damaged[chance.randrange(start, len(data))] = chance.randrange(256)
            damaged[:0x10] = data[:0x10]
            assert origin(ElfFile(bytes(damaged), "damaged"), sources).producer


def test_a_comment_without_end_names_a_bounded_number() -> None:
    found = made(*(f"GCC: (x) 1.{number}" for number in range(100_000)))
    assert found.producer == "GCC"
    assert len(found.producers) <= 32
