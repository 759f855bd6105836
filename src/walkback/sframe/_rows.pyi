from walkback.base.arrays import I32, I64, U8, U32

def decode_rows(
    buffer: memoryview, ends: I64, position: I64, count: I64, width: U8, fde_type: U8, big: bool
) -> tuple[I64, U8, U32, U32, I64, U8]: ...
def encode_rows(
    out: U8,
    position: I64,
    rows: I64,
    width: U8,
    row_start: U32,
    row_shape: U32,
    shape_bytes: U8,
    shape_first: I64,
    big: bool,
) -> int: ...
def decode_words(buffer: memoryview, positions: I64, big: bool) -> tuple[U8, I64, I32]: ...
def encode_words(out: U8, first: I64, info: U8, first_word: I64, words: I32, big: bool) -> int: ...
def measure_rows(first: I64, rows: I64, row_start: U32, row_shape: U32, shape_length: I64) -> tuple[I64, I64]: ...
