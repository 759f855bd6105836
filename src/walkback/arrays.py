"""Names for the array types that columns have."""

from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]
"""A structured array."""
Numbers = npt.NDArray[Any]
"""A column of whole numbers of any width."""


def distinct(values: Numbers) -> Numbers:
    """The values that there are, rising: `numpy.unique` without all that NumPy imports when that is used first."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    found: Numbers = ordered[first]
    return found


def marked(numbers: Numbers, count: int) -> Bools:
    """Which of the numbers below `count` there are: quicker than sorting or hashing them."""
    found = np.zeros(count, np.bool_)
    found[numbers] = True
    return found
