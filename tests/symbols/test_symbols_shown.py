"""Functions are found by the names that people see, though few of a file's names are looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from symbols.indexed import index_of
from symbols.test_symbols_demangle import RUST, needs_cxa
from walkback.elf import ElfFile
from walkback.symbols import SymbolIndex
from walkback.symbols.demangle import demangle, is_mangled, shortened, spelled_out, without_parameters


@needs_cxa
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_ZN5Queue4pushEi", "Queue::push"),
        ("_ZN5QueueC1Ev", "Queue::Queue"),
        ("_ZN5QueueD2Ev", "Queue::~Queue"),
        ("_ZN5QueueixEi", "Queue::operator[]"),
        ("_ZN5QueuecviEv", "Queue::operator int"),
        ("_Znwm", "operator new"),
        ("_Znwm", "operatornew"),
        ("_Z8operatesv", "operates"),
        ("_ZNSsC1Ev", "std::basic_string<...>::basic_string"),
        ("_ZNSsC2ERKSs", "std::basic_string<...>::basic_string"),
        ("_ZNSaIcED1Ev", "std::allocator<char>::~allocator"),
        ("_ZNSoD0Ev", "std::basic_ostream<...>::~basic_ostream"),
        ("_ZNSo5flushEv", "std::ostream::flush"),
        ("_ZThn8_N1A1fEv", "non-virtual thunk to A::f()"),
        ("_Z3runi.cold", "run(int) [clone .cold]"),
        ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
    ],
)
def test_a_function_is_found_by_its_name(name: str, shown: str) -> None:
    index = index_of((name, 0x1000), ("_Z5otheri", 0x1010), ("push", 0x1020), ("Queue", 0x1030))
    assert [place for _, place in index.lookup_shown(shown)] == [0x1000]


def test_every_name_has_what_is_looked_for_in_it() -> None:
    names = dict(RUST)
    for library in Path("/usr/lib").glob("*/libstdc++.so.6"):
        mangled = [one for one in SymbolIndex(ElfFile(library)).all_names() if is_mangled(one)]
        names |= zip(mangled, demangle(mangled, parameters=True), strict=True)
    parts = {}
    for name, whole in names.items():
        for form in (whole, without_parameters(whole), shortened(whole), shortened(without_parameters(whole))):
            parts[name, form] = spelled_out(form)
    assert sum(map(bool, parts.values())) > 10
    assert [one for one, part in parts.items() if part not in one[0]] == []
