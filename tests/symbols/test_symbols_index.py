from __future__ import annotations

import numpy as np
import pytest

from symbols.indexed import FILE, FUNC, IFUNC, NOTYPE, OBJECT, SECTION, TLS, elf_of, index_of
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError
from walkback.elf import layout
from walkback.symbols import SymbolIndex

LOCAL, GLOBAL, WEAK, UNIQUE = 0, 1, 2, 10


class TestWhichSymbols:
    @pytest.mark.parametrize("order", ["little", "big"])
    def test_functions_and_indirect_functions_name_code(self, order: ByteOrder) -> None:
        index = index_of(("f", 0x1000), ("g", 0x1010, {"kind": IFUNC}), order=order)
        assert index.name_at(0x1000) == "f"
        assert index.name_at(0x1010) == "g"
        assert index.name_at(0x1001) is None

    def test_untyped_symbols_name_code_in_executable_sections_only(self) -> None:
        index = index_of(("label", 0x1000, {"kind": NOTYPE}), ("value", 0x5000, {"kind": NOTYPE, "section": 3}))
        assert index.name_at(0x1000) == "label"
        assert index.name_at(0x5000) is None

    @pytest.mark.parametrize("kind", [OBJECT, SECTION, FILE, TLS])
    def test_other_types_do_not(self, kind: int) -> None:
        assert index_of(("x", 0x1000, {"kind": kind})).name_at(0x1000) is None

    @pytest.mark.parametrize("section", [layout.SHN_UNDEF, layout.SHN_COMMON])
    def test_undefined_and_common_symbols_do_not(self, section: int) -> None:
        index = index_of(("x", 0x1000, {"section": section}))
        assert index.name_at(0x1000) is None
        assert index.lookup("x") == []

    def test_an_absolute_function_does_in_a_linked_file(self) -> None:
        absolute = ("x", 0x9000, {"section": layout.SHN_ABS})
        assert index_of(absolute).name_at(0x9000) == "x"
        assert index_of(absolute, kind=layout.ET_REL).lookup("x") == []

    def test_nameless_symbols_and_local_labels_do_not(self) -> None:
        index = index_of(("", 0x1000), (".Lloop", 0x1010, {"kind": NOTYPE}), (".Lodd", 0x1020))
        assert index.name_at(0x1000) is None
        assert index.name_at(0x1010) is None
        assert index.name_at(0x1020) == ".Lodd"

    @pytest.mark.parametrize("name", ["$x", "$d", "$x.12", "$d.real"])
    def test_mapping_symbols_do_not_where_there_are_any(self, name: str) -> None:
        symbol = (name, 0x1000, {"kind": NOTYPE, "binding": LOCAL})
        assert index_of(symbol, machine=layout.EM_AARCH64).name_at(0x1000) is None
        assert index_of(symbol, machine=layout.EM_RISCV).name_at(0x1000) is None
        assert index_of(symbol).name_at(0x1000) == name


