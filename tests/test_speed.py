"""What `make speed` says of ratios: noise is no reason to fail, and a slower program is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = str(Path(__file__).resolve().parent.parent / "bench")
sys.path.insert(0, BENCH)

from against import Compared  # noqa: E402
from overtime import page  # noqa: E402

sys.path.remove(BENCH)  # it has modules that are called as folders of tests are


def compared(*ratios: float) -> Compared:
    return Compared("work", "time", "ms", 1.0, 1.0, sorted(ratios))


@pytest.mark.parametrize(
    ("ratios", "is_worse"),
    [
        ((1.2,) * 7, True),
        ((1.2,) * 6, False),
        ((1.16,) * 6 + (1.1,), False),
        ((9.0,) * 3 + (1.0,) * 4, False),
        ((1.2,) * 11 + (0.5,), True),
        ((1.14,) * 19, False),
    ],
    ids=["all of seven", "six are too few", "one of seven less", "three slow runs", "one of twelve less", "below"],
)
def test_a_measure_fails_if_chance_hardly_makes_so_many_ratios(ratios: tuple[float, ...], is_worse: bool) -> None:
    found = compared(*ratios)
    assert found.is_worse == is_worse
    assert ("SLOWER" in found.line()) == is_worse


def test_the_page_has_a_plot_for_each_measure() -> None:
    measures = [{"what": "some <work>", "figure": figure, "ratio": 0.5} for figure in ("time", "memory")]
    others = [{"revision": name, "measures": measures} for name in ("older", "old")]
    text = page({"revision": "0123456789", "date": "now", "machine": "this", "against": others})
    assert text.count("<polyline") == 2
    assert text.count("some &lt;work&gt;") == 2
    assert text.count(": 2.00</title>") == 4
