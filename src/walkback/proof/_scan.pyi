from typing import NamedTuple

from walkback.base.arrays import I64, U8, U16, U64, Bools
from walkback.proof._code import Code
from walkback.proof.image import Image
from walkback.proof.ranges import Pieces, Ranges

AT_ONCE: int

class Scan(NamedTuple):
    start: U64
    size: I64
    returns: Bools
    leaps: Bools
    written: U64
    kept: U64
    highest: U8
    ways: U64
    calls: U64
    called: U8
    taken: U8
    named: U64
    targets: U8
    brief: U16

def scan(code: Code, image: Image, ranges: Ranges | Pieces, sp: int, former: Scan | None = None) -> Scan: ...
def of_code(seen: Scan) -> Scan: ...
def is_same(ranges: Ranges | Pieces, former: Scan) -> bool: ...
def bits_at(bits: U8, places: I64) -> Bools: ...
def mark_targets(seen: Scan, image: Image, addresses: U64) -> None: ...
def renumbered(rows: U64, number: I64) -> U64: ...
