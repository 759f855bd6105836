"""Functions in text sections of their own, as compilers make them: very many, and each look-up in one of them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from elfbuilder import ElfBuilder
from sframebuilder import SFrameBuilder, row
from sframefiles import GNU_SFRAME, PC64, unplaced, written
from walkback.sframe.files import read

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 3000


def test_functions_of_very_many_text_sections_are_found_in_theirs(tmp_path: Path) -> None:
    chance = random.Random(1)
    elf = ElfBuilder()
    texts = [elf.code(f".text.{number}", 64) for number in range(COUNT)]
    # Some sections have several functions, some none, and they come in no order.
    places = [(chance.choice(texts), chance.randrange(0, 48), chance.randrange(1, 16)) for _ in range(COUNT)]
    builder = SFrameBuilder(3)
    for _, _, size in places:
        builder.function(0, size, [row(0, 1, [8]), row(1, 1, [16])])
    section = elf.section(".sframe", unplaced(builder), kind=GNU_SFRAME, flags=2)
    symtab = elf.symtab()
    symbols = {text: elf.symbol(symtab, "", 0, section=text, kind=3, binding=0) for text in texts}
    entries = [(0x1C + 16 * number, PC64, symbols[text], start) for number, (text, start, _) in enumerate(places)]
    elf.relocations(section, symtab, entries)
    (source,) = read(written(tmp_path, elf))
    (piece,) = source.pieces()

    inside: dict[int, list[tuple[int, int, int]]] = {text: [] for text in texts}
    for number, (text, start, size) in enumerate(places):
        inside[text].append((start, number, size))
    for text in [0, *texts, section, COUNT + 100]:
        # The one that starts last holds, of several with one start the last.
        expected = [-1] * 64
        for start, number, size in sorted(inside.get(text, [])):
            expected[start : start + size] = [number] * size
        ranges, rows = piece.table.find_many(range(64), section=text)
        assert ranges.tolist() == expected
        assert rows.tolist() == [
            -1 if number < 0 else 2 * number + (address > places[number][1]) for address, number in enumerate(expected)
        ]
