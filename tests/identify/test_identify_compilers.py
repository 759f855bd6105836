"""Compilers and linkers by what they write of themselves."""

from __future__ import annotations

import pytest

from walkback.identify.compilers import compiler_of, known_compiler, linker_of

GCC_LINE = "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
OLD_GCC_LINE = "GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)"
LLD_LINE = "Linker: LLD 22.1.2 (/checkout/src/llvm-project/llvm 1cb4e3833c1919c2e6fb579a23ac0e2b22587b7e)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GNU C17 12.2.0 -mtune=generic -march=x86-64 -g", "GCC 12.2.0"),
        ("GNU C++14 7.3.0 -mtune=generic", "GCC 7.3.0"),
        ("GNU C 4.2.4 (Ubuntu 4.2.4-1ubuntu4)", "GCC 4.2.4"),
        ("GNU GIMPLE 12.2.0 -mtune=generic -fltrans", "GCC 12.2.0"),
        ("GNU Fortran2008 14.2.0 -mtune=generic", "GCC 14.2.0"),
        ("GNU Go 14.2.0 -fPIC", "GCC 14.2.0"),
        ("GNU AS 2.40", "GNU as 2.40"),
        ("GNU AS 2.18.0", "GNU as 2.18.0"),
        ("clang version 17.0.0", "Clang 17.0.0"),
        ("clang version 9.0.1-14 ", "Clang 9.0.1"),
        ("clang version google3-trunk (5d7e0a23c6f2051d4caf8f8c8821790c40b584be)", "Clang"),
        ("Debian clang version 19.1.7 (3)", "Clang 19.1.7"),
        ("Ubuntu clang version 3.4-1ubuntu3 (tags/RELEASE_34/final) (based on LLVM 3.4)", "Clang 3.4"),
        ("clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))", "rustc 1.95.0"),
        ("rustc version 1.97.0-nightly (e50aa6fba 2026-05-19)", "rustc 1.97.0"),
        ("Go cmd/compile go1.19.8; regabi", "Go 1.19.8"),
        ("Go cmd/compile devel go1.25-0a1b2c", "Go"),
        ("ldc version 1.40.0", "LDC 1.40.0"),
        ("llvm-mc (based on LLVM 23.1.4)", "llvm-mc 23.1.4"),
        ("NASM 2.16.01", "NASM 2.16.01"),
        ("yasm 1.3.0", "yasm 1.3.0"),
        ("Another (R) Compiler", None),
        ("Some Compiler, version 3.2 (of today)", "Some Compiler 3.2"),
        ("a name", None),
        ("", None),
        ("3.4", None),
        ("x" * 300 + " 1.2", None),
    ],
)
def test_compilers_are_known_by_what_they_write(text: str, expected: str | None) -> None:
    found = compiler_of(text)
    assert (str(found) if found else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GCC_LINE, "GCC 12.2.0"),
        (OLD_GCC_LINE, "GCC 4.8.5"),
        ("GCC: (crosstool-NG 1.26.0.108_7460d94) 14.2.0", "GCC 14.2.0"),
        ("GCC: (Gentoo 4.9.3 p1.2, pie-0.6.3) 4.9.3", "GCC 4.9.3"),
        ("GCC: (GNU) 7.3.0 (altstack) ", "GCC 7.3.0"),
        ("FPC 3.2.2+dfsg-22 [2023/09/04] for x86_64 - Linux", "Free Pascal 3.2.2"),
        ("$Id: some file.c,v 1.2 2003/01/02 $", None),
        ("@(#)tool 5.1", None),
    ],
)
def test_other_entries_of_the_comment_are_no_compilers(text: str, expected: str | None) -> None:
    found = known_compiler(text)
    assert (str(found) if found else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LLD_LINE, "LLD 22.1.2"),
        ("Linker: Debian LLD 23.1.4", "LLD 23.1.4"),
        ("mold 3.0.0 (compatible with GNU ld)", "mold 3.0.0"),
        ("Linker: Another 1.2", "Another 1.2"),
        (GCC_LINE, None),
    ],
)
def test_linkers_are_known_by_what_they_write(text: str, expected: str | None) -> None:
    assert linker_of(text) == expected
