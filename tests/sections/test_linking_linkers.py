"""Objects of every assembler, joined in every pair and order by every linker: what `link_object`, `link` and `fix` make
of that has every function once, with the rows that its source means.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING

import pytest

from corpus import PREFIXES, PRODUCERS, corpus, gas_object
from peers import run
from sections.joining import (
    assembled,
    by_name,
    dumped,
    expected,
    header_of,
    link_with,
    named,
    read_object,
    sframe_of,
    told_by,
)
from walkback import MissingError, SFrameError, check, fix, link, sframe
from walkback.sections.linking.relink import link_object

if TYPE_CHECKING:
    from pathlib import Path

    from sections.joining import Rows

pytestmark = pytest.mark.peers

LINKERS = {
    "amd64": ("ld-2.35", "ld-2.40", "ld-2.44", "ld-new", "ld.lld", "gold-2.40", "gold-2.44", "mold"),
    "aarch64": ("ld-2.40", "ld-2.44", "ld-new", "ld.lld"),
    "s390x": ("ld-2.40", "ld-2.44", "ld-new", "ld.lld"),
}
CASES = [
    (arch, linker, one, other)
    for arch, linkers in LINKERS.items()
    for linker in linkers
    for one, other in product([producer for producer, archs in PRODUCERS.items() if arch in archs], repeat=2)
]
VERSION = {"2.40": 1, "2.44": 2, "llvm": 2, "new": 3}
MODERN = ("llvm", "new")  # their section has a type of its own
SORTED, PCREL = 1, 4
NOTHING = r"there is no \.sframe section|the \.sframe section is empty"


def refuses(linker: str, pair: tuple[str, str]) -> bool:
    """Whether the linker itself links nothing: lld mixes no section types, ld 2.44 takes no version 1."""
    if linker == "ld.lld":
        return (pair[0] in MODERN) != (pair[1] in MODERN)
    return linker == "ld-2.44" and "2.40" in pair


def lost(linker: str, pair: tuple[str, str], *, relocatable: bool) -> str:
    """The letters of the objects whose section the linker throws away: those that are not of the version it knows.

    The older GNU ld then copies all of them, if it knows none. It does that with `-r` too; what else it does there is
    in `displaces`.
    """
    known = {"ld-2.40": "2.40", "ld-2.44": "2.44", "ld-new": "new", "mold": "new"}.get(linker)
    if known is None or (linker in {"ld-2.40", "ld-2.44"} and (relocatable or known not in pair)):
        return ""
    return "".join(letter for letter, producer in zip("ab", pair, strict=True) if producer != known)


def displaces(linker: str, pair: tuple[str, str]) -> bool:
    """Whether the linker's `-r` writes relocations that are on no start field: if it appends what it knows."""
    return linker in {"ld-2.40", "ld-2.44"} and pair[1] == linker.removeprefix("ld-")


def peer_name(arch: str, linker: str) -> str:
    """One lld is for all machines."""
    return linker if linker == "ld.lld" else PREFIXES[arch] + linker


def joined(arch: str, linker: str, pair: tuple[str, str], output: Path, *options: str) -> None:
    """Links two objects; what the linker refuses skips nothing but the rest of this case."""
    inputs = [assembled(letter, producer, arch) for letter, producer in zip("ab", pair, strict=True)]
    if refuses(linker, pair):
        done = run(peer_name(arch, linker), *options, "-o", output, *inputs)
        assert done.returncode != 0
        assert b"type mismatch" in done.stderr or b"different format versions" in done.stderr
        return
    said = link_with(peer_name(arch, linker), output, *options, *inputs)
    if linker == "ld-new":  # mold throws away without a word
        told = {letter for letter, path in zip("ab", inputs, strict=True) if f"error in {path}(.sframe)" in said}
        assert told == set(lost(linker, pair, relocatable="-r" in options))


