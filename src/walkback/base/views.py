"""Arrays, as kernels take them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np


def takes_views(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a kernel that takes arrays.

    Compiled it takes them as they are. Where it runs as Python it gets memoryviews of them, because their elements are
    plain numbers, which neither overflow nor are slow.
    """
    if not isinstance(function, FunctionType):
        return function

    @wraps(function)
    def with_views(*arguments: Any) -> Any:
        return function(*(one.data if isinstance(one, np.ndarray) else one for one in arguments))

    return with_views
