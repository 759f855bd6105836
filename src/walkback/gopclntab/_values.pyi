from typing import NamedTuple

from walkback.base.arrays import I32, I64, U8, U32, U64

class Depths(NamedTuple):
    first_row: I64
    rows: I64
    covered: U64
    fault: U8
    offset: U32
    depth: I32
    full: int

def depths(
    data: bytes | bytearray | memoryview, base: int, places: I64, sizes: U64, quantum: int, most: int
) -> Depths: ...