def knowing(version: int, flags: int) -> str:
    """The linker for a version; none knows version 2 with errata 1, and lld does not touch it."""
    return "ld.lld" if version == 2 and flags & PCREL else {1: "ld-2.40", 2: "ld-2.44", 3: "ld-new"}[version]


def finished(arch: str, path: Path, output: Path) -> dict[str, Rows]:
    """The functions of an object that has one section, by a linker and a reader that know its version."""
    version, flags = header_of(path)
    said = link_with(peer_name(arch, knowing(version, flags)), output, "-shared", path)
    assert "sframe" not in said
    if version == 2 and flags & PCREL:
        assert run("llvm-readobj", "--sframe", output, check=True).stderr == b""
    return by_name(output, dumped(output, "readelf-2.40" if version == 1 else "readelf-new"))


def without_fixed(functions: dict[str, Rows]) -> dict[str, list[tuple[int, str, str]]]:
    """readelf 2.40 prints the return address of AMD64 in another way, and it is always the same."""
    return {name: [row[:3] for row in rows] for name, rows in functions.items()}


@pytest.mark.parametrize(("arch", "linker", "one", "other"), CASES)
def test_an_object_that_a_linker_joined_gets_one_right_section(
    arch: str, linker: str, one: str, other: str, tmp_path: Path
) -> None:
    pair, path, output = (one, other), tmp_path / "joined.o", tmp_path / "linked.o"
    joined(arch, linker, pair, path, "-r")
    if refuses(linker, pair):
        return
    kept = "".join(letter for letter in "ab" if letter not in lost(linker, pair, relocatable=True))
    if displaces(linker, pair):
        refused_without_frames(path, tmp_path / "frameless.o")
        if pair[0] != pair[1]:  # behind a section that it only copied the places are of no known order
            refused(path, output)
            return
    if not kept:
        with pytest.raises(MissingError, match=NOTHING):
            link_object(path, output)
        assert not output.exists()
        return
    result = link_object(path, output)
    producers = [pair["ab".index(letter)] for letter in kept]
    functions = expected(kept, arch)
    assert header_of(output)[0] == result.version == max(VERSION[producer] for producer in producers)
    assert result.functions == len(functions)
    assert result.left_out == []
    # What the linker dropped is told.
    dropped = len(expected("ab", arch)) - len(functions)
    assert [note.split()[0] for note in result.notes] == ([str(dropped)] if dropped else [])
    assert read_object(output) == functions
    told = finished(arch, output, tmp_path / "finished.so")
    if result.version == 1:
        assert without_fixed(told) == without_fixed(functions)
    else:
        assert told == functions


def refused_without_frames(path: Path, frameless: Path) -> None:
    """What the call frame information does not confirm is no answer."""
    options = [f"--remove-section={name}" for name in (".eh_frame", ".rela.eh_frame")]
    run(PREFIXES[machine(path)] + "objcopy-new", *options, path, frameless, check=True)
    refused(frameless, frameless.with_suffix(".linked"))


def refused(path: Path, output: Path) -> None:
    with pytest.raises(SFrameError, match="a relocation cannot be applied: it is not on the start field"):
        link_object(path, output)
    assert not output.exists()


def machine(path: Path) -> str:
    """The name of an object's machine here."""
    return {62: "amd64", 183: "aarch64"}[path.read_bytes()[18]]


@pytest.mark.parametrize(("arch", "linker", "one", "other"), CASES)
def test_a_linked_file_gets_one_right_section(arch: str, linker: str, one: str, other: str, tmp_path: Path) -> None:
    pair, path, output = (one, other), tmp_path / "joined.so", tmp_path / "fixed.so"
    joined(arch, linker, pair, path, "-shared")
    if not refuses(linker, pair):
        kept = "".join(letter for letter in "ab" if letter not in lost(linker, pair, relocatable=False))
        mended(arch, path, output, expected(kept, arch))


COLLECTS_SFRAME = ("ld-2.35", "ld-2.40", "ld-2.44", "ld.lld", "gold-2.40", "gold-2.44")
"""No code refers to .sframe, and so these collect the whole section as garbage."""
COLLECTED = ("-e", "a_leaf", "-u", "b_leaf", "-u", "b_own", "--gc-sections")


