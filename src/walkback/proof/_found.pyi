from typing import NamedTuple

from walkback.base.arrays import I64, U8, U16, U64
from walkback.proof._along import Along
from walkback.proof._walk import Walk
from walkback.proof.ranges import Ranges

class Found(NamedTuple):
    rows: U64
    seen: U16
    tails: U64
    calls: U64
    ends: U64
    straight: U64

def found_rules(walk: Walk, along: Along, ranges: Ranges, unit_first: I64, wanted: U8, catching: U64) -> Found: ...
