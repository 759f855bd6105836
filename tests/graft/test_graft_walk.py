"""A program with grafted tables walks its own stack with the peer's libsframe, as far as `backtrace()` does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from grafting import output_of
from peers import BIN, peer
from walkback.sections.install import add

SOURCE = Path(__file__).with_name("walk.c")
SID = BIN.parent / "sid/usr"
LIBSFRAME = SID / "lib/x86_64-linux-gnu/libsframe.so.3"
OBJECTS = {"calls": "p{11}ccp", "qsort": "p{4}c+p{4}ccp", "raise": "p{4}c+p{4}ccp", "fault": "p{4}cp{4}ccp"}
"""Whose the frames are from the inside out, the program's or the C library's. Outermost are main, two functions of the
C library, and _start."""


@pytest.fixture(scope="module", params=["the machine's", "the newest"])
def libraries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a C library and its loader, both grafted, and what the program needs besides."""
    peer("readelf-new")
    folder = tmp_path_factory.mktemp("libraries")
    maps = Path("/proc/self/maps").read_text()
    libc = Path(re.findall(r" (/\S*/libc\.so\.6)$", maps, re.MULTILINE)[0])
    origin = libc.parent if request.param == "the machine's" else LIBSFRAME.parent
    for name in ("libc.so.6", "ld-linux-x86-64.so.2"):
        assert add(origin / name, folder / name).proof.equal
    for path in (LIBSFRAME, origin / "libgcc_s.so.1"):
        (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(
    scope="module", params=["-fomit-frame-pointer", "-fno-omit-frame-pointer", "-no-pie", "-fomit-frame-pointer -s"]
)
def program(request: pytest.FixtureRequest, libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, grafted."""
    folder = tmp_path_factory.mktemp("program")
    # libsframe's headers want two macros of a header that the package does not have.
    (folder / "ansidecl.h").write_text(
        "#define ATTRIBUTE_PACKED __attribute__ ((packed))\n#define ATTRIBUTE_UNUSED __attribute__ ((unused))\n"
    )
    command = ["gcc", "-O2", *request.param.split(), f"-I{folder}", f"-I{SID / 'include'}", SOURCE, LIBSFRAME]
    subprocess.run([*command, "-Wl,--allow-shlib-undefined", "-o", folder / "walk"], check=True)
    assert not add(folder / "walk").derived.uncovered
    return folder / "walk"


@pytest.mark.peers
def test_a_program_walks_its_own_stack_as_far_as_backtrace_does(program: Path, libraries: Path) -> None:
    loader = (libraries / "ld-linux-x86-64.so.2", "--inhibit-cache", "--library-path", libraries)
    text = output_of(*loader, program)
    tables = dict(re.findall(r"^table (\S+) (\d+)$", text, re.MULTILINE))
    assert sorted(tables) == ["ld-linux-x86-64.so.2", "libc.so.6", "walk"], text
    walks = {
        (place, who): found.split() for place, who, found in re.findall(r"(?m)^(\w+) (backtrace|sframe) (.*)$", text)
    }
    assert list(walks) == [(place, who) for place in OBJECTS for who in ("backtrace", "sframe")], text
    for place, expected in OBJECTS.items():
        assert walks[place, "sframe"] == walks[place, "backtrace"], place
        objects = "".join("p" if found.startswith("walk+") else "c" for found in walks[place, "sframe"])
        assert re.fullmatch(expected, objects), place