@pytest.mark.parametrize(("arch", "linker", "one", "other"), CASES)
def test_a_program_without_its_garbage_gets_one_right_section(
    arch: str, linker: str, one: str, other: str, tmp_path: Path
) -> None:
    pair, path, output = (one, other), tmp_path / "program", tmp_path / "fixed"
    inputs = [assembled(letter, producer, arch) for letter, producer in zip("ab", pair, strict=True)]
    run(peer_name(arch, linker), *COLLECTED, "-o", path, *inputs, check=True)
    if linker in COLLECTS_SFRAME:
        kept = ""
    else:
        kept = "".join(letter for letter in "ab" if letter not in lost(linker, pair, relocatable=False))
    functions = expected(kept, arch)
    functions.pop("a_own", None)
    mended(arch, path, output, functions)


def mended(arch: str, path: Path, output: Path, functions: dict[str, Rows]) -> None:
    """`fix` and `link` give a file's section these functions and no others."""
    raw = output.with_suffix(".raw")
    if not functions:
        with pytest.raises(MissingError, match=NOTHING):
            fix(path, output)
        with pytest.raises(MissingError):
            link([path], raw)
        assert not output.exists()
        assert not raw.exists()
        return
    fixed = fix(path, output)
    version, flags = header_of(output)
    assert version == fixed.version
    assert flags & SORTED
    assert fixed.functions == len(functions)
    assert fixed.left_out == []
    if version == 1:
        told = by_name(output, dumped(output, "readelf-2.40"))
        assert without_fixed(told) == without_fixed(functions)
    else:
        assert told_by(output) == functions
    if version == 2 and flags & PCREL:
        assert run("llvm-readobj", "--sframe", output, check=True).stderr == b""
    assert not [finding for report in check(output) for finding in report.findings]
    linked = link([path], raw, address=fixed.address)
    assert linked.functions == len(functions)
    assert raw.read_bytes() == sframe_of(output)


@pytest.mark.parametrize("linker", ["ld-2.35", "gold-2.44", "ld.lld"])
@pytest.mark.parametrize("producer", ["2.44", "new", "llvm"])
def test_objects_on_which_linkers_abort_are_joined(linker: str, producer: str, tmp_path: Path) -> None:
    """Functions of no size, several at one address, and rows that start where the function ends."""
    wanted = ("amd64-sections-empty-simple.o", "amd64-word-and-function-sizes.o")
    objects = [one.path for one in corpus() if one.producer == producer and one.path.name in wanted]
    assert len(objects) == 2
    joint, linked, final = tmp_path / "joint.o", tmp_path / "linked.o", tmp_path / "final.so"
    link_with(linker, joint, "-r", *objects)
    link_object(joint, linked)
    version, flags = header_of(linked)
    link_with(knowing(version, flags), final, "-shared", linked)
    assert dumped(final)
    fix(final)
    assert dumped(final)


def test_an_object_without_relocations_for_its_section_is_refused(tmp_path: Path) -> None:
    run("objcopy-new", "--remove-relocations=.sframe", assembled("a", "new"), tmp_path / "a.o", check=True)
    with pytest.raises(SFrameError, match="no relocation places the 3 functions"):
        link_object(tmp_path / "a.o", tmp_path / "linked.o")
    assert not (tmp_path / "linked.o").exists()


