"""Names as people write them, beside those of c++filt; and names that were made to do harm."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recordings.perfscript import perf, record
from walkback.symbols import cxa
from walkback.symbols.demangle import demangle, shortened

needs_cxa = pytest.mark.skipif(cxa.demangler() is None, reason="needs a C++ library")


def one(name: str, **options: Any) -> str:
    return demangle([name], **options)[0]


@needs_cxa
class TestCpp:
    @pytest.mark.parametrize(
        ("name", "short", "full"),
        [
            ("_Z3foov", "foo", "foo()"),
            ("_ZN2ns3BoxIlE4spinElRKSs", "ns::Box<long>::spin", None),
            ("_Z1fIiEvT_", "f<int>", "void f<int>(int)"),
            ("_ZNK1A1fEv", "A::f", "A::f() const"),
            ("_ZNKR1A1fEv", "A::f", "A::f() const &"),
            ("_ZlsR1AS_", "operator<<", "operator<<(A&, A)"),
            ("_ZlsI1AERT_S2_S1_", "operator<< <A>", "A& operator<< <A>(A&, A)"),
            ("_ZNK1AclEi", "A::operator()", "A::operator()(int) const"),
            ("_ZN1AcvmEv", "A::operator unsigned long", "A::operator unsigned long()"),
            ("_ZN1AcvSt6vectorIiSaIiEEEv", "A::operator std::vector<int, std::allocator<int> >", None),
            ("_ZNK1AcvMS_FvvEEv", "A::operator void (A::*)()", "A::operator void (A::*)()() const"),
            ("_Z1fIiEPFvcET_", "f<int>", "void (*f<int>(int))(char)"),
            ("_ZN12_GLOBAL__N_11fEi", "(anonymous namespace)::f", "(anonymous namespace)::f(int)"),
            (
                "_ZZ4mainENKUliE_clEi",
                "main::{lambda(int)#1}::operator()",
                "main::{lambda(int)#1}::operator()(int) const",
            ),
            ("_ZnwmPv", "operator new", "operator new(unsigned long, void*)"),
            ("_ZThn16_N1A1fEi", "non-virtual thunk to A::f(int)", "non-virtual thunk to A::f(int)"),
            ("_ZTI1A", "typeinfo for A", "typeinfo for A"),
            ("_ZTIFvRK1AE", "typeinfo for void (A const&)", "typeinfo for void (A const&)"),
            ("_ZL5value", "value", "value"),
            ("_Z3foov@plt", "foo@plt", "foo()@plt"),
            ("_Z3foov@@GLIBCXX_3.4", "foo", "foo()"),
            ("_ZL5value.llvm.123", "value [clone .llvm.123]", "value [clone .llvm.123]"),
            ("_ZL5value.lto_priv.0@plt", "value [clone .lto_priv.0]@plt", None),
            ("_Z3foov.llvm.0123ABCD", "foo [clone .llvm.0123ABCD]", "foo() [clone .llvm.0123ABCD]"),
            ("memcpy@@GLIBC_2.14", "memcpy", "memcpy"),
            ("~script /srv/@scope/file.js", "~script /srv/@scope/file.js", "~script /srv/@scope/file.js"),
        ],
    )
    def test_names(self, name: str, short: str, full: str | None) -> None:
        assert one(name) == short
        if full is not None:
            assert one(name, parameters=True) == full

    @pytest.mark.parametrize("suffix", ["cold", "part.0", "isra.0", "constprop.0"])
    def test_pieces_and_copies_are_told(self, suffix: str) -> None:
        assert one(f"_Z3foov.{suffix}") == f"foo [clone .{suffix}]"
        assert one(f"_Z3foov.{suffix}", parameters=True) == f"foo() [clone .{suffix}]"

    @pytest.mark.parametrize("name", ["", "_Z", "main", "_ZN3fooE.", "_Zxyz", "_Z3fo", "_Z3foo\n", "\udcff"])
    def test_other_names_stay(self, name: str) -> None:
        assert one(name) == name

    def test_of_names_asked_twice_both_are_answered(self) -> None:
        assert demangle(["_Z1fv", "x", "_Z1fv", "_Z1gv"]) == ["f", "x", "f", "g"]

    def test_without_a_library_names_stay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cxa, "demangler", lambda: None)
        assert one("_Z1fv") == "_Z1fv"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("main", "main"),
        ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector<...>::push_back(int const&)"),
        ("a<b<c>>::d<e>", "a<...>::d<...>"),
        ("operator<<(std::ostream&, A<int>)", "operator<<(std::ostream&, A<...>)"),
        ("bool operator< <int>(A<int> const&)", "bool operator< <...>(A<...> const&)"),
        ("A<int>::operator->() const", "A<...>::operator->() const"),
        ("f<(a)->b>", "f<...>"),
        ("fun<&A::operator< >()", "fun<...>()"),
        ("x<(1<2)>", "x<(1<2)>"),
        (
            "<alloc::vec::Vec<T> as core::iter::Iterator<T>>::next",
            "<alloc::vec::Vec<...> as core::iter::Iterator<...>>::next",
        ),
        ("<T as U>::f::<V>", "<T as U>::f::<...>"),
    ],
)
def test_short_names_have_no_arguments_of_templates(name: str, short: str) -> None:
    assert shortened(name) == short


@needs_cxa
@pytest.mark.skipif(not shutil.which("c++filt"), reason="needs c++filt")
class TestCxxfilt:
    """All names of the C++ library of this machine."""

    def test_names_without_parameters(self) -> None:
        library = next(iter(Path("/usr/lib").glob("*/libstdc++.so.6")), None)
        if library is None or not shutil.which("nm"):
            pytest.skip("needs libstdc++.so.6 and nm")
        output = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
        names = sorted({line.split()[-1].partition("@")[0] for line in output.splitlines()})
        names = [name for name in names if name.startswith("_Z") and not name.startswith("_ZGT")]
        assert len(names) > 4000
        given = "\n".join(names) + "\n"
        told = {}
        for short in (True, False):
            command = ["c++filt", *(["-p"] if short else [])]
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
            told[short] = done.stdout.splitlines()
        # Where the C++ library is another version than c++filt they write some names in other ways.
        full = demangle(names, parameters=True)
        same = [number for number, text in enumerate(told[False]) if text == full[number]]
        assert len(same) > 0.9 * len(names)
        mine = demangle(names)
        assert [mine[number] for number in same] == [told[True][number] for number in same]


RUST = {
    "_RNvC6_123foo3bar": "123foo::bar",
    "_RNvNtCs1234_7mycrate3foo3bar": "mycrate::foo::bar",
    "_RNCNvC4core4main0": "core::main::{closure#0}",
    "_RNCNvC4core4mains_1x": "core::main::{closure:x#1}",
    "_RNSNvC4core4main6vtable": "core::main::{shim:vtable#0}",
    "_RINvC1a1fTiiEaE": "a::f::<(i32, i32), i8>".replace("i32", "isize"),
    "_RINvC1a1fTlEE": "a::f::<(i32,)>",
    "_RINvC1a1fReQhPcOyE": "a::f::<&str, &mut u8, *const char, *mut u64>",
    "_RINvC1a1fRL_eE": "a::f::<&str>",
    "_RINvC1a1fAhj8_SzE": "a::f::<[u8; 8], [!]>",
    "_RINvC1a1fFUKCmEuE": 'a::f::<unsafe extern "C" fn(u32)>',
    "_RINvC1a1fFG_RL0_eElE": "a::f::<for<'a> fn(&'a str) -> i32>",
    "_RINvC1a1fDNtC1b1TEL_E": "a::f::<dyn b::T>",
    "_RINvC1a1fDINtC1b1TlEp4ItemmEL_E": "a::f::<dyn b::T<i32, Item = u32>>",
    "_RINvC1a1fDNtC1b1Tp4ItemmNtC1b1UEL_E": "a::f::<dyn b::T<Item = u32> + b::U>",
    "_RNvMC1aNtB2_1S1f": "<a::S>::f",
    "_RNvXC1aNtB2_1SNtB2_1T1f": "<a::S as a::T>::f",
    "_RNvYNtC1a1SNtB4_1T1f": "<a::S as a::T>::f",
    "_RINvC1a1fKj0_Kb1_Kb0_Klnff_Kc41_Kc27_KpKoffffffffffffffffff_E": (
        "a::f::<0, true, false, -255, 'A', '\\'', _, 0xffffffffffffffffff>"
    ),
    "_RNvC1au8gdel_5qa": "a::gödel",
    "_RNvC1a1fC1b": "a::f",
    "_RNvC1a1f.llvm.123": "a::f",
    "_RNvC1a1f.llvm.9D1C9369.cold.1": "a::f [clone .cold.1]",
    "_RNvC1a1f.warm": "a::f [clone .warm]",
    "_RNvC1a1f.part.0.cold": "a::f [clone .part.0] [clone .cold]",
}


class TestRust:
    @pytest.mark.parametrize("name", RUST)
    def test_v0(self, name: str) -> None:
        assert one(name) == RUST[name]

    @pytest.mark.parametrize(
        "name",
        [
            "_R",
            "_RNvC1a",
            "_RNvC1a9f",
            "_RNvC1a1fx",
            "_RINvC1a1fB9_E",
            "_RNvC1a1f\u00e4",
            "_RINvC1a1fKb2_E",
            "_R1a",
            "_RINvC1a1fKcd800_E",
            "_RNvB_1f",
            "_RC99999999999a",
            "_RINvC1a1fRL0_eE",
            "_RCsZZZZZZZZZZZZZZ_1a",
            "_Rust",
        ],
    )
    def test_what_breaks_the_grammar_stays(self, name: str) -> None:
        assert one(name) == name

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            (
                "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
                "<Test + 'static as foo::Bar<Test>>::bar",
            ),
            ("_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "main::{{closure}}"),
            ("_ZN3foo17h05af221e174051e9E.llvm.9D1C9369", "foo"),
            ("_ZN3foo17h05af221e174051e9E@plt", "foo@plt"),
            ("_ZN3foo17h05af221e174051e9E.4041", "foo [clone .4041]"),
            ("_ZN3foo17h05af221e174051e9E.llvm.9D1C9369.cold", "foo [clone .cold]"),
            ("_ZN7$BP$foo17h05af221e174051e9E", "*foo"),
        ],
    )
    def test_legacy(self, name: str, text: str) -> None:
        assert one(name) == text

    @pytest.mark.skipif(not shutil.which("rustc") or not shutil.which("c++filt"), reason="needs rustc and c++filt")
    @pytest.mark.parametrize("scheme", ["legacy", "v0"])
    def test_a_program_beside_rustc_and_c_filt(self, tmp_path: Path, scheme: str) -> None:
        (tmp_path / "a.rs").write_text("""
            use std::fmt::Debug;
            struct Pair<T, const N: usize>(T, [u8; N]);
            trait Speak { fn speak(&self) -> usize; }
            impl<T: Debug, const N: usize> Speak for Pair<T, N> {
                #[inline(never)] fn speak(&self) -> usize { format!("{:?}", self.0).len() + N }
            }
            #[inline(never)] fn call(f: &dyn Fn(&str) -> usize) -> usize { f("x") }
            fn main() {
                let p = Pair(Some(('a', -1i64)), [0; 7]);
                println!("{} {}", p.speak(), call(&|s| s.len() + p.speak()));
            }
        """)
        mangling = ["-Csymbol-mangling-version=v0"] if scheme == "v0" else []
        command = ["rustc", "-Copt-level=1", *mangling, "a.rs", "-o", "a"]
        if subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode:
            pytest.skip("this rustc cannot build programs here")
        nm = subprocess.run(["nm", "a"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        names = sorted({line.split()[-1] for line in nm.splitlines()})
        start = "_R" if scheme == "v0" else "_ZN"
        names = sorted({name.partition(".")[0] for name in names if name.startswith(start)})
        assert len(names) > 5
        told = subprocess.run(
            ["llvm-cxxfilt" if shutil.which("llvm-cxxfilt") else "c++filt"] if scheme == "v0" else ["c++filt", "-i"],
            input="\n".join(names) + "\n",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        if scheme == "legacy":
            told = [text.rpartition("::h")[0] if text.rpartition("::h")[2].isalnum() else text for text in told]
        mine = demangle(names)
        assert [(name, text) for name, text in zip(names, mine, strict=True)] == list(zip(names, told, strict=True))


OCAML = {
    "camlStdlib__List__map_123": "Stdlib.List.map_123",
    "camlLib.fun_2516": "Lib.fun_2516",
    "camlFoo__bar$27_12": "Foo.bar'_12",
    "camlFoo__$3e$3e$3d_7": "Foo.>>=_7",
    "camlFoo__$2": "Foo.$2",
    "caml_main": "caml_main",
    "camlinternal": "camlinternal",
}


class TestOCaml:
    @pytest.mark.parametrize("name", OCAML)
    def test_names(self, name: str) -> None:
        assert one(name) == OCAML[name]
        assert one(f"{name}@plt") == f"{OCAML[name]}@plt"

    def test_perf_shows_them_so(self, tmp_path: Path) -> None:
        functions = [
            f'__attribute__((noinline)) void f{i}(void) __asm__("{name}");'
            f"void f{i}(void) {{ for (volatile int k = 0; k < 20000000; k++); }}"
            for i, name in enumerate(OCAML)
        ]
        calls = "".join(f"f{i}();" for i in range(len(OCAML)))
        (tmp_path / "a.c").write_text("\n".join([*functions, f"int main(void) {{ {calls} return 0; }}"]))
        subprocess.run(["gcc", "-O1", "a.c", "-o", "a"], cwd=tmp_path, check=True)
        recording = record(tmp_path / "perf.data", [tmp_path / "a"])
        command = [perf(), "script", "-i", str(recording), "-G", "-F", "ip,sym"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert set(OCAML.values()) <= {line.split()[-1] for line in lines}


class TestSwift:
    @pytest.fixture
    def swift(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        def write(body: str) -> None:
            program = tmp_path / "swift-demangle"
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(program.stat().st_mode | stat.S_IEXEC)
            monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

        return write

    def test_its_program_is_asked(self, swift: Callable[..., None]) -> None:
        swift("sed 's/.*/<&>/'")
        assert demangle(["$s4main3fooyyF", "x", "_$s1"]) == ["<$s4main3fooyyF>", "x", "<_$s1>"]

    def test_it_is_found_where_debian_has_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swift: Callable[..., None]
    ) -> None:
        swift("sed 's/.*/<&>/'")
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        if shutil.which("swift-demangle") or shutil.which("swift"):
            pytest.skip("Swift is there")
        monkeypatch.setattr("walkback.symbols.demangle._SWIFT_ELSEWHERE", str(tmp_path))
        assert demangle(["$s4main3fooyyF"]) == ["<$s4main3fooyyF>"]

    @pytest.mark.parametrize("body", ["exit 1", "echo one", "kill -9 $$", "printf '\\377\\n'"])
    def test_one_that_fails_does_no_harm(self, swift: Callable[..., None], body: str) -> None:
        swift(body)
        assert demangle(["$s4main3fooyyF", "$sx"]) == ["$s4main3fooyyF", "$sx"]
