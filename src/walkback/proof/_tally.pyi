from collections.abc import Sequence

from walkback.base.arrays import I64, U8, U64
from walkback.proof._claims import Claims
from walkback.proof._state import State
from walkback.proof._walk import Walk
from walkback.proof.ranges import Ranges
from walkback.proof.walks import Walks

def as_entered(claims: Claims, state: State, count: int) -> U8: ...
def tally(walks: Walks, ranges: Ranges, unit_first: I64, wanted: U8) -> tuple[I64, I64, U64]: ...
def instructions(
    walk: Walk, first: int, end: int, begin: int | None, size: int, most: int
) -> tuple[list[tuple[int, int, int, int]], I64 | None]: ...
def states(
    walk: Walk, first: int, end: int, addresses: Sequence[int]
) -> list[tuple[list[int], dict[int, int], list[int]] | None]: ...
def judged(walk: Walk, first: int, end: int) -> U64 | None: ...
