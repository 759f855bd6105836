"""Files of which one part cannot be read: the sound parts are answered, the other is told, and the status is 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.commands import VERBS, on, told
from sframefiles import GNU_SFRAME, SFRAME, archive, linked, placing, relocatable, small, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=[".sframe", ".sframe.cold"])
def two_sections(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, str]:
    """A library with two sections, and the names of the one that reaches beyond the end and of the other."""
    elf = linked(small().bytes())
    elf.section(".sframe.cold", small().bytes(), kind=GNU_SFRAME, flags=2, addr=SFRAME)
    image = elf.build()
    names = [section.name for section in elf.sections]
    image.section(names.index(request.param), "sh_size", 1 << 40)
    (sound,) = {".sframe", ".sframe.cold"} - {request.param}
    return written(tmp_path, image), request.param, sound


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """An archive whose second of three members cannot be read."""
    good = relocatable(small(), placing(3))
    bad = good.build()
    bad.data[4] = 1
    members = [written(tmp_path, good, "one.o"), written(tmp_path, bad, "bad.o"), written(tmp_path, good, "two.o")]
    return archive(tmp_path, "all.a", *members)


@pytest.mark.whole
@pytest.mark.parametrize("verb", VERBS)
def test_a_section_that_cannot_be_read_hides_no_other(verb: str, two_sections: tuple[Path, str, str]) -> None:
    path, unreadable, sound = two_sections
    done = on(verb, path)
    status, line = told(done)
    assert status == 3
    assert f"{unreadable} (0x10000000000 bytes at " in line
    assert "reaches beyond the end of the file" in line
    alone = on(verb, path, "--section", sound)
    assert done.stdout == alone.stdout != b""


@pytest.mark.parametrize("verb", VERBS)
def test_a_member_that_cannot_be_read_hides_no_other(verb: str, library: Path) -> None:
    done = on(verb, library)
    assert told(done) == (3, f"{library}(bad.o): 32-bit ELF files are not supported")
    text = done.stdout.decode()
    assert f"{library}(one.o)" in text
    assert f"{library}(two.o)" in text


@pytest.mark.parametrize("verb", ["show", "find"])
def test_a_section_that_is_not_asked_for_is_not_complained_of(verb: str, two_sections: tuple[Path, str, str]) -> None:
    path, _, sound = two_sections
    done = on(verb, path, "--section", sound)
    assert (done.returncode, done.stderr) == (0, b"")
