from walkback.base.arrays import I64, U32, U64
from walkback.table.pieces import SearchIndex

def find(pcs: U64, index: SearchIndex, row_offset: U32) -> tuple[I64, I64]: ...
