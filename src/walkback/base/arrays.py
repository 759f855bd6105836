"""Names for the array types that columns have, and what is done with arrays everywhere."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]
"""A structured array."""
Numbers = npt.NDArray[Any]
"""A column of whole numbers of any width."""
Value = TypeVar("Value", bound=Hashable)
Columns = TypeVar("Columns")
"""A dataclass whose fields are arrays of one length, or of several."""


def record_type(fields: str, *, align: bool = False) -> np.dtype[np.void]:
    """A structured type from the names and types of its fields, as in `"offset u8, info u4"`."""
    return np.dtype([tuple(field.split()) for field in fields.split(", ")], align=align)


def distinct(values: Numbers) -> Numbers:
    """The values that there are, rising: `numpy.unique` without all that NumPy imports when that is used first."""
    ordered = np.sort(values)
    return ordered[changes(ordered)]


def distinct_rows(rows: Numbers) -> Numbers:
    """The same of rows."""
    ordered = rows[np.lexsort(rows.T[::-1])]
    return ordered[changes(*ordered.T)]


def ranked(values: Numbers) -> tuple[Numbers, I64]:
    """The values that there are, rising, and for each value its number among them."""
    order, first = _in_order(values)
    number = np.empty(len(order), np.int64)
    number[order] = first.cumsum() - 1
    return values[order[first]], number


def first_of_each(values: Numbers) -> tuple[Numbers, I64]:
    """The same, and where each of them is first."""
    order, first = _in_order(values)
    return values[order[first]], order[first]


def _in_order(values: Numbers) -> tuple[I64, Bools]:
    """Where the values are that rise, equal ones as they come, and which of them are the first of their kind."""
    order = np.argsort(values, kind="stable")
    return order, changes(values[order])


def numbered(values: Sequence[Value]) -> tuple[list[Value], I64]:
    """The distinct values in the order of their first appearance, and the number of each value among them."""
    numbers: dict[Value, int] = {}
    of_each = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), np.array(of_each, np.int64)


def marked(numbers: Numbers, count: int) -> Bools:
    """Which of the numbers below `count` there are: quicker than sorting or hashing them."""
    found = np.zeros(count, np.bool_)
    found[numbers] = True
    return found


def are_among(values: Numbers, others: Numbers) -> Bools:
    """Which values are among others of their type; `numpy.isin` of NumPy 2.0 fails from 2**63 on."""
    if not len(others) or not len(values):
        return np.zeros(len(values), np.bool_)
    ordered = others if (others[1:] >= others[:-1]).all() else np.sort(others)
    return np.asarray(ordered[np.minimum(ordered.searchsorted(values), len(ordered) - 1)] == values)


def is_one_of(values: Numbers, *few: int) -> Bools:
    """Which values are one of a few: faster than `numpy.isin`, and than to compare with members of enumerations."""
    found: Bools = values == int(few[0])
    for number in few[1:]:
        found |= values == int(number)
    return found


def ends_of(start: U64, size: U64) -> U64:
    """The first address behind each range; what would run over the end of the address space stops there."""
    ends: U64 = start + np.minimum(size, np.uint64(2**64 - 1) - start)
    return ends


def longer(array: Numbers, size: int) -> Numbers:
    """A copy with room for `size` values or rows; those at the end are not set yet."""
    copy: Numbers = np.empty((size, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


def changes(*columns: Numbers) -> Bools:
    """Which rows differ from the row before them in any of the columns; the first does."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return found


def runs(first: I64, counts: I64) -> I64:
    """Runs of consecutive numbers, one run after another: run i has `counts[i]` numbers, from `first[i]` on."""
    ends = np.cumsum(counts)
    numbers: I64 = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - counts), counts)
    return numbers


def concatenated(parts: Sequence[Columns]) -> Columns:
    """The columns of several as those of one."""
    kind = type(parts[0])
    names = [one.name for one in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    return kind(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def sums(numbers: I64, values: U64, count: int) -> U64:
    """The sum of the values of each number below `count`."""
    found = np.zeros(count, np.uint64)
    np.add.at(found, numbers, values)
    return found
