"""Places as people read them: by demangled names, and by those of procedure linkage tables."""

from __future__ import annotations

import numpy as np

from walkback.sframe.lookup import Match
from walkback.symbols.demangle import Demangle, shown


def shown_place(match: Match, how: Demangle) -> str:
    """The name of what covers a place, and how far the place is into it."""
    name, start = match.name, match.found.start
    if name is not None:
        (name,) = shown([name], how, parameters=True)
    elif match.source.plt is not None:
        (entry,), begin = match.source.plt.locate(np.array([match.place.address], np.uint64))
        if entry is not None:
            (name,), start = shown([entry], how, parameters=True), int(begin[0])
        else:
            inside = (name for name, low, size in match.source.plt.tables() if int(low) <= start < int(low) + int(size))
            name = next(inside, None)
    return f"{name or f'function {match.found.range}'}+{match.place.address - start:#x}"
