"""Columns to text: the same as str.format makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from effort import examples
from walkback.base import render as render_module
from walkback.base.arrays import I64
from walkback.base.render import LineForm, render

pytestmark = pytest.mark.kernel

FORMATS = {"decimal": "{:d}", "unsigned": "{:d}", "hex": "{:x}", "HEX": "{:X}", "hex16": "{:016x}"}
EDGES = [0, 1, 9, 10, 15, 16, 99, 100, 2**31, 2**32 - 1, 2**32, 10**18, 10**19, 2**63 - 1, 2**63, 2**64 - 1]
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1))


def text_of(*arguments: Any, **options: Any) -> bytes:
    return b"".join(bytes(piece) for piece in render(*arguments, **options))


def columns(first: list[int], count: list[int]) -> tuple[I64, I64]:
    return np.array(first, np.int64), np.array(count, np.int64)


def number_text(notation: str, value: int) -> bytes:
    if notation == "decimal":
        value = value - 2**64 if value >= 2**63 else value
    return FORMATS[notation].format(value).encode()


@pytest.mark.parametrize("notation", FORMATS)
def test_numbers(notation: str) -> None:
    column = np.array(EDGES, np.uint64)
    got = text_of(
        LineForm((notation, column), b"\n"), LineForm(), LineForm(), *columns([0] * len(EDGES), [0] * len(EDGES))
    )
    assert got.split(b"\n")[:-1] == [number_text(notation, value) for value in EDGES]


def test_signed_columns() -> None:
    values = [0, -1, 1, -9, -10, 2**63 - 1, -(2**63), -(2**31)]
    line = LineForm(*[field for name in FORMATS for field in ((name, np.array(values, np.int64)), b" ")])
    got = text_of(LineForm(), line, LineForm(b"\n"), *columns([0], [len(values)])).split()
    assert got == [number_text(name, value % 2**64) for value in values for name in FORMATS]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
def test_signed_columns_of_every_width(dtype: str) -> None:
    check_width(dtype)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
def test_unsigned_columns_of_every_width(dtype: str) -> None:
    check_width(dtype)


def check_width(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = [info.min, info.max, 0, 7]
    got = text_of(
        LineForm(("decimal", np.array(values, dtype)), b"\n"), LineForm(), LineForm(), *columns([0] * 4, [0] * 4)
    )
    assert got == b"".join(b"%d\n" % value for value in values)


def test_columns_that_are_not_contiguous_or_of_the_other_byte_order() -> None:
    column = np.arange(20, dtype=">u8")[::2]
    assert (
        text_of(LineForm(("unsigned", column)), LineForm(), LineForm(), *columns([0] * 10, [0] * 10))
        == b"024681012141618"
    )


def test_nothing() -> None:
    assert text_of(LineForm(), LineForm(), LineForm(), *columns([], [])) == b""
    assert text_of(LineForm(), LineForm(), LineForm(), *columns([0, 0], [0, 0])) == b""
    assert text_of(LineForm(b""), LineForm(), LineForm(b""), *columns([0], [0])) == b""


def test_items_without_rows_have_head_and_foot() -> None:
    arguments = LineForm(b"<", ("decimal", np.arange(3))), LineForm(("decimal", np.arange(2)), b","), LineForm(b">")
    assert text_of(*arguments, *columns([0, 0, 0], [0, 2, 0])) == b"<0><10,1,><2>"


def test_rows_may_be_shared_skipped_and_in_any_order() -> None:
    row = LineForm(("decimal", np.arange(5)))
    assert text_of(LineForm(b"["), row, LineForm(b"]"), *columns([3, 0, 3], [2, 1, 2])) == b"[34][0][34]"


@pytest.mark.parametrize("between", [b"", b",", b", and "])
def test_between_stands_between_rows_only(between: bytes) -> None:
    row = LineForm(("decimal", np.arange(6)))
    got = text_of(LineForm(b"["), row, LineForm(b"]"), *columns([0, 0, 1, 3], [0, 1, 2, 3]), between)
    assert got == b"[][0][1" + between + b"2][3" + between + b"4" + between + b"5]"


def test_texts_are_chosen_by_a_column() -> None:
    texts = [b"", b"one", b"two two"]
    line = LineForm((texts, np.array([2, 0, 1, 1], np.uint8)), b"|", ([b"x"], np.zeros(4, np.int32)))
    assert text_of(LineForm(), line, LineForm(), *columns([0], [4])) == b"two two|x|xone|xone|x"


def test_a_choice_that_there_is_not_is_an_error(interpreted: bool) -> None:
    # plain Python counts -1 from the end
    for choice in (1,) if interpreted else (-1, 1):
        with pytest.raises(IndexError):
            text_of(LineForm(([b"x"], np.array([choice]))), LineForm(), LineForm(), *columns([0], [0]))


def test_rows_that_there_are_not_are_an_error() -> None:
    with pytest.raises((IndexError, TypeError)):
        text_of(LineForm(), LineForm(("decimal", np.arange(2))), LineForm(), *columns([0], [3]))


def test_a_text_longer_than_the_buffer() -> None:
    long = b"x" * (vars(render_module)["_BUFFER_SIZE"] + 100)
    got = text_of(LineForm(long), LineForm(([b"a", long], np.array([0, 1]))), LineForm(b"!"), *columns([0], [2]), b", ")
    assert got == long + b"a, " + long + b"!"


@pytest.mark.parametrize("away", range(-30, 30, 3))
def test_the_end_of_the_buffer(monkeypatch: pytest.MonkeyPatch, away: int) -> None:
    """Whatever does not fit comes whole in the next piece."""
    monkeypatch.setattr(render_module, "_BUFFER_SIZE", 256)
    count = 40
    row = LineForm(
        b"x" * (97 + away), ("decimal", np.arange(count) * 10**9), b"y" * 7, ([b"", b"z" * 20], np.arange(count) % 2)
    )
    pieces = [
        bytes(piece) for piece in render(LineForm(b"head"), row, LineForm(b"foot"), *columns([0], [count]), b", ")
    ]
    rows = [b"x" * (97 + away) + b"%d" % (n * 10**9) + b"y" * 7 + b"z" * 20 * (n % 2) for n in range(count)]
    assert b"".join(pieces) == b"head" + b", ".join(rows) + b"foot"
    assert max(map(len, pieces)) <= 256
    assert len(pieces) > 1


def test_pieces_are_valid_until_the_next_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_module, "_BUFFER_SIZE", 64)
    row = LineForm(("hex16", np.arange(100)))
    for piece in render(LineForm(), row, LineForm(), *columns([0], [100])):
        assert len(piece) % 16 == 0


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("size", [40, 1 << 18])
def test_rows_may_be_made_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch, step: int, size: int) -> None:
    """A function gives the line of some rows from a wanted one on."""
    monkeypatch.setattr(render_module, "_BUFFER_SIZE", size)
    asked = []

    def rows_from(wanted: int) -> LineForm:
        asked.append(wanted)
        first = wanted - wanted % step
        part = np.arange(first, min(first + step, 12))
        return LineForm(b"r", ("decimal", part), ([b"even", b"odd"], part % 2), start=first)

    first, rows = columns([0, 0, 5, 5, 9, 0], [3, 0, 4, 2, 3, 0])
    got = text_of(LineForm(b"[", ("decimal", np.arange(6)), b":"), rows_from, LineForm(b"]"), first, rows, b",")
    texts = [b"r%d%s" % (n, b"odd" if n % 2 else b"even") for n in range(12)]
    items = [b"[%d:%s]" % (n, b",".join(texts[f : f + r])) for n, (f, r) in enumerate(zip(first, rows, strict=True))]
    assert got == b"".join(items)
    assert all(0 <= one < 12 for one in asked)


FIELD = st.one_of(
    st.binary(max_size=6).map(lambda text: ("text", text)),
    st.sampled_from(sorted(FORMATS)).map(lambda name: ("number", name)),
    st.lists(st.binary(max_size=5), min_size=1, max_size=3).map(lambda texts: ("choice", texts)),
)


def make_line(data: DataObject, fields: list[tuple[str, Any]], count: int) -> tuple[LineForm, list[bytes]]:
    """A Line for `count` entries, and the text of each by str.format."""
    parts, expected = [], [b""] * count
    for kind, what in fields:
        if kind == "text":
            parts.append(what)
            expected = [text + what for text in expected]
        elif kind == "number":
            values = data.draw(st.lists(NUMBERS, min_size=count, max_size=count))
            parts.append((what, np.array(values, np.uint64)))
            expected = [text + number_text(what, value) for text, value in zip(expected, values, strict=True)]
        else:
            picks = data.draw(st.lists(st.integers(0, len(what) - 1), min_size=count, max_size=count))
            parts.append((what, np.array(picks, np.int64)))
            expected = [text + what[pick] for text, pick in zip(expected, picks, strict=True)]
    return LineForm(*parts), expected


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_pages(data: DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 4), max_size=5))
    fields = st.lists(FIELD, max_size=4)
    between = data.draw(st.binary(max_size=3))
    head, heads = make_line(data, data.draw(fields), len(counts))
    row, rows = make_line(data, data.draw(fields), sum(counts))
    foot, feet = make_line(data, data.draw(fields), len(counts))
    first = np.cumsum(counts, dtype=np.int64) - np.array(counts, np.int64)
    expected = b"".join(
        heads[i] + between.join(rows[first[i] : first[i] + counts[i]]) + feet[i] for i in range(len(counts))
    )
    assert text_of(head, row, foot, first, np.array(counts, np.int64), between) == expected
