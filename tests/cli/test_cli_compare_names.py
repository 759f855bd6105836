"""`walkback compare`: names of files and symbols that spoil no line."""

from __future__ import annotations

import json
from pathlib import Path

from cli.awkward import lines
from cli.commands import run as process
from cli.commands import told
from cli.compared import NOT_TWO, added
from cli.hello import AWKWARD, SPELLED, program, spoilt


def awkward(folder: Path, *, with_section: bool = True) -> Path:
    path = spoilt(program(folder, name=AWKWARD))
    return added(path) if with_section else path


def test_names_of_files_and_symbols_spoil_no_line(tmp_path: Path) -> None:
    path = awkward(tmp_path)
    text = lines(process("compare", path).stdout)
    assert text[0] == f"{tmp_path}/two\\x0alines\\x07.new: .eh_frame and .sframe"
    assert f" {SPELLED} (3 bytes): " in text[3]
    text = lines(process("compare", path, path).stdout)
    assert text[0].endswith(" and " + text[0].partition(": ")[0] + " .sframe")


def test_json_has_every_name_whole_in_one_line(tmp_path: Path) -> None:
    path = awkward(tmp_path)
    *text, end = lines(process("compare", path, path, "--json").stdout)
    summary, only, _ = map(json.loads, text)
    assert (summary["file"], summary["other"], end) == (str(path), f"{path} .sframe", "")
    assert only["name"] in {"l\n\x07\\xff", "l\n\x07\udcff"}


def test_an_error_about_such_a_name_is_one_line(tmp_path: Path) -> None:
    path = awkward(tmp_path, with_section=False)
    name = f"{tmp_path}/two\\x0alines\\x07"
    assert told(process("compare", path)) == (
        1,
        f"{name}: {NOT_TWO}",
    )
    path.write_bytes(b"text")
    assert told(process("compare", path))[1].startswith(f"{name}: this is not an ELF file")
