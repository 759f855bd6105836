from walkback.base.arrays import I64, U8, U64

BAD_KIND: int
TOO_WIDE: int
NOT_SWIFT: int
NO_ROOM: int

def encode(
    first: I64,
    kind: U8,
    value: U64,
    times: U64,
    word: U8,
    truncated: U8,
    swift: bool,
    end: bool,
    most: U64,
    out: U8,
    offsets: I64,
    state: I64,
) -> int: ...
