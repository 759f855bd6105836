"""`--source`: which tables a verb reads, and where it says that rules are from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.hello import mixed
from cli.inprocess import run, told_object

FROM_FRAMES = {"name": ".eh_frame", "kind": "cfi", "bytes": 152, "functions": 4, "covered": 3}
FROM_CODE = {"name": "code", "kind": "code", "bytes": None, "functions": 1, "covered": 1}


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_what_comes_from_each_table_is_told(tmp_path: Path, verb: str) -> None:
    text = run(verb, mixed(tmp_path), "-o", tmp_path / "out").stdout
    assert (
        "  covered: 4 of 5 functions, 4134 of 4143 bytes of code (99.783 %)\n"
        "    from .eh_frame: 3 of 4 functions, 35 of 44 bytes of code (79.545 %)\n"
        "    from the code: 1 of 1 function, 4099 of 4099 bytes of code (100 %)\n"
    ) in text


def test_what_comes_from_one_table_is_told_once(hello: Path) -> None:
    assert "from .eh_frame" not in run("derive", hello, "-o", hello.parent / "out").stdout


def test_json_counts_what_comes_from_each_table(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    expected: list[dict[str, Any]] = [
        FROM_FRAMES | {"code_bytes": 44, "covered_bytes": 35},
        FROM_CODE | {"code_bytes": 4099, "covered_bytes": 4099},
    ]
    found = told_object("derive", path, "-o", tmp_path / "out")
    assert found["sources"] == expected
    for total in ("functions", "covered", "code_bytes", "covered_bytes"):
        assert found[total] == sum(one[total] for one in expected)
    assert told_object("derive", path, "-o", tmp_path / "out", "--source", "cfi")["sources"] == expected[:1]
