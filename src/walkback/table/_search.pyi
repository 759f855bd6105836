from walkback.arrays import I64, U32, U64

def find(
    pcs: U64,
    starts: U64,
    lasts: U64,
    ranges: I64,
    directory: U32,
    shift: int,
    range_start: U64,
    first_row: I64,
    rows: I64,
    block: U32,
    row_offset: U32,
) -> tuple[I64, I64]: ...
