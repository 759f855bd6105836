"""C programs with libsframe, of 2.44 and of the newest, read in converted sections what walkback read before."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpus import corpus
from peers import root
from sections.joining import placed_sframe
from walkback import convert, sframe
from walkback.table.rule import PartKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from walkback import UnwindTable

pytestmark = pytest.mark.peers


def sample(name: str, producer: str, arch: str) -> Path:
    [found] = [one.path for one in corpus() if (one.path.name, one.producer, one.arch) == (name, producer, arch)]
    return found


@pytest.fixture(scope="module")
def libsframe(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bytes, int], list[str]]:
    """Runs the program of reader.c, made with libsframe 2.44 or the newest."""
    folder = tmp_path_factory.mktemp("libsframe")
    # The newest headers want macros of a header that their package does not have.
    (folder / "ansidecl.h").write_text(
        "#define ATTRIBUTE_PACKED __attribute__ ((packed))\n#define ATTRIBUTE_UNUSED __attribute__ ((unused))\n"
    )
    for name, library in (("trixie", "libsframe.so.1"), ("sid", "libsframe.so.3")):
        libraries = root(name) / "usr/lib/x86_64-linux-gnu"
        loader = libraries / "ld-linux-x86-64.so.2"
        link = f"-Wl,--allow-shlib-undefined,-rpath,{libraries},--dynamic-linker,{loader}"
        include = [f"-I{folder}", "-idirafter", str(root(name) / "usr/include")]
        source = Path(__file__).with_name("reader.c")
        subprocess.run(["gcc", *include, "-o", folder / name, source, libraries / library, link], check=True)

    def read(version: str, contents: bytes, address: int) -> list[str]:
        (folder / "section").write_bytes(contents)
        program = folder / {"2.44": "trixie", "new": "sid"}[version]
        done = subprocess.run([program, folder / "section", hex(address)], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout.decode().splitlines()

    return read


def lines(table: UnwindTable) -> list[str]:
    """What the reader should print of a table of walkback."""
    found = []
    for number in sorted(range(len(table)), key=lambda one: int(table.range_start[one])):
        found.append(f"function {int(table.range_start[number]):#x} {table.range_size[number]}")
        first = int(table.range_first_row[number])
        for row in range(first, first + int(table.range_rows[number])):
            rule = table.rule(row)
            base = int(rule.cfa.register == table.machine.sp)
            places = [str(part.offset) if part.kind is PartKind.AT_CFA else "-" for part in (rule.ra, rule.fp)]
            found.append(" ".join(["row", str(table.row_offset[row]), str(base), str(rule.cfa.offset), *places]))
    return found


LINKED = [
    ("program.so", "new", "amd64"),
    ("program.so", "2.44", "amd64"),
    ("program.so", "2.40", "amd64"),
    ("program.so", "new", "aarch64"),
    ("program.so", "2.44", "aarch64"),
    ("large-and-plain.so", "2.44", "amd64"),
    ("program-static", "new", "amd64"),
]


@pytest.mark.parametrize(
    ("reader", "version", "pcrel"), [("2.44", 2, False), ("new", 2, True), ("new", 2, False), ("new", 3, True)]
)
@pytest.mark.parametrize(("name", "producer", "arch"), LINKED)
def test_libsframe_reads_the_same_rows_in_what_was_converted(
    name: str,
    producer: str,
    arch: str,
    reader: str,
    version: int,
    pcrel: bool,
    libsframe: Callable[[str, bytes, int], list[str]],
    tmp_path: Path,
) -> None:
    """But of flex functions, whose words libsframe gives as they are, and which version 2 does not have."""
    path, output = sample(name, producer, arch), tmp_path / "converted"
    [source] = sframe.read(path)
    [piece] = source.pieces()
    plain = piece.section.functions.fde_type == 0
    result = convert(path, output, version=version, pcrel=pcrel, leave_out=True)
    assert len(result.left_out) == (0 if version == 3 else len(plain) - plain.sum())
    address, contents = placed_sframe(output)
    assert contents[2] == version
    flex = {f"function {int(start):#x}" for start in piece.table.range_start[~plain]}
    told = [one for one in by_function(libsframe(reader, contents, address)) if one[0].rsplit(" ", 1)[0] not in flex]
    assert told == by_function(lines(piece.table.chosen(plain.nonzero()[0])))


def by_function(text: list[str]) -> list[list[str]]:
    """The reader's lines, those of each function together."""
    found: list[list[str]] = []
    for line in text:
        if line.startswith("function"):
            found.append([])
        found[-1].append(line)
    return found


def test_libsframe_reads_raw_bytes_of_the_other_byte_order(
    libsframe: Callable[[str, bytes, int], list[str]], tmp_path: Path
) -> None:
    """The newest turns what is not in its own byte order; s390x is big-endian of itself."""
    path = sample("program.so", "new", "s390x")
    [source] = sframe.read(path)
    [piece] = source.pieces()
    address, contents = placed_sframe(path)
    told = libsframe("new", contents, address)
    plain = piece.section.functions.fde_type == 0
    assert plain.all()
    assert told == lines(piece.table)
    raw = tmp_path / "raw"
    raw.write_bytes(contents)
    convert(raw, tmp_path / "little", version=3, byteorder="little")
    turned = (tmp_path / "little").read_bytes()
    assert turned[:2] == b"\xe2\xde"
    assert contents[:2] == b"\xde\xe2"
    assert libsframe("new", turned, address) == told
    convert(tmp_path / "little", version=3, byteorder="big")
    assert libsframe("new", (tmp_path / "little").read_bytes(), address) == told
