"""Several sections in one: a consumer sees the first and no other, so only the first decides whether it loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from sframefiles import SFRAME, linked, placing, relocatable, small, unplaced, written
from walkback.sections.check import check
from walkback.sframe.checking import Report, Severity

if TYPE_CHECKING:
    from pathlib import Path

    from elfbuilder import ElfBuilder
    from sframebuilder import SFrameBuilder

CONSUMERS = {"linux": 3, "glibc": 2, "gnu-ld": 3}
"""And the version that each takes."""


def word_size(builder: SFrameBuilder) -> None:
    builder.functions[0].rows[1].info |= 0x60


def row_order(builder: SFrameBuilder) -> None:
    builder.functions[1].rows[2].start = 1


def extra_words(builder: SFrameBuilder) -> None:
    builder.functions[1].rows[2].info = 5 << 1
    builder.functions[1].rows[2].words = [16, -16, 1, 2, 3]


def row_type(builder: SFrameBuilder) -> None:
    builder.functions[2].overrides["info"] = 5


def flags(builder: SFrameBuilder) -> None:
    builder.header["flags"] = 0xF5


def abi(builder: SFrameBuilder) -> None:
    builder.header["abi_arch"] = 9


def index_bounds(builder: SFrameBuilder) -> None:
    builder.header["num_fdes"] = 200


DAMAGE = {
    word_size: "row-word-size",
    row_order: "row-order",
    extra_words: "row-extra-words",
    row_type: "function-fre-type",
    flags: "header-flags",
    abi: "header-abi",
    index_bounds: "index-bounds",
}
"""And the finding that comes of it."""


def section(consumer: str, position: int, damage: Callable[..., None] | None = None) -> bytes:
    """A section up to the alignment, as it stands at this position."""
    builder = small(CONSUMERS[consumer], address=SFRAME + position)
    if damage is not None:
        damage(builder)
    data = unplaced(builder) if consumer == "gnu-ld" and damage is not flags else builder.bytes()
    return data + bytes(-len(data) % 8)


def containing(consumer: str, *sections: bytes) -> ElfBuilder:
    """A file of the kind that the consumer reads."""
    if consumer != "gnu-ld":
        return linked(b"".join(sections))
    starts = [sum(map(len, sections[:number])) for number in range(len(sections))]
    relocations = [
        (start + offset, kind, symbol, addend) for start in starts for offset, kind, symbol, addend in placing(3)
    ]
    return relocatable(b"".join(sections), relocations)


def reported(folder: Path, content: ElfBuilder, consumer: str) -> tuple[Report, list[str]]:
    """The report, and the refusals in it."""
    (report,) = check(written(folder, content), consumer=consumer)
    return report, [one.message for one in report.findings if one.severity is Severity.REFUSED]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_second_section_that_is_broken_changes_nothing_for_a_consumer(
    consumer: str, damage: Callable[..., None], tmp_path: Path
) -> None:
    first = section(consumer, 0)
    alone, refusals = reported(tmp_path, containing(consumer, first), consumer)
    assert (alone.loads, refusals) == (True, [])
    both, refusals = reported(tmp_path, containing(consumer, first, section(consumer, len(first), damage)), consumer)
    assert DAMAGE[damage] in {finding.code for finding in both.findings}
    assert (both.loads, refusals) == (True, [])


@pytest.mark.parametrize("damage", [word_size, extra_words, row_type, abi])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_second_section_that_is_sound_saves_no_broken_first(
    consumer: str, damage: Callable[..., None], tmp_path: Path
) -> None:
    first = section(consumer, 0, damage)
    alone, refusals = reported(tmp_path, containing(consumer, first), consumer)
    assert alone.loads is False
    both, same = reported(tmp_path, containing(consumer, first, section(consumer, len(first))), consumer)
    assert (both.loads, same) == (False, refusals)
