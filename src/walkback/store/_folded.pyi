from walkback.base.arrays import I32, I64, U8
from walkback.base.intern import Interner

BAD_WEIGHT: int
TOO_LONG: int

def read_lines(
    data: U8,
    behind: I64,
    most: int,
    with_process: bool,
    interner: Interner,
    first: I64,
    frames: I32,
    processes: I32,
    weights: I64,
    path: I32,
    ends: I64,
    state: I64,
) -> int: ...
