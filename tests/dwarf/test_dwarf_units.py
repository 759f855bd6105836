"""Producers and languages of compilation units: of every version and form, of real compilers, and of damaged files."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from peers import run
from unitbuilder import (
    DATA1,
    DATA2,
    GNU_STR_INDEX,
    GNU_STRP_ALT,
    IMPLICIT,
    INDIRECT,
    LANGUAGE,
    LINE_STRP,
    NAME,
    PARTIAL,
    PRODUCER,
    SDATA,
    SEC_OFFSET,
    SKELETON,
    SPLIT_COMPILE,
    STR_OFFSETS_BASE,
    STRING,
    STRP,
    STRX,
    STRX1,
    STRX2,
    STRX3,
    STRX4,
    TAG_PARTIAL,
    TAG_SKELETON,
    TAG_TYPE,
    TYPE,
    UDATA,
    UnitBuilder,
    uleb,
)
from walkback.base.arch import ByteOrder
from walkback.dwarf.units import Unit, compile_units
from walkback.elf import ElfFile

C99, RUST, ASSEMBLER = 0x0C, 0x1C, 0x8001
SOURCE = "int f(int a) { return a + 1; }\nint g(int a) { return f(a) * 2; }\n"


def read(builder: UnitBuilder, suffix: str = "") -> dict[Unit, int]:
    return dict(compile_units(ElfFile(bytes(builder.image(suffix)), "made")))


def plain(builder: UnitBuilder, text: str = "a compiler 1.2") -> list[tuple[int, int, bytes]]:
    return [(PRODUCER, STRING, text.encode() + b"\0"), (LANGUAGE, DATA1, bytes((C99,)))]


@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("wide", [False, True], ids=["32-bit", "64-bit"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_producer_and_language_are_read_in_every_version(version: int, wide: bool, byteorder: ByteOrder) -> None:
    builder = UnitBuilder(byteorder, wide)
    place = builder.text("str", "a compiler 1.2")
    language = builder.number(ASSEMBLER, 2)
    builder.unit(version, [(PRODUCER, STRP, builder.offset(place)), (LANGUAGE, DATA2, language)])
    builder.unit(version, plain(builder, "another 3.4"))
    assert read(builder) == {Unit("a compiler 1.2", "Assembly"): 1, Unit("another 3.4", "C"): 1}


@pytest.mark.parametrize(
    ("form", "data"),
    [
        *((0x01, bytes(8)), (0x03, b"\3\0abc"), (0x04, b"\2\0\0\0ab"), (0x09, b"\1a"), (0x0A, b"\3abc"), (0x18, b"\0")),
        *((0x05, bytes(2)), (0x06, bytes(4)), (0x07, bytes(8)), (0x0B, b"\1"), (0x0C, b"\1"), (0x1E, bytes(16))),
        *((0x08, b"text\0"), (0x08, b"x" * 10000 + b"\0"), (0x0E, bytes(4)), (0x1F, bytes(4)), (0x1D, bytes(4))),
        *((0x0D, b"\xff\x7f"), (0x0F, b"\xff\1"), (0x15, b"\1"), (0x1A, b"\1"), (0x1B, b"\1"), (0x22, b"\1")),
        *((0x23, b"\1"), (0x10, bytes(4)), (0x11, b"\1"), (0x12, bytes(2)), (0x13, bytes(4)), (0x14, bytes(8))),
        *((0x16, b"\x05\0\0"), (0x17, bytes(4)), (0x19, b""), ((0x21, b"\xff\1"), b""), (0x1C, bytes(4))),
        *((0x20, bytes(8)), (0x24, bytes(8)), (0x25, b"\1"), (0x26, bytes(2)), (0x27, bytes(3)), (0x28, bytes(4))),
        *((0x29, b"\1"), (0x2A, bytes(2)), (0x2B, bytes(3)), (0x2C, bytes(4)), (0x1F01, b"\1"), (0x1F02, b"\1")),
        *((0x1F20, bytes(4)), (0x1F21, bytes(4))),
    ],
    ids=lambda value: f"{value[0] if isinstance(value, tuple) else value:#x}" if not isinstance(value, bytes) else "",
)
def test_every_form_can_stand_before_the_producer(form: int | tuple[int, bytes], data: bytes) -> None:
    builder = UnitBuilder()
    builder.unit(5, [(NAME, form, data), *plain(builder)])
    assert read(builder) == {Unit("a compiler 1.2", "C"): 1}


def test_an_unknown_form_makes_a_unit_nameless_and_leaves_the_others() -> None:
    builder = UnitBuilder()
    builder.unit(5, [(NAME, 0x7F, b"?"), *plain(builder)])
    builder.unit(5, plain(builder))
    assert read(builder) == {Unit(None, None): 1, Unit("a compiler 1.2", "C"): 1}


@pytest.mark.parametrize("form", [STRX, STRX1, STRX2, STRX3, STRX4])
@pytest.mark.parametrize("wide", [False, True], ids=["32-bit", "64-bit"])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_indexed_strings_count_from_the_base_that_the_unit_says_even_after_them(
    byteorder: ByteOrder, wide: bool, form: int
) -> None:
    builder = UnitBuilder(byteorder, wide)
    for text in ("one", "two"):
        index, base = builder.index(text)
    size = {STRX1: 1, STRX2: 2, STRX3: 3, STRX4: 4}.get(form)
    value = uleb(index) if size is None else builder.number(index, size)
    base_too = (STR_OFFSETS_BASE, SEC_OFFSET, builder.offset(base))
    builder.unit(5, [(PRODUCER, form, value), (LANGUAGE, (IMPLICIT, uleb(RUST)), b""), base_too])
    assert read(builder) == {Unit("two", "Rust"): 1}


@pytest.mark.parametrize(("form", "version"), [(STRX1, 5), (GNU_STR_INDEX, 4)])
def test_split_units_are_read_where_they_were_split_off_to(form: int, version: int) -> None:
    builder = UnitBuilder()
    index, _ = builder.index("a splitter 1.0", header=version == 5)
    attributes = [(PRODUCER, form, bytes((index,))), (LANGUAGE, DATA1, bytes((C99,)))]
    builder.unit(version, attributes, kind=SPLIT_COMPILE)
    assert read(builder, ".dwo") == {Unit("a splitter 1.0", "C"): 1}


def test_type_units_and_partial_units_are_passed_over_and_skeletons_are_nameless() -> None:
    builder = UnitBuilder()
    builder.unit(5, plain(builder, "types"), kind=TYPE, tag=TAG_TYPE)
    builder.unit(5, plain(builder, "part"), kind=PARTIAL, tag=TAG_PARTIAL)
    builder.unit(4, plain(builder, "part"), tag=TAG_PARTIAL)
    builder.unit(5, [(NAME, STRING, b"x.dwo\0")], kind=SKELETON, tag=TAG_SKELETON)
    builder.unit(5, plain(builder))
    assert read(builder) == {Unit(None, None): 1, Unit("a compiler 1.2", "C"): 1}


def test_a_producer_that_dwz_moved_to_another_file_is_unknown_and_the_language_is_kept() -> None:
    builder = UnitBuilder()
    builder.text("str", "not this one")
    builder.unit(4, [(PRODUCER, GNU_STRP_ALT, builder.offset(1)), (LANGUAGE, DATA1, bytes((C99,)))])
    assert read(builder) == {Unit(None, "C"): 1}


@pytest.mark.parametrize("code", [1, ord("3"), ord("."), 0x7F, 0x80, 300, 70000])
def test_the_declaration_of_the_unit_is_found_among_others(code: int) -> None:
    builder = UnitBuilder()
    builder.unit(5, plain(builder), code=code, before=range(1001, 1100))
    builder.unit(5, [(LANGUAGE, UDATA, uleb(RUST)), (PRODUCER, LINE_STRP, bytes(4))], code=code)
    builder.text("line_str", "")
    assert read(builder) == {Unit("a compiler 1.2", "C"): 1, Unit("", "Rust"): 1}


def test_declarations_that_begin_alike_are_not_taken_for_each_other() -> None:
    builder = UnitBuilder()
    long = [(0x2000 + number, (IMPLICIT, uleb(1)), b"") for number in range(40)]
    builder.unit(5, [*long, *plain(builder, "one")])
    builder.unit(5, [*long, (LANGUAGE, DATA1, bytes((RUST,))), (PRODUCER, STRING, b"two\0")])
    assert read(builder) == {Unit("one", "C"): 1, Unit("two", "Rust"): 1}


def test_an_indirect_form_says_its_form_beside_its_value() -> None:
    builder = UnitBuilder()
    value = uleb(SDATA) + uleb(C99)
    builder.unit(4, [(LANGUAGE, INDIRECT, value), (PRODUCER, INDIRECT, uleb(STRING) + b"here 1.0\0")])
    builder.unit(4, [(LANGUAGE, INDIRECT, uleb(INDIRECT) * 100), *plain(builder)])
    assert read(builder) == {Unit("here 1.0", "C"): 1, Unit(None, None): 1}


def test_a_unit_that_reaches_beyond_the_end_ends_the_section() -> None:
    builder = UnitBuilder()
    builder.unit(5, plain(builder))
    whole = len(builder.info)
    builder.unit(5, plain(builder, "cut"))
    del builder.info[-1]
    assert read(builder) == {Unit("a compiler 1.2", "C"): 1}
    del builder.info[whole + 3 :]
    assert read(builder) == {Unit("a compiler 1.2", "C"): 1}


def test_long_producers_are_cut_and_bytes_that_are_no_text_are_spelled_out() -> None:
    builder = UnitBuilder()
    builder.unit(5, [(PRODUCER, STRING, b"GNU C17 \xff" + b"x" * 5000 + b"\0"), (LANGUAGE, DATA1, b"\1")])
    (unit,) = read(builder)
    assert unit.producer is not None
    assert unit.producer.startswith("GNU C17 \\xffxxx")
    assert len(unit.producer) < 300
    assert unit.language == "C"


def test_relocatable_files_of_machines_with_unknown_relocations_have_no_units() -> None:
    builder = UnitBuilder()
    builder.unit(5, plain(builder))
    assert compile_units(ElfFile(bytes(builder.image(machine=243)), "made")).total() == 1
    image = builder.image(machine=243).header("e_type", 1)
    assert not compile_units(ElfFile(bytes(image), "made"))


# What real compilers write


def told(path: Path) -> Counter[tuple[str, int]]:
    """Producers and language codes as pyelftools reads them."""
    found: Counter[tuple[str, int]] = Counter()
    with path.open("rb") as stream:
        for unit in ELFFile(stream).get_dwarf_info().iter_CUs():
            top = unit.get_top_DIE()
            if top.tag == "DW_TAG_compile_unit":
                found[top.attributes["DW_AT_producer"].value.decode(), top.attributes["DW_AT_language"].value] += 1
    return found


def same(path: Path) -> Counter[str]:
    """The producers, where ours are those of pyelftools."""
    ours: Counter[str] = Counter()
    for unit, count in compile_units(ElfFile(path)).items():
        assert unit.producer is not None
        ours[unit.producer] += count
    theirs: Counter[str] = Counter()
    for (producer, _), count in told(path).items():
        theirs[producer[:256]] += count
    assert ours == theirs
    return ours


OPTIONS = ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gdwarf64", "-gdwarf-5 -fdebug-types-section"]
NOT_IN_OBJECTS = ("-flto", "-gz=zlib-gnu", "-fdebug-types-section")
"""What pyelftools does not read in them."""
OPTIONS += ["-gdwarf-4 -gz=zlib", "-gdwarf-4 -gz=zlib-gnu", "-gdwarf-5 -flto"]


@pytest.mark.parametrize("options", OPTIONS)
def test_objects_and_programs_of_gcc_say_what_another_reader_says(options: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    (tmp_path / "b.cc").write_text("struct S { int x; };\nint h(S s) { return s.x; }\nint main() { return 0; }\n")
    (tmp_path / "c.s").write_text(".text\n.globl a\na: ret\n")
    for name in ("a.c", "b.cc", "c.s"):
        subprocess.run(["gcc", *options.split(), "-c", name], cwd=tmp_path, check=True)
    if not options.endswith(NOT_IN_OBJECTS):
        for name in ("a.o", "b.o", "c.o"):
            assert same(tmp_path / name).total() == 1
    subprocess.run(["g++", *options.split(), "-o", "all", "a.o", "b.o", "c.o"], cwd=tmp_path, check=True)
    producers = same(tmp_path / "all")
    assert any(producer.startswith("GNU AS ") for producer in producers)
    assert any(producer.startswith(("GNU C++", "GNU GIMPLE")) for producer in producers)


def test_split_debugging_information_of_gcc_is_read_in_the_file_that_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-gsplit-dwarf", "-c", "a.c"], cwd=tmp_path, check=True)
    assert dict(compile_units(ElfFile(tmp_path / "a.o"))) == {Unit(None, None): 1}
    ((unit, count),) = compile_units(ElfFile(tmp_path / "a.dwo")).items()
    assert unit.producer is not None
    assert (unit.producer[:5], unit.language, count) == ("GNU C", "C", 1)


@pytest.mark.peers
@pytest.mark.parametrize("prefix", ["", "aarch64-", "s390x-"])
@pytest.mark.parametrize("version", [4, 5])
def test_objects_of_every_machine_and_assembler_say_what_another_reader_says(
    version: int, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    arguments = ["-S", f"-gdwarf-{version}", "-O2", "a.c"]
    if prefix:
        run(f"{prefix}gcc", *arguments, cwd=tmp_path, check=True)
    else:
        subprocess.run(["gcc", *arguments], cwd=tmp_path, check=True)
    for assembler in ("2.40", "2.44", "new"):
        for more in ([], ["--compress-debug-sections=zlib"], ["--compress-debug-sections=zstd"]):
            if more[-1:] == ["--compress-debug-sections=zstd"] and assembler == "2.40":
                continue
            run(f"{prefix}as-{assembler}", *more, "a.s", "-o", "a.o", cwd=tmp_path, check=True)
            ((unit, count),) = compile_units(ElfFile(tmp_path / "a.o")).items()
            assert (unit.producer or "")[:6] == "GNU C1"
            assert (unit.language, count) == ("C", 1)
            if "zstd" not in str(more):
                same(tmp_path / "a.o")


@pytest.mark.peers
def test_units_of_the_assembler_of_llvm_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(".text\n.globl f\nf:\n nop\n")
    for triple in ("x86_64-linux-gnu", "aarch64-linux-gnu", "s390x-linux-gnu"):
        for version in (2, 3, 4, 5):
            arguments = [f"--triple={triple}", "-filetype=obj", "-g", f"-dwarf-version={version}", "a.s", "-o", "a.o"]
            run("llvm-mc", *arguments, cwd=tmp_path, check=True)
            (producer,) = same(tmp_path / "a.o")
            assert producer.startswith("llvm-mc (based on LLVM ")


def test_units_of_rust_are_read(tmp_path: Path) -> None:
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("needs rustc")
    (tmp_path / "a.rs").write_text("#![no_std]\npub fn f(a: i32) -> i32 { a + 1 }\n")
    subprocess.run([rustc, "-g", "--crate-type=lib", "--emit=obj", "a.rs"], cwd=tmp_path, check=True)
    ((unit, _),) = compile_units(ElfFile(tmp_path / "a.o")).items()
    assert "rustc version" in (unit.producer or "")
    assert unit.language == "Rust"


# What is hostile


@pytest.mark.whole
def test_damaged_units_never_raise(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-gdwarf-5", "-c", "a.c"], cwd=tmp_path, check=True)
    real = (tmp_path / "a.o").read_bytes()
    builder = UnitBuilder()
    index, base = builder.index("indexed")
    builder.unit(5, [(PRODUCER, STRX1, bytes((index,))), (STR_OFFSETS_BASE, SEC_OFFSET, builder.offset(base))])
    builder.unit(4, [(NAME, 0x09, b"\2ab"), *plain(builder)], before=(5, 6))
    chance = random.Random(7)
    for data in (real, bytes(builder.image())):
        for _ in range(1500):
            damaged = bytearray(data)
            for _ in range(chance.randrange(1, 6)):
                damaged[chance.randrange(64, len(damaged))] = chance.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
                )
            compile_units(ElfFile(bytes(damaged), "damaged"))


def test_each_cut_of_the_units_tells_no_more_than_the_whole() -> None:
    builder = UnitBuilder()
    builder.unit(5, plain(builder, "one"))
    builder.unit(4, plain(builder, "two"))
    whole = read(builder)
    for name in ("info", "abbrev"):
        data = getattr(builder, name)
        kept = bytes(data)
        for length in range(len(kept)):
            data[:] = kept[:length]
            assert set(read(builder)) <= {*whole, Unit(None, None)}
        data[:] = kept


@pytest.mark.whole
def test_a_file_of_nothing_but_units_is_read_in_bounded_time() -> None:
    builder = UnitBuilder()
    builder.unit(4, plain(builder), before=range(2000, 6000))
    builder.info *= 400_000
    declared = bytes(builder.abbrev)
    missing = declared.replace(b"\0\0\x01\x11\x01", b"\0\0\x02\x11\x01")
    for builder.abbrev, named in ((bytearray(declared), True), (bytearray(missing), False)):
        start = time.process_time()
        units = compile_units(ElfFile(bytes(builder.image()), "many"))
        assert 0 < units.total() < 400_000
        assert (Unit("a compiler 1.2", "C") in units) == named
        assert time.process_time() - start < 20
    builder.info[:] = b"\x07\0\0\0\5\0\2\x08\0\0\0" * 3_000_000  # units of types, which count too
    assert not compile_units(ElfFile(bytes(builder.image()), "many"))


def test_distinct_producers_without_end_are_bounded() -> None:
    builder = UnitBuilder()
    for number in range(3000):
        builder.unit(5, plain(builder, f"compiler {number}"))
    units = compile_units(ElfFile(bytes(builder.image()), "many"))
    assert units.total() == 3000
    assert len(units) <= 1001
    assert units[Unit(None, None)] >= 1999


def test_compressed_units_that_claim_too_much_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-gz=zlib", "-c", "a.c"], cwd=tmp_path, check=True)
    data = bytearray((tmp_path / "a.o").read_bytes())
    elf = ElfFile(bytes(data), "a.o")
    (index,) = elf.sections_named(".debug_info")
    assert compile_units(elf).total() == 1
    place = int(elf.sections["offset"][index])
    data[place + 8 : place + 16] = (100 << 20).to_bytes(8, "little")
    assert not compile_units(ElfFile(bytes(data), "a.o"))
