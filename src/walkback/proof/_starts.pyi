from walkback.base.arrays import U8, U64
from walkback.proof._code import Code
from walkback.proof.ranges import Pieces

def beginnings(code: Code, targets: U8, ranges: Pieces, sp: int, ra: int, kept: int, last: U64, back: U64) -> U64: ...
