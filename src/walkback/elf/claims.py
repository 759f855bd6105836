"""What the headers of a file, or the members of a thin archive, may claim together.

Each may name any part of a file, even all of it. If thousands name the same part, a small file takes the memory and the
time of a large one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_MOST_TIMES = 8
_HARMLESS = 1 << 20
"""Headers may claim 8 times the bytes of the file, or 1 MiB if that is more; and one range 8 times."""


def most(length: int) -> int:
    """How many bytes may be claimed where there are `length`."""
    return max(_MOST_TIMES * length, _HARMLESS)


def trouble_of(kind: str, offset: npt.NDArray[np.uint64], size: npt.NDArray[np.uint64], length: int) -> str | None:
    """What is wrong with the claims of all headers of a kind, if they come to too much.

    A header that leads out of the file counts for nothing: that is an error where its contents are asked for.
    """
    end = np.uint64(length)
    inside = (size <= end) & (offset <= end - np.minimum(size, end))
    claimed = int(size[inside].astype(np.float64).sum())
    if claimed > most(length):
        return f"the {kind} headers name the same bytes again and again: {claimed} in a file of {length} bytes"
    # Small tables take their time too.
    some = inside & (size > 0)
    times = Counter(zip(offset[some].tolist(), size[some].tolist(), strict=True))
    if (most_often := max(times.values(), default=0)) > _MOST_TIMES:
        return f"the {kind} headers name the same bytes again and again: {most_often} of them one range"
    return None
