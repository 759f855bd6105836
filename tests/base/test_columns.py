"""NamedColumns for other libraries: Arrow's streams, tables in notebooks, and what has columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import walkback
from recorded import hello, recording
from walkback.base.columns import NamedColumns

TEXT = np.array(["<a>", None, "b & c"], object)


class Stream:
    """NamedColumns of which nothing but the stream is known."""

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.columns.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array([1, 2**64 - 1, 3], np.uint64), "uint64"),
        (np.array([1, -2, 3], np.int8), "int8"),
        (np.array([True, False, True]), "bool"),
        (np.ma.array([1, 2, 3], mask=[False, True, False]), "int64"),
        (TEXT, "string"),
        (np.array(["same", "same", "same"]), "string"),
        (np.array([b"\0\xff", b"", b"x"], object), "binary"),
        (np.ma.array([bytearray(b"a"), None, bytearray()], np.object_, mask=[False, True, False]), "binary"),
        (np.ma.array(["a", "?", "b"], np.object_, mask=[False, True, False]), "string"),
        (np.array([None, None], object), "string"),
        (np.array([], object), "string"),
        (np.array([b"a", b"bc"]), "binary"),
        (np.array([1, -2, 3], ">i4"), "int32"),
        (np.arange(6, dtype=np.uint16)[::-2], "uint16"),
        (np.array([2**70, 1], object), "decimal128(38, 0)"),
        (np.array([-(2**63) - 1, None], object), "decimal128(38, 0)"),
        (np.array([Decimal("1.5"), Decimal("0.001"), None], object), "decimal128(38, 3)"),
        (np.array([1.5, np.inf], np.float32), "float"),
    ],
)
def test_each_type_comes_through(values: np.ndarray, kind: str) -> None:
    table = pyarrow.table(Stream(NamedColumns(column=values)))
    assert str(table.schema.field("column").type) == kind
    assert table["column"].to_pylist() == values.tolist()


def test_any_name_and_any_text_comes_through() -> None:
    names = ["values0", "missing0", 'a "b"', "ö; SELECT"]
    columns = NamedColumns({name: np.ma.array([1, 2], mask=[False, True]) for name in names})
    assert pyarrow.table(Stream(columns)).to_pylist() == [dict.fromkeys(names, 1), dict.fromkeys(names)]
    assert pyarrow.table(Stream(NamedColumns(text=np.array(["a\udcff"], object))))["text"].to_pylist() == ["a\\udcff"]


def test_text_among_bytes_is_bytes_too() -> None:
    table = pyarrow.table(Stream(NamedColumns(column=np.array(["x", b"y", None, "\udcff"], object))))
    assert table["column"].to_pylist() == [b"x", b"y", None, b"\xff"]


def test_a_float_that_is_no_number_is_not_missing() -> None:
    column = np.ma.array([1.5, np.nan, np.nan], mask=[False, False, True])
    values = pyarrow.table(Stream(NamedColumns(column=column)))["column"].to_pylist()
    assert values[0] == 1.5
    assert np.isnan(values[1])
    assert values[2] is None


def test_no_rows_are_a_table_too() -> None:
    assert pyarrow.table(Stream(NamedColumns(number=np.zeros(0, np.int64)))).num_rows == 0


def test_what_has_columns_streams_them(tmp_path: Path) -> None:
    program = hello(tmp_path)
    (tmp_path / "perf.data").write_bytes(recording(program))
    walkback.add(program)
    (section,) = walkback.ElfFile(program).sframe
    (report,) = walkback.check(program)
    store = walkback.Store(tmp_path / "store", create=True)
    walkback.survey([program], tmp_path / "survey", jobs=1)
    answers = [store.sql("SELECT 1 AS one"), walkback.Survey(tmp_path / "survey").sql("FROM files")]
    one: Any
    for one in (section.table, section.section.functions, report, walkback.unwind(tmp_path / "perf.data"), *answers):
        columns = one if isinstance(one, NamedColumns) else one.columns()
        table = pyarrow.table(Stream(one))
        assert table.column_names == list(columns)
        assert table.num_rows == columns.rows
        assert one._repr_html_().count("<tr>") == 1 + min(columns.rows, 20)


def test_the_rows_of_a_table_are_those_of_its_functions(tmp_path: Path) -> None:
    walkback.add(program := hello(tmp_path))
    (section,) = walkback.ElfFile(program).sframe
    columns = section.table.columns()
    for address, rule in zip(columns["address"].tolist(), columns["rule"].tolist(), strict=True):
        assert section.table.find(address).rule.text(section.table.machine) == rule


def test_a_notebook_shows_text_and_no_markup() -> None:
    html = NamedColumns(text=np.append(TEXT, "a\udcff"))._repr_html_()
    html.encode()
    assert "<td>&lt;a&gt;</td>" in html
    assert "b &amp; c" in html


def test_many_rows_are_counted() -> None:
    html = NamedColumns(number=np.arange(1000))._repr_html_()
    assert html.count("<tr>") == 21
    assert "1,000 rows" in html
    assert repr(NamedColumns(number=np.arange(1000))) == "NamedColumns(number: 1000 rows)"
