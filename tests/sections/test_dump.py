"""What the tables of damaged files say: text, JSON or an error of walkback."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

from docfiles import of_go
from effort import rounds
from gopclntab.gotables import TEXT
from orc.orctables import module
from sections.test_reading import program
from walkback.base.errors import WalkbackError
from walkback.sections.dump import TableView, read_all


@pytest.mark.parametrize("base", [of_go(), bytes(module().build()), program((TEXT + 32, 64), (TEXT + 0xD0, 16))])
def test_nothing_else_comes_out_of_damaged_files(base: bytes) -> None:
    chance = random.Random(5)
    for _ in range(rounds(600, quick=200)):
        data = bytearray(base)
        for _ in range(chance.choice((1, 2, 4))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with suppress(WalkbackError):
            for read in read_all(data, tables=chance.choice(("auto", "cfi", "go", "orc", "code"))):
                view, used = TableView.of(read, ())
                assert not used
                lines = b"".join(bytes(part) for part in view.json()).splitlines()
                assert len([json.loads(line) for line in lines]) == len(read.table) + 1
                assert b"".join(bytes(part) for part in view.text()).count(b", from ") == len(read.table)
