from walkback.base.arrays import I64, U8, U64

FULL: int

def read(
    data: U8,
    offsets: I64,
    known: bool,
    state: I64,
    word: U8,
    first: I64,
    ended: U8,
    fault: U8,
    at: I64,
    filling: bool,
    kind: U8,
    value: U64,
    times: U64,
) -> int: ...
