from typing import NamedTuple

from walkback.base.arrays import I64, U8, U64
from walkback.proof._code import Code
from walkback.proof._walk import Walk
from walkback.proof.ranges import Pieces, Ranges

class Found(NamedTuple):
    rows: U64
    seen: U8
    tails: U64
    parts: U64
    ends: U64

def found_rules(walk: Walk, ranges: Ranges, unit_first: I64, catching: U64) -> Found: ...
def beginnings(code: Code, ranges: Pieces, sp: int, kept: int, last: U64) -> U64: ...
