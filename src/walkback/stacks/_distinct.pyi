from walkback.base.arrays import I32, I64, U8, U64

FULL_LISTS: int
FULL_WORDS: int

def number(
    first: I64,
    width: int,
    words: U64,
    numbers: I64,
    state: I64,
    slots: I32,
    hashes: U64,
    kept_first: I64,
    kept: U64,
    mix: int,
    base: int,
) -> int: ...
def fill(slots: I32, hashes: U64, count: int) -> None: ...
def leading(first: I64, words: I64, seen: I64, marks: U8) -> None: ...
