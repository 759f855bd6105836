from typing import Any

from walkback.base.arrays import I64, U16, U64, Bools

def extract(
    words: memoryview | U64,
    big: bool,
    which: I64,
    offset: I64,
    size: I64,
    shape: tuple[int, int, int, int, int],
    columns: I64,
    sp: int,
    copy_of_pc: int,
    out: Any,
) -> None: ...
def chains(
    words: memoryview | U64, big: bool, misc: U16, ip: U64, chain_at: I64, chain_length: I64
) -> tuple[I64, U64, Bools]: ...
def readings(words: memoryview | U64, big: bool, reading_at: I64, read_format: int) -> tuple[I64, U64, U64]: ...