class TestWhichName:
    FIRST_WINS = pytest.mark.parametrize(
        ("better", "worse"),
        [
            ({"kind": FUNC, "binding": LOCAL}, {"kind": NOTYPE, "binding": GLOBAL, "size": 4}),
            ({"size": 4, "binding": LOCAL}, {"size": 0, "binding": GLOBAL}),
            ({"binding": GLOBAL}, {"binding": WEAK}),
            ({"binding": UNIQUE}, {"binding": WEAK}),
            ({"binding": WEAK}, {"binding": LOCAL}),
            ({"binding": WEAK}, {"binding": 13}),
        ],
    )

    @FIRST_WINS
    def test_of_two_at_one_address_the_better_is_chosen_in_any_order(
        self, better: dict[str, int], worse: dict[str, int]
    ) -> None:
        good, bad = ("good", 0x1000, better), ("bad", 0x1000, worse)
        assert index_of(good, bad).name_at(0x1000) == "good"
        assert index_of(bad, good).name_at(0x1000) == "good"

    def test_of_equals_the_first_is_chosen(self) -> None:
        assert index_of(("one", 0x1000), ("two", 0x1000)).name_at(0x1000) == "one"

    def test_both_tables_are_used_and_symtab_goes_first(self) -> None:
        index = index_of(("static", 0x1000), dynamic=(("dynamic", 0x1000), ("only", 0x1010)))
        assert index.name_at(0x1000) == "static"
        assert index.name_at(0x1010) == "only"
        assert index.lookup("dynamic") == [(-1, 0x1000)]

    def test_a_file_with_dynsym_only_has_names(self) -> None:
        assert index_of(dynamic=(("f", 0x1000),)).name_at(0x1000) == "f"

    def test_a_file_without_symbols_has_none(self) -> None:
        index = index_of()
        assert index.name_at(0x1000) is None
        assert index.describe(0x1000) is None
        assert index.names_at(np.array([0x1000], np.uint64)) == [None]
        assert index.lookup("f") == []


class TestDescribe:
    def test_inside_a_sized_symbol(self) -> None:
        index = index_of(("f", 0x1000, {"size": 0x10}))
        assert index.describe(0x1000) == "f"
        assert index.describe(0x100F) == "f+0xf"
        assert index.describe(0x1010) is None
        assert index.describe(0xFFF) is None

    def test_after_an_unsized_symbol_up_to_the_next_and_the_end_of_its_section(self) -> None:
        index = index_of(("f", 0x1000), ("g", 0x1800, {"size": 4}), ("h", 0x1900))
        assert index.describe(0x17FF) == "f+0x7ff"
        assert index.describe(0x1804) is None
        assert index.describe(0x1FFF) == "h+0x6ff"
        assert index.describe(0x2000) is None

    def test_where_only_sized_symbols_are_wanted_others_name_their_beginning_alone(self) -> None:
        index = index_of(("f", 0x1000), ("g", 0x1800, {"size": 4}))
        places = {0x1000: "f", 0x1001: None, 0x17FF: None, 0x1800: "g", 0x1803: "g+0x3", 0x1804: None}
        assert {address: index.describe(address, sized=True) for address in places} == places

    def test_the_innermost_sized_symbol_that_holds_the_address(self) -> None:
        index = index_of(
            ("outer", 0x1000, {"size": 0x100}),
            ("inner", 0x1010, {"size": 0x10}),
            ("tiny", 0x1012, {"size": 1}),
            ("label", 0x1040, {"kind": NOTYPE}),
        )
        places = {0x1011: "inner+0x1", 0x1012: "tiny", 0x1013: "inner+0x3", 0x1020: "outer+0x20"}
        # Behind the function the label is the last before, and it has no size.
        places |= {0x1040: "label", 0x1041: "outer+0x41", 0x1100: "label+0xc0"}
        assert {address: index.describe(address) for address in places} == places

    def test_sizes_that_run_over_the_address_space_stop_there(self) -> None:
        index = index_of(("f", 2**64 - 16, {"size": 2**64 - 1}), ("g", 0x1000, {"size": 2**64 - 1}))
        assert index.describe(2**64 - 2) == "f+0xe"
        assert index.describe(0x2000) == "g+0x1000"

    @pytest.mark.parametrize("address", [-1, 2**64, 2**80])
    def test_addresses_that_no_machine_has_are_nowhere(self, address: int) -> None:
        index = index_of(("f", 0, {"size": 2**64 - 1}))
        assert index.name_at(address) is None
        assert index.describe(address) is None