@pytest.mark.parametrize("arch", ["amd64", "aarch64"])
@pytest.mark.parametrize("producer", ["2.40", "2.44"])
def test_what_ld_r_of_a_compiler_s_objects_displaced_is_put_right(arch: str, producer: str, tmp_path: Path) -> None:
    """As the newest tools join the same sources, of which the compiler made the same text."""
    beside = {(one.producer, one.path.name): one.path for one in corpus() if one.arch == arch}
    linked, final, whole = tmp_path / "linked.o", tmp_path / "final.so", tmp_path / "whole.so"
    link_object(beside[producer, "program-r.o"], linked)
    link_with(PREFIXES[arch] + f"ld-{producer}", final, "-shared", linked)
    link_with(PREFIXES[arch] + "ld-new", whole, "-shared", beside["new", "program-r.o"])
    told = dict(named(final, "readelf-2.40" if producer == "2.40" else "readelf-new"))
    wanted = dict(named(whole))
    assert set(wanted) - set(told) <= {"aligned"}  # which only version 3 can say
    assert without_fixed(told) == without_fixed({name: wanted[name] for name in told})
    refused_without_frames(beside[producer, "program-r.o"], tmp_path / "frameless.o")


@pytest.mark.parametrize("arch", ["amd64", "aarch64"])
@pytest.mark.parametrize("producer", ["2.40", "2.44"])
def test_what_ld_r_of_three_objects_displaced_is_put_right(arch: str, producer: str, tmp_path: Path) -> None:
    path, linked = tmp_path / "joined.o", tmp_path / "linked.o"
    for letters in permutations("abc"):
        objects = [assembled(letter, producer, arch) for letter in letters]
        link_with(PREFIXES[arch] + f"ld-{producer}", path, "-r", *objects)
        link_object(path, linked)
        assert read_object(linked) == expected("abc", arch)


@pytest.mark.parametrize("producer", ["2.40", "2.44"])
def test_displaced_functions_of_one_size_keep_their_own_rows(producer: str, tmp_path: Path) -> None:
    offsets = {"x1": 16, "x2": 24, "x3": 32, "y1": 40, "y2": 48, "y3": 56}
    texts = {"x": "", "y": ""}
    for name, at in offsets.items():
        texts[name[0]] += f"{name}: .cfi_startproc\nnop\n.cfi_def_cfa_offset {at}\nret\n.cfi_endproc\n"
    objects = [gas_object(text, version=producer) for text in texts.values()]
    link_with(f"ld-{producer}", tmp_path / "joined.o", "-r", *objects)
    link_object(tmp_path / "joined.o", tmp_path / "linked.o")
    rows = {name: [(0, "sp+8", "u", "f"), (1, f"sp+{at}", "u", "f")] for name, at in offsets.items()}
    assert read_object(tmp_path / "linked.o") == rows


@pytest.mark.parametrize("producer", ["2.40", "2.44"])
def test_what_ld_r_of_objects_with_comdat_displaced_is_put_right(producer: str, tmp_path: Path) -> None:
    [path] = [one.path for one in corpus() if (one.path.name, one.producer) == ("comdat-r.o", producer)]
    linked, final = tmp_path / "linked.o", tmp_path / "final.so"
    link_object(path, linked)
    link_with(f"ld-{producer}", final, "-shared", linked)
    told = without_fixed(dict(named(final, "readelf-2.40" if producer == "2.40" else "readelf-new")))
    plain, unused = [(0, "sp+8", "u")], [(0, "sp+8", "u"), (1, "sp+32", "u")]
    shared = [(0, "sp+8", "u"), (1, "sp+16", "u"), (2, "sp+8", "u")]
    assert told == {"_Z3inlv": shared, "_start": plain, "fb": plain, "un1": unused, "un2": unused}


def test_joined_once_more_it_is_the_same(tmp_path: Path) -> None:
    """Three assemblers' objects, joined by different linkers one after the other."""
    first, second = tmp_path / "first.o", tmp_path / "second.o"
    link_with("ld.lld", first, "-r", assembled("a", "2.40"), assembled("b", "2.44"))
    link_object(first)
    assert header_of(first)[0] == 2
    link_with("gold-2.44", second, "-r", assembled("c", "llvm"), first, assembled("d", "new"))
    link_object(second)
    assert header_of(second)[0] == 3
    assert len(list(sframe.read(second))) == 1
    assert read_object(second) == expected("abcd")
    assert finished("amd64", second, tmp_path / "final.so") == expected("abcd")
