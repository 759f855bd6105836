"""Answers to people's queries as columns: every number exact, no column lost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow
import pytest

from walkback.segments.database import connect
from walkback.segments.queries import answer_columns, readable_query


@pytest.fixture
def ask() -> Iterator[Any]:
    with connect() as connection:
        yield lambda query: answer_columns(connection, readable_query(connection, query))


def test_sums_are_integers(ask: Any) -> None:
    column = ask("SELECT sum(x) AS total FROM (VALUES (4611686018427387905), (1)) t(x);")["total"]
    assert column.dtype == np.int64
    assert column.tolist() == [2**62 + 2]


def test_a_sum_wider_than_64_bits_is_exact(ask: Any) -> None:
    column = ask("SELECT sum(x) AS total FROM (VALUES (9223372036854775807), (9223372036854775807)) t(x)")["total"]
    assert column.tolist() == [2**64 - 2]


def test_decimals_are_exact(ask: Any) -> None:
    assert ask("SELECT 0.1::DECIMAL(38, 30) AS x")["x"].tolist() == [Decimal("0.1")]


@pytest.mark.parametrize("kind", ["HUGEINT", "DECIMAL(9, 2)"])
def test_what_is_missing_stays_missing(ask: Any, kind: str) -> None:
    assert ask(f"SELECT x::{kind} AS x FROM (VALUES (7), (NULL)) t(x)")["x"].tolist() == [7, None]


def test_no_rows_have_the_same_type(ask: Any) -> None:
    column = ask("SELECT 1::HUGEINT AS x WHERE false")["x"]
    assert (column.dtype, len(column)) == (np.int64, 0)


def test_equal_names_get_a_number(ask: Any) -> None:
    assert {name: column.tolist() for name, column in ask('SELECT 1 AS a, 2 AS a, sum(3) AS "a b"').items()} == {
        "a": [1],
        "a_1": [2],
        "a b": [3],
    }


def test_names_that_differ_in_capitals_alone_get_a_number(ask: Any) -> None:
    answer = ask("SELECT sum(1) AS s, sum(2) AS S, 3 AS s_1")
    assert {name: column.tolist() for name, column in answer.items()} == {"s": [1], "S_2": [2], "s_1": [3]}


def test_lists_of_decimals_are_answered(ask: Any) -> None:
    assert [list(value) for value in ask("SELECT [1.5, 2.5] AS x")["x"]] == [[1.5, 2.5]]


def test_the_type_of_a_column_is_that_of_all_its_rows(ask: Any) -> None:
    answer = ask("SELECT CASE WHEN x = 2777 THEN 12345.6 ELSE 0.5 END AS x FROM range(3000) t(x)")
    assert pyarrow.RecordBatchReader.from_stream(answer).read_all()["x"][2777].as_py() == Decimal("12345.6")
