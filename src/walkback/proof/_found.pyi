from typing import NamedTuple

from walkback.base.arrays import I64, U8, U16, U64
from walkback.proof.ranges import Ranges
from walkback.proof.walks import Walks

class Found(NamedTuple):
    rows: U64
    seen: U16
    tails: U64
    calls: U64
    ends: U64
    straight: U64

def found_rules(walks: Walks, machine: str, ranges: Ranges, unit_first: I64, wanted: U8, catching: U64) -> Found: ...