class TestRelocatable:
    SYMBOLS = (
        ("f", 0, {"size": 8}),
        ("g", 16),
        ("f2", 0, {"section": 2, "size": 8}),
        ("f", 8, {"section": 2, "binding": LOCAL}),
    )

    @pytest.fixture
    def index(self) -> SymbolIndex:
        return index_of(*self.SYMBOLS, kind=layout.ET_REL)

    def test_names_are_by_section_and_address(self, index: SymbolIndex) -> None:
        assert index.name_at(0, 1) == "f"
        assert index.name_at(0, 2) == "f2"
        assert index.name_at(16, 2) is None
        assert index.name_at(0) is None
        assert index.name_at(0, 3) is None
        assert index.lookup("f") == [(1, 0), (2, 8)]

    def test_descriptions_stay_in_their_section(self, index: SymbolIndex) -> None:
        assert index.describe(4, 1) == "f+0x4"
        assert index.describe(12, 1) is None
        assert index.describe(0xFFF, 1) == "g+0xfef"
        assert index.describe(0x1000, 1) is None
        assert index.describe(4, 2) == "f2+0x4"
        assert index.describe(9, 2) == "f+0x1"

    def test_many_at_once(self, index: SymbolIndex) -> None:
        addresses = np.array([0, 0, 8, 16, 16, 8, 2**64 - 1], np.uint64)
        sections = np.array([1, 2, 2, 1, 2, 1, 77], np.uint32)
        assert index.names_at(addresses, sections) == ["f", "f2", "f", "g", None, None, None]
        assert index.names_at(addresses) == [None] * 7


class TestNamesAt:
    def test_it_agrees_with_name_at(self) -> None:
        rng = np.random.default_rng(5)
        values = rng.integers(0x1000, 0x2000, 300).tolist()
        index = index_of(*[(f"f{value}", value) for value in values])
        addresses = rng.integers(0xF00, 0x2100, 2000).astype(np.uint64)
        expected = [index.name_at(int(address)) for address in addresses]
        assert index.names_at(addresses) == expected
        assert index.names_at(addresses.astype(np.int64), np.ones(2000, np.int64)) == expected
        assert None in expected
        assert len(set(expected)) > 100

    def test_nothing_is_asked(self) -> None:
        assert index_of(("f", 0x1000)).names_at(np.zeros(0, np.uint64)) == []


class TestLookup:
    def test_versions_are_left_off(self) -> None:
        index = index_of(("f@@V2", 0x1000), ("f@V1", 0x1010), ("f", 0x1020), ("ff", 0x1030))
        assert index.lookup("f") == [(-1, 0x1000), (-1, 0x1010), (-1, 0x1020)]
        assert index.lookup("f@V1") == [(-1, 0x1010)]
        assert index.lookup("f@V3") == index.lookup("") == index.lookup("g") == []
        assert index.name_at(0x1000) == "f@@V2"

    def test_aliases_that_name_at_does_not_choose_are_found(self) -> None:
        index = index_of(("write", 0x1000, {"binding": WEAK}), ("__write", 0x1000))
        assert index.lookup("write") == index.lookup("__write") == [(-1, 0x1000)]

    def test_a_name_among_many(self) -> None:
        index = index_of(*[(f"function{number:03}", 0x1000 + number) for number in range(500)])
        assert index.lookup("function123") == [(-1, 0x107B)]
        assert index.lookup("function") == []


class TestDamage:
    def test_a_name_outside_its_table_is_an_error_when_it_is_read(self) -> None:
        elf = elf_of([("f", 0x1000), ("g", 0x1010, {"name_offset": 0x999})])
        index = SymbolIndex(elf)
        assert index.name_at(0x1000) == "f"
        assert index.lookup("f") == [(-1, 0x1000)]
        for question in (lambda: index.name_at(0x1010), lambda: index.names_at(np.array([0x1010]))):
            with pytest.raises(ElfError, match=r"\.strtab has no string that begins at 0x999"):
                question()

    def test_symbols_in_sections_that_do_not_exist_have_no_neighbours(self) -> None:
        index = index_of(("f", 0x1000, {"section": 99}))
        assert index.name_at(0x1000) == "f"
        assert index.describe(0x1001) is None
        assert index_of(("f", 0, {"section": 99}), kind=layout.ET_REL).lookup("f") == []
