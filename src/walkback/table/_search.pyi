from walkback.base.arrays import I64, U64
from walkback.table.pieces import Pieces
from walkback.table.spans import Spans

def find(pcs: U64, pieces: Pieces, spans: Spans) -> tuple[I64, I64]: ...
