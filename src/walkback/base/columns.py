"""Columns that other libraries take as they are: pandas, Polars, pyarrow, DuckDB and notebooks."""

from __future__ import annotations

from dataclasses import fields
from itertools import islice
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from walkback.base.dataclass import dataclass
from walkback.base.text import clean, spelled_out, sql_name

_DTYPES = {"I64": np.int64, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8}
_SHOWN = 20
"""Rows that a notebook shows."""


def _registered(values: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[Any], str]:
    """A column as every version of DuckDB reads it right, and the expression that makes of it what it was."""
    if values.dtype.kind in "SU":  # text would become an enumeration of all values
        values = values.astype(object)
    if values.dtype != object:
        return np.ascontiguousarray(values, values.dtype.newbyteorder("=")), name
    listed = values.tolist()
    if any(isinstance(value, bytes | bytearray) for value in listed):  # would become their repr
        digits = [None if value is None else _bytes(value).hex() for value in listed]
        return np.array(digits, object), f"unhex({name})"
    known = [value for value in listed if value is not None]
    exact = _exact_type(known)
    if exact is not None:  # DuckDB before 1.5 takes some of these for text
        return np.array([None if value is None else str(value) for value in listed], object), f"CAST({name} AS {exact})"
    # A column without any value would have no type.
    kept = name if known else f"CAST({name} AS VARCHAR)"
    return np.fromiter((spelled_out(value) if isinstance(value, str) else value for value in listed), object), kept


def _exact_type(values: list[object]) -> str | None:
    """The type of SQL for numbers that NumPy has no type for; None if these are not all such, or do not fit."""
    if not values:
        return None
    integers = [value for value in values if type(value) is int]
    if len(integers) == len(values):
        largest = max(map(abs, integers))
        if largest < 2**63:
            return None
        return "HUGEINT" if largest < 10**38 else "VARCHAR"  # Arrow has no wider integers
    from decimal import Decimal

    decimals = [value for value in values if isinstance(value, Decimal) and value.is_finite()]
    if len(decimals) != len(values):
        return None
    scale = max(0, *(-int(number.as_tuple().exponent) for number in decimals))
    return f"DECIMAL(38, {scale})" if scale + max(number.adjusted() for number in decimals) < 38 else None


def _bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray) else str(value).encode("utf-8", "surrogateescape")


class NamedColumns(dict[str, npt.NDArray[Any]]):
    """NumPy arrays of one length by their names."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.values()), ()))

    def __repr__(self) -> str:
        return f"NamedColumns({', '.join(self)}: {self.rows} rows)"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns in the form of Apache Arrow's PyCapsule interface: `pandas.DataFrame.from_arrow(columns)`."""
        import duckdb  # takes long, and is needed here alone

        arrays, answers = {}, []
        for number, (name, values) in enumerate(self.items()):
            array, answer = _registered(np.ma.getdata(values), f"values{number}")
            arrays[f"values{number}"] = array
            if values.dtype.kind == "f":  # DuckDB takes NaN for a missing value
                arrays[f"nan{number}"] = np.isnan(np.ma.getdata(values))
                answer = f"CASE WHEN nan{number} THEN 'NaN' ELSE {answer} END"
            if np.ma.is_masked(values):
                arrays[f"missing{number}"] = np.ma.getmaskarray(values)
                answer = f"CASE WHEN missing{number} THEN NULL ELSE {answer} END"
            answers.append(f"{answer} AS {sql_name(name)}")
        connection = duckdb.connect()
        # The type of a column of objects is that of all, not of a sample.
        connection.execute(f"SET pandas_analyze_sample = {max(self.rows, 1)}")
        connection.register("columns", arrays)
        return connection.sql(f"SELECT {', '.join(answers)} FROM columns").__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The first rows as a table."""
        import html

        head = "".join(f"<th>{html.escape(name)}</th>" for name in self)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(clean(str(value)))}</td>' for value in row)}</tr>"
            for row in islice(zip(*self.values(), strict=True), _SHOWN)
        )
        more = f"<p>{self.rows:,} rows</p>" if self.rows > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Columnar:
    """What has columns, and so can be taken like them."""

    __slots__ = ()

    def columns(self) -> NamedColumns:
        """The columns that a reader of tables wants."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """See `NamedColumns`."""
        return self.columns().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return self.columns()._repr_html_()


@dataclass(slots=True, repr=False)
class ColumnRecord(Columnar):
    """Base of a dataclass whose fields are columns of one length; its annotations name their types."""

    @classmethod
    def zeros(cls, count: int, **known: Any) -> Self:
        """Columns of zeros, but for those that are known."""
        types = {column.name: _DTYPES[str(column.type)] for column in fields(cls)}
        columns = {name: np.zeros(count, kind) for name, kind in types.items() if name not in known}
        return cls(**columns, **{name: np.ascontiguousarray(value, types[name]) for name, value in known.items()})

    def __len__(self) -> int:
        first = next(iter(self.__dataclass_fields__))  # `fields` makes a list of all each time
        return len(getattr(self, first))

    def columns(self) -> NamedColumns:
        """The columns by their names."""
        return NamedColumns({one.name: getattr(self, one.name) for one in fields(self)})
