from typing import Final

from walkback.arrays import I64, U8, U64

BAD_KIND: Final = 1
TOO_WIDE: Final = 2
NOT_SWIFT: Final = 3
NO_ROOM: Final = 4

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
