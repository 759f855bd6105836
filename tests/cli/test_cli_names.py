"""Names that a file gives to members, sections and symbols: no byte of them moves the cursor or ends a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.awkward import lines
from cli.commands import run
from sframefiles import placing, relocatable, small, written

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ("member", "text", "section", "symbol")
# Click takes colours out of what goes to a pipe, so they would prove nothing.
SPOILT = "\n\x1b]0;\x07\x7f\udcff\x9b"
"""What each name ends with: a new line, the title of the window, a byte that is no UTF-8, a control character of C1."""
SPELLED = "\\x0a\\x1b]0;\\x07\\x7f\\xff\\u009b"


def spoilt(folder: Path, **fields: Any) -> Path:
    """An archive with one object, whose section has a function that cannot be read and a wrong one."""
    builder = small()
    builder.functions[0].rows[1].words = [16, 8]
    builder.functions[1].rows[1].info |= 0x60
    elf = relocatable(builder, placing(3))
    elf.sections[1].name = f"text{SPOILT}"
    elf.sections[2].name = f"section{SPOILT}"
    symtab = next(iter(elf.symbol_tables))
    elf.symbol_tables[symtab].clear()
    elf.symbol(symtab, "", 0, kind=0, binding=0)
    elf.symbol(symtab, "", 0, section=1, kind=3, binding=0)
    elf.symbol(symtab, f"symbol{SPOILT}", 0, section=1, size=32)
    image = elf.build()
    for name, value in fields.items():
        image.section(2, name, value)
    member = f"member{SPOILT}".encode(errors="surrogateescape")
    header = f"{f'#1/{len(member)}':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(member) + len(image.data):<10}`\n".encode()
    return written(folder, b"!<arch>\n" + header + member + bytes(image), "all.a")


def spelled(text: list[str]) -> set[str]:
    """The places whose names are in the text, each in one line."""
    return {place for place in PLACES if any(f"{place}{SPELLED}" in line for line in text)}


@pytest.mark.parametrize(
    ("args", "places"),
    [
        (["show"], {"member", "text", "section", "symbol"}),
        (["check"], {"member", "section", "symbol"}),
        (["check", "--for", "gnu-ld"], {"member", "section", "symbol"}),
        (["find", "1"], {"member", "text", "section", "symbol"}),
    ],
)
def test_text_has_every_name_with_its_control_characters_spelled_out(
    args: list[str], places: set[str], tmp_path: Path
) -> None:
    verb, *targets = args
    done = run(verb, spoilt(tmp_path), *targets)
    assert spelled(lines(done.stdout)) == places
    assert spelled(lines(done.stderr)) == ({"member", "section"} if verb == "show" else set())


@pytest.mark.parametrize(
    ("args", "places"),
    [
        (["show"], {"member", "text", "section", "symbol"}),
        (["check"], {"member", "section", "symbol"}),
        (["find", "1"], {"member", "section", "symbol"}),
    ],
)
def test_json_is_still_one_object_a_line(args: list[str], places: set[str], tmp_path: Path) -> None:
    verb, *targets = args
    done = run(verb, "--json", spoilt(tmp_path), *targets)
    objects = [json.loads(line) for line in lines(done.stdout)[:-1]]
    text = json.dumps(objects, ensure_ascii=False)
    whole = json.dumps(SPOILT.replace("\udcff", "\\xff"), ensure_ascii=False)[1:-1]
    assert {place for place in PLACES if f"{place}{whole}" in text} == places
    assert spelled(lines(done.stderr)) == ({"member", "section"} if verb == "show" else set())


@pytest.mark.parametrize("damage", [{"sh_size": 1 << 40}, {"sh_size": 5}, {"sh_flags": 0x802}])
@pytest.mark.parametrize("args", [["show"], ["find", "1"]])
def test_an_error_about_such_names_is_one_line(args: list[str], damage: dict[str, int], tmp_path: Path) -> None:
    verb, *targets = args
    done = run(verb, spoilt(tmp_path, **damage), *targets)
    assert lines(done.stdout) == [""]
    line, end = lines(done.stderr)
    assert (spelled([line]), end) == ({"member", "section"}, "")
